"""`assay evaluate`, `assay snapshots verify`, `assay replay`: grades, and how they arise."""

import json
import sys
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from assay.app import App
from assay.cli.command import FAILED, AsJson, complain, with_app
from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.evaluation.demands import ladder_from
from assay.evaluation.model import Evaluation, Score, Snapshot
from assay.evaluation.recompute import ReplayResult
from assay.evaluation.scoring import ScoringPolicy, TierRow, grade_score, tiers_from, weights_from

FAULTS_SHOWN = 20


def evaluate(
    agent: Annotated[str, Parameter(help="Token id, or a key agent's address.")],
    *,
    chain: Annotated[
        str | None, Parameter(help="Slug of the chain; default: the default one.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Evaluate an agent now and print every signal's part in its score."""

    async def work(app: App) -> int:
        networks = app.networks
        network = networks.default if chain is None else networks.by_slug(chain)
        console = Console(stderr=True)
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        with Progress(*columns, console=console, transient=True) as progress:
            progress.add_task(f"evaluating {agent} on {network.slug}")
            subject = await app.subjects.find(network, agent)
            completed = await app.evaluator.evaluate(subject, app.settings.sandbox_evaluation_s)
        evaluation = completed.evaluation
        found = grade_score(
            evaluation.agent_id, evaluation.collected, evaluation.unavailable, app.rules
        )
        if as_json:
            printed = _printed(evaluation, found, completed.snapshot)
            sys.stdout.write(json.dumps(printed, indent=2) + "\n")
        else:
            _print(evaluation, found, completed.snapshot)
        return 0

    return with_app(work)


def verify_snapshots() -> int:
    """Recompute every snapshot from its stored evidence; return 1 if one does not verify."""

    async def work(app: App) -> int:
        checked = broken = with_data = 0
        async for one in app.audit.snapshots():
            checked += 1
            with_data += one.has_data
            broken += bool(one.faults)
            for fault in one.faults if broken <= FAULTS_SHOWN else ():
                name = f"{one.snapshot.subject_key} {one.snapshot.snapshot_hash}"
                complain(f"snapshot {one.snapshot.id} of {name}: {fault}")
        said = f"{checked} snapshots recomputed, {with_data} with their encrypted data"
        sys.stdout.write(f"{said}; {broken} do not hold\n")
        return FAILED if broken else 0

    return with_app(work)


def replay(
    *,
    weights: Annotated[str | None, Parameter(help='JSON, such as {"8004": 40}.')] = None,
    tiers: Annotated[
        str | None, Parameter(help="JSON rows [score, tier, riskLevel, route], best first.")
    ] = None,
    ladder: Annotated[str | None, Parameter(help='JSON, such as {"steady_visits": 7}.')] = None,
    everything: Annotated[
        bool, Parameter(name="--all", help="Unchanged grades too.", negative="")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Score stored evidence with other weights, tiers or ladder; change nothing."""

    async def work(app: App) -> int:
        rules = ScoringPolicy(
            weights=app.rules.weights if weights is None else weights_from(_weights(weights)),
            tiers=app.rules.tiers if tiers is None else tiers_from(_rows(tiers)),
            ladder=app.rules.ladder if ladder is None else ladder_from(_ladder(ladder)),
        )
        rows = await app.audit.replay(rules)
        shown = [row for row in rows if everything or row.changed]
        if as_json:
            sys.stdout.write(json.dumps([_change(row) for row in shown], indent=2) + "\n")
        else:
            _print_changes(shown)
            changed = sum(row.changed for row in rows)
            sys.stdout.write(f"{changed} of {len(rows)} agents would be graded differently\n")
        return 0

    return with_app(work)


def _weights(text: str) -> dict[str, float]:
    """Raises `ValueError` with a plain sentence."""
    value = _json(text, "--weights")
    named = value.items() if is_object(value) else ()
    numbers = ((n, w) for n, w in named if isinstance(w, int | float))
    weights = {n: float(w) for n, w in numbers if not isinstance(w, bool)}
    if not is_object(value) or len(weights) != len(value):
        message = '--weights is a JSON object of numbers, such as {"8004": 40}'
        raise ValueError(message)
    return weights


def _ladder(text: str) -> JsonObject:
    """Raises `ValueError` with a plain sentence."""
    value = _json(text, "--ladder")
    if not is_object(value):
        raise ValueError('--ladder is a JSON object of numbers, such as {"steady_visits": 7}')
    return value


def _rows(text: str) -> list[TierRow]:
    """Raises `ValueError` with a plain sentence."""
    value = _json(text, "--tiers")
    rows = [_row(row) for row in value] if is_array(value) else []
    if not rows:
        raise ValueError("--tiers is a JSON list of rows [score, tier, riskLevel, route]")
    return rows


def _row(row: JsonValue) -> TierRow:
    cells = list(row) if is_array(row) else []
    match cells:
        case [int() | float() as minimum, str() as tier, str() as risk, str() as where]:
            return minimum, tier, risk, where
        case _:
            raise ValueError("a row of --tiers is [score, tier, riskLevel, route]")


def _json(text: str, option: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError(f"{option} is not JSON") from None


def _printed(evaluation: Evaluation, found: Score, taken: Snapshot) -> JsonObject:
    return {
        "agentId": evaluation.agent_id,
        "chain": evaluation.chain,
        "score": found.value,
        "tier": evaluation.grade.tier,
        "riskLevel": evaluation.grade.risk_level,
        "route": evaluation.grade.route,
        "scoreLow": found.low,
        "scoreHigh": found.high,
        "rung": found.place.rung,
        "rungName": found.place.name,
        "ceiling": found.place.ceiling,
        "unconfirmed": found.place.is_unconfirmed,
        "beforeCeiling": found.before_ceiling,
        "checks": {"made": found.checks_made, "applicable": found.checks_applicable},
        "nextRung": [{"name": d.name, "asks": d.asks} for d in found.place.next_demands],
        "bonus": found.bonus,
        "hiddenBonus": found.hidden_bonus,
        "signals": [
            {
                "signal": c.signal.value,
                "value": c.value,
                "weight": c.weight,
                "confidence": c.confidence,
                "contribution": c.points,
                "reasons": [*c.reasons],
            }
            for c in found.contributions
        ],
        "unavailable": {name.value: why for name, why in evaluation.unavailable.items()},
        "reasons": [*found.reasons],
        "snapshotHash": taken.snapshot_hash,
        "evidenceHash": taken.evidence_hash,
    }


def _print(evaluation: Evaluation, found: Score, taken: Snapshot) -> None:
    grade = evaluation.grade
    title = f"{evaluation.agent_id} on {evaluation.chain}: {found.value:.2f}, {grade.tier}"
    table = Table(title=f"{title} ({grade.risk_level}, {grade.route})")
    for column in ("signal", "value", "weight", "confidence", "points", "why"):
        table.add_column(column, overflow="fold")
    for c in sorted(found.contributions, key=lambda c: -abs(c.points)):
        figures = (f"{c.value:g}", f"{c.weight:.2f}", f"{c.confidence:.2f}", f"{c.points:+.2f}")
        table.add_row(c.signal.value, *figures, "\n".join(c.reasons))
    for name, why in sorted(evaluation.unavailable.items()):
        table.add_row(name.value, "-", "-", "0.00", "+0.00", f"not available: {why}")
    if found.bonus:
        table.add_row("personhood", "", "", "", f"{found.bonus:+.2f}", "a proven human")
    for cap in found.caps:
        table.add_row("cap", f"{cap.score:g}", "", "", "", cap.reason)
    place = found.place
    if found.before_ceiling > found.value:
        table.add_row("ceiling", f"{place.ceiling:g}", "", "", "", f"rung {place.rung}")
    Console().print(table)
    made = f"{found.checks_made} of {found.checks_applicable} applicable checks could be made"
    sys.stdout.write(
        f"rung {place.rung} ({place.name}), ceiling {place.ceiling:g}; {made};"
        f" score from {found.low:.2f} to {found.high:.2f}\n"
    )
    for demand in place.next_demands:
        sys.stdout.write(f"  the next rung asks: {demand.asks}\n")
    sys.stdout.write(f"snapshot {taken.snapshot_hash}\nevidence {taken.evidence_hash}\n")


def _change(row: ReplayResult) -> JsonObject:
    return {
        "subject": row.evaluation.subject_key,
        "score": row.evaluation.score,
        "tier": row.evaluation.grade.tier,
        "newScore": row.score,
        "newTier": row.tier,
        "rung": row.evaluation.rung,
        "newRung": row.rung,
    }


def _print_changes(rows: list[ReplayResult]) -> None:
    table = Table()
    for column in ("agent", "score", "tier", "would be", "tier then"):
        table.add_column(column, overflow="fold")
    for row in rows:
        new = "-" if row.score is None else f"{row.score:.2f}"
        old = f"{row.evaluation.score:.2f}"
        table.add_row(
            row.evaluation.subject_key, old, row.evaluation.grade.tier, new, row.tier or "-"
        )
    if rows:
        Console().print(table)
