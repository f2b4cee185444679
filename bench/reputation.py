"""What known attacks on feedback do to our value, beside the plain on-chain average.

    python bench/reputation.py [--seed N] [--json]

Every attack is generated feedback, weighed by the real signal and scored with the default weights
beside a fixed sandbox result. Ends with status 1 when a bar is not held:
1,000 sybil reviews move the score by less than 2 points; 500 bad-mouthing reviews cost an honest
agent less than 5; a betrayal shows within 20 honest reviews. Source of the attacks: facts,
security 3.
"""

import argparse
import json
import random
import sys
from dataclasses import dataclass, replace
from decimal import Decimal

from assay.chains.model import Feedback
from assay.chains.reputation import score_of
from assay.kit.json import JsonObject, JsonValue
from assay.trust.model import Collected, Evidence, SignalName, Weighed
from assay.trust.scoring import DEFAULT_WEIGHTS, score
from assay.trust.signals.registry_8004 import SIGNAL, naive_mean

NOW_S = 1_790_000_000
DAY_S = 86_400
SANDBOX = Collected(SignalName.SANDBOX, Evidence({}), Weighed(80.0, 0.8))
SYBIL_BAR, BAD_MOUTH_BAR, BETRAYAL_BAR, BETRAYAL_REVIEWS = 2.0, 5.0, 20.0, 20


@dataclass(frozen=True)
class Review:
    """One reviewer's voice and past; times are days ago."""

    value: int
    given: float
    transactions: int
    first: float
    rated: tuple[int, ...] = ()
    relation: str | None = None


@dataclass(frozen=True)
class Row:
    """What an attack did; scores are over sandbox and feedback together."""

    attack: str
    naive_before: float
    naive_after: float
    ours_before: float
    ours_after: float
    score_before: float
    score_after: float
    bar: str
    held: bool | None


def evidence_of(reviews: list[Review]) -> Evidence:
    """The signal's evidence of these reviews."""
    reviewers: dict[str, JsonValue] = {}
    for number, review in enumerate(reviews):
        row: dict[str, JsonValue] = {
            "value": str(review.value),
            "given": NOW_S - int(review.given * DAY_S),
            "first": NOW_S - int(review.first * DAY_S),
            "transactions": review.transactions,
            "rated": [str(agent) for agent in review.rated],
        }
        reviewers[f"0x{number:040x}"] = row | (
            {"relation": review.relation} if review.relation else {}
        )
    data: JsonObject = {
        "registered": True,
        "asOf": NOW_S,
        "timesKnownSince": NOW_S - 1000 * DAY_S,
        "reviewers": reviewers,
        "further": {"reviewers": 0, "sum": "0"},
        "entries": len(reviews),
        "discarded": 0,
    }
    return Evidence(data)


def graded(reviews: list[Review]) -> tuple[float, float, float]:
    """Plain average, our value, and the score."""
    evidence = evidence_of(reviews)
    weighed = SIGNAL.weigh(evidence, {})
    found = [SANDBOX, Collected(SignalName.REGISTRY_8004, evidence, weighed)]
    return naive_mean(evidence.data), weighed.value, score(found, {}, DEFAULT_WEIGHTS).value


def honest(
    dice: random.Random, count: int, mean: int, newest: float, oldest: float
) -> list[Review]:
    """People with a past: tens of transactions, months on the registry, other agents rated."""
    made: list[Review] = []
    for _ in range(count):
        given = dice.uniform(newest, oldest)
        made.append(
            Review(
                value=max(0, min(100, round(dice.gauss(mean, 6)))),
                given=given,
                transactions=round(10 ** dice.uniform(1.0, 2.6)),
                first=given + dice.expovariate(1 / 60),
                rated=tuple(dice.sample(range(1000, 2000), dice.choice((0, 1, 1, 2, 3, 5)))),
            )
        )
    return made


def fresh(dice: random.Random, count: int, value: int, spread_days: float = 5.0) -> list[Review]:
    """Accounts made for the purpose: one transaction each, the review."""
    times = [dice.uniform(0, spread_days) for _ in range(count)]
    return [Review(value, t, 1, t) for t in times]


