"""Whether a human has proven to back the agent.

By default it is a bonus on the score (`scoring.BONUS`); if requested it is a signal like the
others.
Source: interface.md#personhood-verification, #personhood; conventions.md#signals-and-score.
"""

from collections.abc import Mapping
from typing import ClassVar, Final

from assay.evaluation.model import Evidence, SignalName, SignalScore, SignalUnavailable
from assay.evaluation.ports import Signal, SignalDependencies
from assay.personhood.model import Personhood
from assay.probing.ports import Probe
from assay.registries.model import Subject

SURE = 0.9
WORTH: Mapping[str, float] = {"orb": 100.0}
WORTH_OTHERWISE = 85.0
"""The worth of an orb, which sees a human, and of anything else, which sees a device or a
document."""


class PersonhoodSignal:
    """Reads the stored proof of the subject; makes no request."""

    name: ClassVar[SignalName] = SignalName.PERSONHOOD

    async def collect(
        self, subject: Subject, needs: SignalDependencies
    ) -> Evidence | SignalUnavailable:
        if needs.sources.personhoods is None:
            return SignalUnavailable("Proofs of personhood are not configured.")
        return evidence_of(await needs.sources.personhoods.find(subject.key))

    def weigh(self, evidence: Evidence, probes: Mapping[str, Probe]) -> SignalScore:
        del probes
        level = evidence.data["level"]
        if not isinstance(level, str):
            return SignalScore(50.0, 0.0, ("No human has proven to stand behind the agent.",))
        value = WORTH.get(level, WORTH_OTHERWISE)
        return SignalScore(value, SURE, (f"A human proved to stand behind the agent ({level}).",))


def evidence_of(found: Personhood | None) -> Evidence:
    """Return what is known of the human behind a subject, as evidence."""
    return Evidence({"level": None if found is None else found.level})


SIGNAL: Final[Signal] = PersonhoodSignal()
