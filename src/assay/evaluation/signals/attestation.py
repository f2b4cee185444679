"""Whether a trusted attester vouches for the agent's owner.

It counts only if requested; otherwise it is context without points.
Source: interface.md#attestation-context; conventions.md#signals-and-score.
"""

from collections.abc import Mapping
from typing import ClassVar, Final

from assay.chains.model import is_address
from assay.common.errors import Unavailable as UnavailableError
from assay.common.json import JsonObject
from assay.evaluation.model import Attestation, Evidence, SignalName, SignalScore, SignalUnavailable
from assay.evaluation.ports import Signal, SignalDependencies
from assay.probing.ports import Probe
from assay.registries.model import Subject

SURE = 0.8
HANDLES_FULL = 2
"""Verified handles that give the signal its full worth."""


class AttestationSignal:
    """The newest valid attestation."""

    name: ClassVar[SignalName] = SignalName.ATTESTATION

    async def collect(
        self, subject: Subject, needs: SignalDependencies
    ) -> Evidence | SignalUnavailable:
        if needs.sources.attestations is None:
            return SignalUnavailable("No attesters are configured.")
        if not is_address(subject.wallet):  # Attestations are of EVM addresses.
            return Evidence({"attested": False})
        try:
            found = await needs.sources.attestations.newest(subject.wallet)
        except UnavailableError as error:
            return SignalUnavailable(error.message)
        if found is None:
            return Evidence({"attested": False})
        handles = [{"source": h.source, "handle": h.handle} for h in found.handles]
        traits, attested = _traits(found), needs.sources.attested
        shared: JsonObject = {}
        if traits and attested is not None:
            shared = {"sharedWith": await attested.others(subject.wallet, traits)}
        return Evidence(
            {
                **shared,
                "attested": True,
                "uid": found.uid,
                "attester": found.attester,
                "chain": found.chain,
                "handles": [*handles],
            }
        )

    def weigh(self, evidence: Evidence, probes: Mapping[str, Probe]) -> SignalScore:
        del probes
        if not evidence.data["attested"]:
            return SignalScore(50.0, 0.0, ("No trusted attester vouches for the agent's owner.",))
        handles = evidence.data["handles"]
        count = len(handles) if isinstance(handles, list) else 0
        share = (1 + min(count, HANDLES_FULL)) / (1 + HANDLES_FULL)
        count_text = "1 profile" if count == 1 else f"{count} profiles"
        return SignalScore(
            round(50 + 50 * share, 2),
            SURE,
            (f"A trusted attester verified {count_text} of the owner.",),
        )


def _traits(found: Attestation) -> list[str]:
    """Return the person's traits; without any, use by another agent cannot be detected."""
    handles = [f"{h.source}\n{h.handle}".lower() for h in found.handles]
    return handles + ([f"owner\n{found.owner}".lower()] if found.owner else [])


SIGNAL: Final[Signal] = AttestationSignal()
