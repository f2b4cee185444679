"""A stored visit, and the interface of its store."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Literal, Protocol

from assay.common.json import JsonObject

Timing = Literal["scheduled", "triggered"]
"""Who chose the time: the scheduler, or another party (trigger, gate, `ttlMs`)."""

Label = Literal["announced", "unannounced", "unlabelled"]
CheckOutcome = Literal["passed", "failed", "blocked"]
"""`blocked`: it failed by a timeout, 429, 5xx or unreachability, which others can cause."""

WINDOW: Final = timedelta(days=90)
"""How long a visit counts and its row is kept. Source: evidence.md#ladder, #siblings."""

SILENT_CHANGE_COUNTS: Final = timedelta(hours=24)
"""How long a silent change bounds the rung if no visit is completed. Source: evidence.md#drift."""

SCHEDULED_MAX, TRIGGERED_MAX, CRITICAL_MAX = 200, 100, 50
"""Visits of one agent that are read, the newest of each kind: triggers displace no others."""

RECHECK: Final = "recheck"
"""The member of the evidence that marks the last check as a re-check by a few requests."""

BACKGROUND_TRIES: Final = 2
"""Background evaluations that may stay unfinished. Source: evidence.md#unfinished-visits."""


@dataclass(frozen=True, slots=True)
class EvaluationRequest:
    """Why an evaluation is made.

    A background evaluation is a visit timed by the scheduler, or finishes one that another party
    requested; then `tries` counts earlier unfinished ones.
    """

    timing: Timing = "triggered"
    is_background: bool = False
    tries: int = 0
    may_recheck: bool = False
    """Whether a re-check suffices if there is no room for a whole visit."""
    shared: "VisitRecord | None" = None
    """A sibling's visit that replaces one of the agent's own: nothing is sent."""

    @property
    def is_last_try(self) -> bool:
        """Return whether an unfinished result now counts as it is: two of them end a rung."""
        return self.is_background and self.tries + 1 >= BACKGROUND_TRIES


TRIGGERED: Final = EvaluationRequest()
BY_GATE: Final = EvaluationRequest(may_recheck=True)
"""Requested by a gate whose `ttlMs` has elapsed."""


@dataclass(frozen=True, slots=True)
class VisitRecord:
    """One visit's results about an agent, in classes; times are stored separately."""

    subject_key: str
    at: datetime
    timing: Timing
    label: Label = "unlabelled"
    outcomes: Mapping[str, CheckOutcome] = field(default_factory=dict[str, CheckOutcome])
    critical: tuple[str, ...] = ()
    """Critical checks that failed in this visit."""
    states: Mapping[str, str] = field(default_factory=dict[str, str])
    """State of function by declared endpoint."""
    fingerprints: Mapping[str, str] = field(default_factory=dict[str, str])
    facts: JsonObject = field(default_factory=dict[str, str])
    """The facts that drift compares: see `evaluation.drift`."""
    silent_changes: tuple[str, ...] = ()
    """Undeclared material changes since the visit before."""
    rung: int = 0
    """The rung that the evaluation gave."""
    findings: tuple[JsonObject, ...] = ()
    """Sightings of critical findings: `check`, `severity`, `sightings`, a row each."""
    calls: tuple[int, int] = (0, 0)
    """Calls that any customer may make, and how many of them were left without an answer."""
    source: str = ""
    """Identifies the source address of an unannounced visit; empty: the service's own."""
    shared_by: str = ""
    """The sibling that was visited in the agent's place."""


class VisitStore(Protocol):
    """Stores visits of the window, with the evaluation they belong to."""

    async def recent(self, subject_key: str, since: datetime) -> Sequence[VisitRecord]:
        """Return the newest visits of each kind not older than `since`, oldest first."""
        ...

    async def of_group(self, group: str, exclude: str, since: datetime) -> VisitRecord | None:
        """Return the newest scheduled visit to another agent of the group of siblings."""
        ...
