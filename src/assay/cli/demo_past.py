"""The demo's simulated past: how an agent climbs the ladder when its visits and customers are good.

None of it took place and none of it is stored. The visit that was just made is repeated on a clock
of its own, customers are made up, and the rules that grade everybody judge the result.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from rich.table import Table

from assay.common.json import JsonObject, is_object
from assay.common.money import MICRO
from assay.evaluation.history import History, pool
from assay.evaluation.model import Evaluation, Evidence, SignalName, SignalResult
from assay.evaluation.scoring import ScoringPolicy, grade_score
from assay.evaluation.signals import registry_8004, sandbox
from assay.evaluation.visits import CheckOutcome, VisitRecord
from assay.probing.ports import Probe, Severity
from assay.probing.unannounced import ANNOUNCED_ONLY
from assay.reputation.model import RULES, Payer, payer_json, reputation_of
from assay.reputation.rules import customers

DAYS: Final = (0, 8, 40)
"""What is shown: the day of the real visit, and two of the simulated clock."""

VISIT_EVERY: Final = timedelta(hours=16)
DAY: Final = timedelta(days=1)
_BEGIN: Final = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class SimulatedGrade:
    """The grade after so many simulated days."""

    day: int
    visits: int
    """Simulated, scheduled visits; on day 0 there is only the real one, which was triggered."""
    customers: int
    rung: int
    name: str
    ceiling: float
    score: float
    tier: str
    missing: tuple[str, ...]
    """Names of what the next rung asks for."""

    def row(self) -> dict[str, object]:
        """The row of `--json`."""
        return {
            "simulated": self.day > 0,
            "day": self.day,
            "visits": self.visits,
            "customers": self.customers,
            "rung": self.rung,
            "rungName": self.name,
            "ceiling": self.ceiling,
            "score": self.score,
            "tier": self.tier,
            "nextRung": list(self.missing),
        }


def climb(
    made: Evaluation, probes: Mapping[str, Probe], rules: ScoringPolicy
) -> Sequence[SimulatedGrade]:
    """The real evaluation, and what the same agent would be worth on later days."""
    return [_after(day, made, probes, rules) for day in DAYS]


def _after(
    day: int, made: Evaluation, probes: Mapping[str, Probe], rules: ScoringPolicy
) -> SimulatedGrade:
    visits = _visits(day, made)
    payers = _customers(day)
    collected = made.collected if day == 0 else _simulated(made, probes, visits, payers)
    found = grade_score(made.agent_id, collected, made.unavailable, rules)
    return SimulatedGrade(
        day=day,
        visits=len(visits),
        customers=len(payers),
        rung=found.place.rung,
        name=found.place.name,
        ceiling=found.place.ceiling,
        score=found.value,
        tier=rules.tiers.grade(found.value).tier,
        missing=tuple(demand.name for demand in found.place.next_demands),
    )


def _simulated(
    made: Evaluation,
    probes: Mapping[str, Probe],
    visits: Sequence[VisitRecord],
    payers: Sequence[Payer],
) -> tuple[SignalResult, ...]:
    """The evidence with a history of these visits, and with these customers, all content."""
    critical = {n for n, p in probes.items() if p.severity is Severity.CRITICAL}
    history = pool(visits, visits[-1].at, frozenset(critical - ANNOUNCED_ONLY))
    signals = {SignalName.SANDBOX: sandbox.SIGNAL, SignalName.REGISTRY_8004: registry_8004.SIGNAL}
    added: dict[SignalName, JsonObject] = {
        SignalName.SANDBOX: _visited(history),
        SignalName.REGISTRY_8004: _sold(payers, (visits[-1].at - _BEGIN).days) if payers else {},
    }
    collected: list[SignalResult] = []
    for one in made.collected:
        if signal := signals.get(one.signal):
            evidence = Evidence({**one.evidence.data, **added[one.signal]})
            collected.append(SignalResult(one.signal, evidence, signal.weigh(evidence, probes)))
        else:
            collected.append(one)
    return tuple(collected)


def _visited(history: History) -> JsonObject:
    return {"history": replace(history, reached_rung=1).as_json()}


def _sold(payers: Sequence[Payer], today: int) -> JsonObject:
    data: JsonObject = {
        "rules": RULES,
        "day": today,
        "price": MICRO // 10,
        "payers": {payer.address: payer_json(payer) for payer in payers},
        "votes": {payer.address: {"rating": "95", "day": today} for payer in payers},
    }
    return data | {"customers": customers(reputation_of(data), is_main=True)}


def _visits(day: int, made: Evaluation) -> Sequence[VisitRecord]:
    """Scheduled visits that see what the real one saw, every other one unannounced."""
    data = next(c.evidence.data for c in made.collected if c.signal is SignalName.SANDBOX)
    history = data.get("history")
    pooled = history.get("pooled") if is_object(history) else None
    outcomes: dict[str, CheckOutcome] = {
        name: "passed" if is_object(seen) and seen.get("outcome") == "pass" else "failed"
        for name, seen in (pooled.items() if is_object(pooled) else ())
    }
    unseen: dict[str, CheckOutcome] = {n: o for n, o in outcomes.items() if n not in ANNOUNCED_ONLY}
    return [_visit(made, number, outcomes, unseen) for number in range(day * DAY // VISIT_EVERY)]


def _visit(
    made: Evaluation,
    number: int,
    seen: Mapping[str, CheckOutcome],
    seen_unannounced: Mapping[str, CheckOutcome],
) -> VisitRecord:
    at = _BEGIN + number * VISIT_EVERY
    if number % 2:
        hidden = seen_unannounced
        return VisitRecord(made.subject_key, at, "scheduled", "unannounced", hidden, rung=1)
    return VisitRecord(made.subject_key, at, "scheduled", "announced", seen, rung=1)


def _customers(day: int) -> Sequence[Payer]:
    """One more a day from the second on, nobody's acquaintance; each pays 1.50 USD that day."""
    return [
        Payer(
            address=f"0x{number:040x}",
            spent={number: 3 * MICRO // 2},
            elsewhere=20 * MICRO,
            is_charge=True,
            sources=(f"0x{1_000_000 + number:040x}",),
        )
        for number in range(1, day - 8)
    ]


def table_of_days(name: str, days: Sequence[SimulatedGrade]) -> Table:
    """The climb for people, and that it did not take place."""
    title = f"SIMULATED: how {name} would climb. Only the visit of day 0 took place; later visits"
    table = Table(title=f"{title} and all customers are made up, on a clock of their own.")
    for column in ("day", "visits", "customers", "rung", "ceiling", "score", "tier", "next rung"):
        table.add_column(column, overflow="fold")
    for one in days:
        numbers = (str(one.day), str(one.visits or "1 (real)"), str(one.customers))
        rung, asks = f"{one.rung} {one.name}", ", ".join(one.missing).replace("_", " ")
        score = f"{one.score:.2f}"
        table.add_row(*numbers, rung, f"{one.ceiling:g}", score, one.tier, asks)
    return table
