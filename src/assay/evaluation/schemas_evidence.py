"""Explains a score in responses: every signal's part in it."""

from typing import Annotated

from pydantic import Field

from assay.evaluation.model import Contribution, Score, SignalName, SignalResult
from assay.server.schemas_base import ResponseModel

Share = Annotated[float, Field(ge=0, le=1)]
Points = Annotated[float, Field(ge=0, le=100)]


class SignalResponse(ResponseModel):
    """One signal: its worth, and how far it moved the score."""

    signal: Annotated[str, Field(examples=["sandbox"])]
    available: bool
    value: Points | None
    weight: Share | None
    confidence: Share
    contribution: Annotated[float | None, Field(description="Points above or below the prior.")]
    reasons: list[str]


class EvidencedSignalResponse(SignalResponse):
    """A signal with the evidence it rests on."""

    evidence: Annotated[
        dict[str, object] | None, Field(description="What was seen; its members may change.")
    ]


def signals(score: Score) -> list[SignalResponse]:
    """Return every signal of a score, including the missing ones."""
    return [_signal(c) for c in score.contributions] + [
        _missing(name) for name in score.unavailable
    ]


def evidenced_signals(
    score: Score, collected: tuple[SignalResult, ...]
) -> list[EvidencedSignalResponse]:
    """Return the same, each with its evidence."""
    evidence: dict[str, dict[str, object]] = {
        c.signal.value: dict(c.evidence.data) for c in collected
    }
    return [
        EvidencedSignalResponse(
            **shape.model_dump(by_alias=False), evidence=evidence.get(shape.signal)
        )
        for shape in signals(score)
    ]


def _missing(name: SignalName) -> SignalResponse:
    return SignalResponse(
        signal=name.value,
        available=False,
        value=None,
        weight=None,
        confidence=0.0,
        contribution=None,
        reasons=[],
    )


def _signal(contribution: Contribution) -> SignalResponse:
    return SignalResponse(
        signal=contribution.signal.value,
        available=True,
        value=contribution.value,
        weight=contribution.weight,
        confidence=contribution.confidence,
        contribution=contribution.points,
        reasons=list(contribution.reasons),
    )
