"""Whether a human backs the agent in Self's registry (conventions.md#signals-and-score).

Source: personhood-proofs.md#self.
"""

from collections.abc import Mapping
from typing import ClassVar, Final

from assay.chains.model import is_address
from assay.common.errors import Unavailable as UnavailableError
from assay.evaluation.model import Evidence, SignalName, SignalScore, SignalUnavailable
from assay.evaluation.ports import Signal, SignalDependencies
from assay.probing.ports import Probe
from assay.registries.model import Subject

SURE = 0.9
AGENTS_FULL = 3
"""Agents one human may have before each counts less: many agents do not make many humans."""


class SelfId:
    """A current proof by the trusted provider has full worth; no proof means no knowledge."""

    name: ClassVar[SignalName] = SignalName.SELF

    async def collect(
        self, subject: Subject, needs: SignalDependencies
    ) -> Evidence | SignalUnavailable:
        if needs.sources.humans is None:
            return SignalUnavailable("No registry of humans is configured.")
        if not is_address(subject.wallet):  # The registry has EVM addresses only.
            return Evidence({"registered": False, "holds": False, "agents": None})
        try:
            found = await needs.sources.humans.find(subject.wallet)
        except UnavailableError as error:
            return SignalUnavailable(error.message)
        return Evidence(
            {"registered": found.registered, "holds": found.holds, "agents": found.agents}
        )

    def weigh(self, evidence: Evidence, probes: Mapping[str, Probe]) -> SignalScore:
        del probes
        seen = evidence.data
        if not seen["registered"]:
            return SignalScore(50.0, 0.0, ("The agent is not in Self's registry.",))
        if not seen["holds"]:
            return SignalScore(
                50.0, 0.0, ("The agent's proof in Self's registry does not hold now.",)
            )
        agents = seen["agents"]
        many = agents if isinstance(agents, int) else 1
        share = min(1.0, AGENTS_FULL / max(1, many))
        shared = f", who has {many} agents there" if many > AGENTS_FULL else ""
        return SignalScore(
            round(50 + 50 * share, 2), SURE, (f"Self proved a human behind the agent{shared}.",)
        )


SIGNAL: Final[Signal] = SelfId()
