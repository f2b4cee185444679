"""A stored visit, and what changed at an agent between two. Pure.

A stored visit, and the interface of its store.

Finds what changed at an agent between two visits, and whether it matters.

Cosmetic changes are only recorded. Declared changes, which come with a new on-chain URI, are judged
by the visit that sees them. Silent and material changes bound the rung until the next visit is
completed: another payee or host, a price above ten times, a new tool that acts. What differs
between two reads of one visit is not a change. Source: evidence.md#drift.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Final, Literal

from assay.common.json import JsonObject, JsonValue, is_array, is_object

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
    """The facts that later visits are compared with."""
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


Material = Literal["payee", "host", "price", "tool"]

PRICE_FACTOR: Final = 10
"""A price above this many times the earlier one is material."""

DECLARATION: Final = "uri"
"""The fact with the on-chain URI: if it changed, other changes are declared."""


@dataclass(frozen=True, slots=True)
class Drift:
    """Changed fingerprints by name, and which changes are material."""

    changed: tuple[str, ...] = ()
    material: tuple[Material, ...] = ()
    is_declared: bool = False

    @property
    def silent(self) -> tuple[Material, ...]:
        """Return the material changes that were not declared."""
        return () if self.is_declared else self.material


def compare(before: JsonObject, after: JsonObject) -> Drift:
    """Return what changed from the facts of one visit to those of a later one.

    Facts are `fingerprints`, `payees`, `hosts` (lists by service), `prices` (amounts by service and
    asset), `tools` (by service: name to whether it acts), `uri` and `unstable` (names of facts that
    differ between two reads). A fact that is missing on one side says nothing.
    """
    unstable = _texts(before.get("unstable")) | _texts(after.get("unstable"))
    old, new = _object(before.get("fingerprints")), _object(after.get("fingerprints"))
    changed = sorted(n for n in old.keys() & new.keys() if old[n] != new[n] and n not in unstable)
    material: list[Material] = []
    if _has_new(before, after, "payees", unstable):
        material.append("payee")
    if _has_new(before, after, "hosts", unstable):
        material.append("host")
    if _is_dearer(before, after, unstable):
        material.append("price")
    if _has_new_act(before, after, unstable):
        material.append("tool")
    was, uri = before.get(DECLARATION), after.get(DECLARATION)
    return Drift(
        changed=tuple(changed),
        material=tuple(material),
        is_declared=was is not None and uri is not None and was != uri,
    )


def _has_new(before: JsonObject, after: JsonObject, fact: str, unstable: frozenset[str]) -> bool:
    """Return whether a service that had some of this has one that none had before."""
    old, new = _object(before.get(fact)), _object(after.get(fact))
    known = frozenset[str]().union(*(_texts(value) for value in old.values()))
    return any(
        bool(_texts(old[service])) and not _texts(new[service]) <= known
        for service in old.keys() & new.keys()
        if f"{fact} {service}" not in unstable
    )


def _is_dearer(before: JsonObject, after: JsonObject, unstable: frozenset[str]) -> bool:
    old, new = _object(before.get("prices")), _object(after.get("prices"))
    for service in old.keys() & new.keys():
        if f"prices {service}" in unstable:
            continue
        was, now = _object(old[service]), _object(new[service])
        for asset in was.keys() & now.keys():
            if _number(now[asset]) > PRICE_FACTOR * _number(was[asset]) > 0:
                return True
    return False


def _has_new_act(before: JsonObject, after: JsonObject, unstable: frozenset[str]) -> bool:
    old, new = _object(before.get("tools")), _object(after.get("tools"))
    return any(
        does and name not in _object(old[service])
        for service in old.keys() & new.keys()
        if f"tools {service}" not in unstable
        for name, does in _object(new[service]).items()
    )


def _object(value: JsonValue) -> Mapping[str, JsonValue]:
    return value if is_object(value) else {}


def _texts(value: JsonValue) -> frozenset[str]:
    return frozenset(v for v in value if isinstance(v, str)) if is_array(value) else frozenset()


def _number(value: JsonValue) -> Decimal:
    try:
        return Decimal(str(value))
    except InvalidOperation:
        return Decimal(0)


KEPT_MAX: Final = 64
"""Payees, hosts or tools kept of one service, and services kept of one agent."""


def known_facts(known: JsonObject, seen: JsonObject) -> JsonObject:
    """Return the known facts of an agent after a visit that saw `seen`, for the next comparison.

    A service that was not seen keeps its known facts. Payees, hosts and tools seen once stay known,
    so that one that returns is not new.
    """
    merged: dict[str, JsonValue] = {**known, **{n: seen[n] for n in seen if n not in _MERGED}}
    for fact in _MERGED:
        old, new = _object(known.get(fact)), _object(seen.get(fact))
        services = [*new, *(service for service in old if service not in new)][:KEPT_MAX]
        merged[fact] = {s: _merged(fact, old.get(s), new.get(s)) for s in services}
    return merged


_MERGED: Final = ("fingerprints", "payees", "hosts", "prices", "tools")


def _merged(fact: str, old: JsonValue, new: JsonValue) -> JsonValue:
    if new is None or old is None:
        return old if new is None else new
    if fact in {"payees", "hosts"}:
        return [*sorted(_texts(new)), *sorted(_texts(old) - _texts(new))][:KEPT_MAX]
    if fact in {"prices", "tools"}:
        rows = _object(new), _object(old)
        names = [*rows[0], *(name for name in rows[1] if name not in rows[0])][:KEPT_MAX]
        return {name: rows[0].get(name, rows[1].get(name)) for name in names}
    return new