def attacks(dice: random.Random) -> list[Row]:
    """Every attack on a fresh set of honest reviews."""
    poor, good = honest(dice, 12, 35, 1, 120), honest(dice, 12, 88, 1, 120)
    ring = tuple(range(2000, 2006))
    colluding = [
        Review(100, dice.uniform(0, 30), 60, 40, (*dice.sample(ring, 5), ring[0]))
        for _ in range(30)
    ]
    colluding = [replace(r, rated=tuple(sorted(set(r.rated)))) for r in colluding]
    burst = [Review(100, 1 + n / 1e4, 40, 12, (3000 + n,)) for n in range(60)]
    mutual = [replace(r, value=100, relation="reciprocal") for r in honest(dice, 10, 100, 1, 60)]
    return [
        _moved("sybil ring: 1,000 fresh accounts praise a poor agent", poor,
               fresh(dice, 1000, 100), SYBIL_BAR),
        _moved("sybil ring: 1,000 fresh accounts, nobody else", [], fresh(dice, 1000, 100),
               SYBIL_BAR),
        _moved("bad-mouthing: 500 fresh accounts against a good agent", good,
               fresh(dice, 500, 0), BAD_MOUTH_BAR),
        _moved("collusion: 30 accounts that rate the same agents", poor, colluding, None),
        _moved("burst: 60 accounts within ten minutes", poor, burst, None),
        _moved("reciprocity: 10 reviewers rated by the agent in turn", poor, mutual, None),
        _inflated(poor),
        _whitewashed(honest(dice, 20, 12, 1, 200)),
        _betrayal(dice),
    ]  # fmt: skip


def _moved(name: str, before: list[Review], more: list[Review], bar: float | None) -> Row:
    was, now = graded(before), graded(before + more)
    moved = abs(now[2] - was[2])
    held = None if bar is None else moved < bar
    return _row(name, was, now, "" if bar is None else f"score moves {moved:.2f} < {bar:g}", held)


def _inflated(before: list[Review]) -> Row:
    """Values off the scale, which the registry stores and averages: the plain mean is of those."""
    values = [10**18, 10**18, -(10**18), 10**6, 101, 250]
    entries = [
        Feedback(f"0x{n:040x}", 1, Decimal(v), 0, "starred", "") for n, v in enumerate(values)
    ]
    taken = [entry for entry in entries if score_of(entry) is not None]
    was = graded(before)
    now = graded(before + [Review(int(entry.value), 1, 1, 1) for entry in taken])
    plain = (was[0] * len(before) + sum(values)) / (len(before) + len(values))
    name = "value inflation: 1e18, negative, wrong decimals"
    return _row(name, was, (plain, *now[1:]), "every one discarded", held=not taken)


def _whitewashed(bad: list[Review]) -> Row:
    was, now = graded(bad), graded([])
    return _row(
        "whitewashing: a new id after a bad record", was, now, "no better than unknown", None
    )


def _betrayal(dice: random.Random) -> Row:
    past = honest(dice, 200, 93, 5, 300)
    turned = sorted(honest(dice, BETRAYAL_REVIEWS, 8, 0, 4), key=lambda r: -r.given)
    was = graded(past)
    needed = next(
        (n for n in range(1, len(turned) + 1)
         if was[1] - graded(past + turned[:n])[1] >= BETRAYAL_BAR),
        None,
    )  # fmt: skip
    shown = f"value fell {BETRAYAL_BAR:g} after {needed} of {BETRAYAL_REVIEWS} reviews"
    now = graded(past + turned)
    return _row("slow-burn betrayal: 200 good reviews, then 20 bad", was, now, shown,
                needed is not None)  # fmt: skip


def _row(
    name: str,
    was: tuple[float, float, float],
    now: tuple[float, float, float],
    bar: str,
    held: bool | None,  # noqa: FBT001 - a column
) -> Row:
    return Row(name, was[0], now[0], was[1], now[1], was[2], now[2], bar, held)


def _plain(value: float) -> str:
    return f"{value:6.1f}" if abs(value) < 1000 else f"{value:6.0e}"


def main() -> int:
    """Print the table; 1 when a bar is not held."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--seed", type=int, default=8004)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = attacks(random.Random(options.seed))
    if options.json:
        print(json.dumps([vars(row) for row in rows], indent=1))
    else:
        print(f"{'attack':58} {'plain average':>15} {'our value':>15} {'score':>15}  bar")
        for row in rows:
            verdict = {None: "", True: " held", False: " NOT HELD"}[row.held]
            print(
                f"{row.attack:58} {row.naive_before:6.1f} ->{_plain(row.naive_after)}"
                f" {row.ours_before:6.1f} ->{row.ours_after:6.1f}"
                f" {row.score_before:6.1f} ->{row.score_after:6.1f}  {row.bar}{verdict}"
            )
    return int(any(row.held is False for row in rows))


if __name__ == "__main__":
    sys.exit(main())
