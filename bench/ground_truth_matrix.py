"""What the ground truth's rows say: the matrix per kind, means, exposure, area under the curve."""

import json
import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from tests.ground_truth.site import Spec

HONEST_BAR = IMMEDIATE_BAR = 0.95
KIND_BAR = 0.80
AUC_BAR = 0.95
PRIOR = 50.0
CRITICAL_CAP = 35.0
PENDING = frozenset({"evaluation_pending", "unfinished", "waiting_for_budget", "indexing"})


@dataclass(frozen=True)
class Row:
    """One agent at one scheduled time."""

    name: str
    kind: str
    truth: str
    round_h: int
    allow: bool
    score: float
    formula: float
    """The score before caps and ceilings."""
    tier: str
    seconds: float
    harm_h: float = 0.0
    row: str = ""
    rung: int | None = None
    critical: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    is_pending: bool = False

    @property
    def is_harmful(self) -> bool:
        return self.truth != "honest" and self.round_h >= self.harm_h

    def to_json(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False)


def verdict_of(
    spec: Spec,
    round_h: int,
    seconds: float,
    decision: Mapping[str, Any],
    visited: Mapping[str, Any],
    profile: Mapping[str, Any],
) -> Row:
    """What the service's answers say, in one row."""
    formula = formula_of(decision)
    return Row(
        name=spec.name,
        kind=spec.kind,
        truth=spec.truth,
        round_h=round_h,
        allow=bool(decision.get("allow")),
        score=float(decision.get("score") or 0.0),
        formula=formula,
        tier=str(decision.get("tier") or decision.get("code") or decision["status"]),
        seconds=round(seconds, 2),
        harm_h=spec.harm_h,
        row=spec.row,
        rung=_rung(decision),
        critical=critical_of(visited, profile) or _capped(decision, formula),
        reasons=[str(reason)[:160] for reason in decision.get("reasons", ())][:4],
        is_pending=is_pending(decision),
    )


def is_pending(answer: Mapping[str, Any]) -> bool:
    """Whether the service says that it has not finished with this agent."""
    said = {str(answer.get("code")), str(answer.get("evaluation")), str(answer.get("state"))}
    demands = ladder_of(answer).get("nextRung", ())
    is_unknown = not answer.get("allow") and any(d.get("state") == "unknown" for d in demands)
    return is_unknown or bool(said & PENDING) or answer["status"] in {429, 503}


def _rung(decision: Mapping[str, Any]) -> int | None:
    found = ladder_of(decision).get("rung")
    return found if isinstance(found, int) else None


def ladder_of(decision: Mapping[str, Any]) -> Mapping[str, Any]:
    """The ladder's part of an answer; empty in answers of versions without one."""
    found = decision.get("ladder")
    return found if isinstance(found, Mapping) else {}


def is_cloaking(row: Row) -> bool:
    """Whether the agent is said to answer evaluators otherwise than customers."""
    return any("cloak" in text.lower() for text in (*row.critical, *row.reasons))


def formula_of(decision: Mapping[str, Any]) -> float:
    """From the signals' contributions, so that caps and ceilings are left out."""
    given = decision.get("formulaScore")
    if isinstance(given, int | float):
        return float(given)
    points = sum(float(s.get("contribution") or 0.0) for s in decision.get("signals", ()))
    return max(0.0, min(100.0, PRIOR + points))


def critical_of(visited: Mapping[str, Any], profile: Mapping[str, Any]) -> list[str]:
    """Names of critical findings, wherever an answer has them."""
    found = {name for answer in (visited, profile) for name in _critical(answer)}
    return sorted(found)


def _capped(decision: Mapping[str, Any], formula: float) -> list[str]:
    """A critical cap without the finding's name: the first reason says what it was."""
    score = float(decision.get("score") or 0.0)
    if "score" not in decision or score > CRITICAL_CAP or formula <= score + 0.5:
        return []
    return [str(next(iter(decision.get("reasons", ())), "capped"))[:120]]


def _critical(node: object) -> list[str]:
    if isinstance(node, Mapping):
        mine = []
        failed = node.get("outcome") == "fail" or node.get("open") is True
        if failed and node.get("severity") == "critical":
            mine = [str(node.get("name") or node.get("check"))]
        return mine + [name for value in node.values() for name in _critical(value)]
    if isinstance(node, Sequence) and not isinstance(node, str):
        return [name for value in node for name in _critical(value)]
    return []


def auc(good: Sequence[float], bad: Sequence[float]) -> float:
    """How likely a good one has more than a bad one; ties count half."""
    if not good or not bad:
        return float("nan")
    wins = sum((g > b) + 0.5 * (g == b) for g in good for b in bad)
    return wins / (len(good) * len(bad))


def exposure_h(rows: Sequence[Row], until_h: float) -> float:
    """Hours that one agent was let in while it harmed: from a visit to the next."""
    total, ordered = 0.0, sorted(rows, key=lambda row: row.round_h)
    for number, row in enumerate(ordered):
        end = ordered[number + 1].round_h if number + 1 < len(ordered) else until_h
        if row.allow:
            total += max(0.0, end - max(row.round_h, row.harm_h))
    return total


def by_agent(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Rows of each agent, the first first."""
    found: dict[str, list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda r: r.round_h):
        found[row.name].append(row)
    return found


def caught(rows: Sequence[Row]) -> bool | None:
    """Whether a patient agent is denied by its second visit after its harm; None: not yet known."""
    after = [row for row in rows if row.is_harmful]
    if not after:
        return None
    return any(not row.allow for row in after[:2])


@dataclass(frozen=True)
class Kind:
    """A line of the matrix."""

    name: str
    right: int
    of: int
    critical: int
    exposure: tuple[float, float] | None

    @property
    def share(self) -> float:
        return self.right / self.of if self.of else float("nan")


def _honest_kind(name: str, agents: Sequence[Sequence[Row]]) -> Kind:
    right = sum(rows[0].allow for rows in agents)
    critical = sum(any(row.critical for row in rows) for rows in agents)
    return Kind(name, right, len(agents), critical, None)


def _bad_kind(name: str, agents: Sequence[Sequence[Row]], until_h: float) -> Kind:
    hours = [exposure_h(rows, until_h) for rows in agents]
    spent = (statistics.median(hours), max(hours)) if until_h else None
    if agents[0][0].truth == "patient":
        known = [done for rows in agents if (done := caught(rows)) is not None]
        return Kind(name, sum(known), len(known), 0, spent)
    return Kind(name, sum(not rows[0].allow for rows in agents), len(agents), 0, spent)


def print_matrix(
    rows: Sequence[Row], until_h: float, write: Callable[[str], object] = print
) -> bool:
    """The whole report; whether every bar that this run can judge is held."""
    agents = [found for found in by_agent(rows).values() if found]
    counted = [found for found in agents if not found[0].row]
    kinds: dict[tuple[str, str], list[Sequence[Row]]] = defaultdict(list)
    for found in counted:
        kinds["honest" if found[0].truth == "honest" else "bad", found[0].kind].append(found)
    honest = [_honest_kind(k, v) for (t, k), v in sorted(kinds.items()) if t == "honest"]
    bad = [_bad_kind(k, v, until_h) for (t, k), v in sorted(kinds.items()) if t == "bad"]
    _print_kinds("honest: admitted at the first completed evaluation", honest, write)
    _print_kinds("bad: denied (patient: by the second visit after the harm)", bad, write)
    _print_apart([found for found in agents if found[0].row], write)
    return not counted or _print_sums(counted, (honest, bad), until_h, write)


def _print_kinds(title: str, kinds: Sequence[Kind], write: Callable[[str], object]) -> None:
    write(f"\n{title}")
    write(f"  {'kind':20} {'right':>9} {'share':>7} {'critical':>9}  exposure h, median / worst")
    for kind in kinds:
        hours = "" if kind.exposure is None else f"{kind.exposure[0]:.0f} / {kind.exposure[1]:.0f}"
        right = f"{kind.right}/{kind.of}"
        write(f"  {kind.name:20} {right:>9} {kind.share:7.0%} {kind.critical:>9}  {hours}")


def _print_apart(agents: Sequence[Sequence[Row]], write: Callable[[str], object]) -> None:
    write("\nrows of their own (left_out.json)")
    for name in sorted({found[0].row for found in agents}):
        mine = [found for found in agents if found[0].row == name]
        admitted = sum(found[0].allow for found in mine)
        critical = sum(any(row.critical for row in found) for found in mine)
        late = sum(found[-1].allow for found in mine)
        write(f"  {name:20} admitted {admitted}/{len(mine)}, with critical findings {critical};"
              f" at their last visit {late}")  # fmt: skip


def _mean(kinds: Sequence[Kind]) -> float:
    shares = [kind.share for kind in kinds if kind.of]
    return statistics.fmean(shares) if shares else float("nan")


def _print_patient(
    agents: Sequence[Sequence[Row]], until_h: float, write: Callable[[str], object]
) -> None:
    later = [row for found in agents for row in found if row.is_harmful]
    hours = [exposure_h(found, until_h) for found in agents if len(found) > 1]
    if not later or not hours:
        return
    allowed = sum(row.allow for row in later)
    high = sum((row.rung or 0) > 1 for row in later)
    write(f"patient agents while harmful: allowed in {allowed} of {len(later)} visits")
    write(f"patient agents above rung 1 while harmful: in {high} visits")
    worst = max(hours)
    write(f"patient exposure: median {statistics.median(hours):.0f} h, worst {worst:.0f} h")


def _print_sums(
    agents: Sequence[Sequence[Row]],
    kinds: tuple[Sequence[Kind], Sequence[Kind]],
    until_h: float,
    write: Callable[[str], object],
) -> bool:
    honest, bad = kinds
    good = [found[0] for found in agents if found[0].truth == "honest"]
    at_once = [found[0] for found in agents if found[0].truth == "immediate"]
    patient = [found for found in agents if found[0].truth == "patient"]
    admitted = sum(row.allow for row in good) / len(good) if good else float("nan")
    denied = sum(not row.allow for row in at_once) / len(at_once) if at_once else float("nan")
    critical = sum(kind.critical for kind in honest)
    scores = auc([r.score for r in good], [r.score for r in at_once])
    formula = auc([r.formula for r in good], [r.formula for r in at_once])
    least = min((k for k in (*honest, *bad) if k.of), key=lambda k: k.share)
    bars = [
        ("honest admitted", admitted, HONEST_BAR),
        ("immediate bad denied", denied, IMMEDIATE_BAR),
        (f"worst kind ({least.name})", least.share, KIND_BAR),
        ("AUC of the score", scores, AUC_BAR),
        ("AUC of the formula's score", formula, AUC_BAR),
    ]
    write(f"\nmean over kinds: honest {_mean(honest):.1%}, bad {_mean(bad):.1%}")
    write(f"critical findings on honest agents: {critical} of {len(good)} agents (bar: 0)")
    cloaking = sum(any(map(is_cloaking, found)) for found in agents if found[0].truth == "honest")
    write(f"cloaking findings on honest agents: {cloaking} (bar: 0)")
    _print_patient(patient, until_h, write)
    pending = sum(found[0].is_pending for found in agents)
    write(f"unfinished at the last attempt: {pending}")
    took = sorted(found[0].seconds for found in agents)
    write(f"first evaluation: median {took[len(took) // 2]:.1f} s, longest {took[-1]:.1f} s")
    for name, value, bar in bars:
        if math.isnan(value):
            continue  # no agent of this run says anything of it
        write(f"{'held' if value >= bar else 'NOT HELD':9} {name:32} {value:.3f} (bar {bar:g})")
    return critical == 0 and not any(value < bar for _, value, bar in bars)
