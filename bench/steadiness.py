"""How steady verdicts are on agents that fail a share of their calls.

    ./.venv/bin/python bench/steadiness.py                    # 200 runs of each kind: minutes
    ./.venv/bin/python bench/steadiness.py --keep FOLDER      # keeps the real visits for later

First real visits, announced and not, to real agents that answer 503 to a share of requests; then
simulated lives that draw from these visits. What is made of a visit, and when the next one is, is
the service's own code. Verdicts count from the first that found the agent there.

Prints each bar with its figure; ends with status 1 where one is not held.
"""

import argparse
import asyncio
import random
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "src")]

from bench.steadiness_visits import DOMAINS, SeenVisit, all_probes, collect  # noqa: E402

from assay.evaluation.model import Evidence  # noqa: E402
from assay.evaluation.schedule import ENROLLED, REST  # noqa: E402
from assay.probing.ports import Probe  # noqa: E402
from tests.support.fakes.visited_life import ALLOWED_FROM, Draw, VisitedLife  # noqa: E402

HEALTHY, FEW, MANY, BROKEN = 0.0, 0.02, 0.3, 1.0
FLAPPING = (0.1, 0.3, 0.5)
SHARES = (HEALTHY, FEW, *FLAPPING, BROKEN)
"""Of calls that fail."""

TRIGGERS = 50
EVERY_H = (1 / 60, 1.5)
"""Between triggers: all within an hour, and so that each adds evidence."""

FLIPS_MAX, DEVIATION_MAX, RUNS_SHARE = 1, 1.0, 0.95


@dataclass(frozen=True)
class Agents:
    """Makes agents whose visits are drawn from real ones."""

    visits: Mapping[tuple[str, float, bool], Sequence[Evidence]]
    probes: Mapping[str, Probe]

    def new(self, kind: str, failing: float, seed: str, rank: int = ENROLLED) -> VisitedLife:
        """An agent that fails so many of its calls."""
        urls = tuple({str(v["service"]) for v in self._healthy(kind)})
        return VisitedLife(self.draw(kind, failing, seed), self.probes, seed, rank, urls)

    def draw(self, kind: str, failing: float, seed: str) -> Draw:
        """What its visits see."""
        chance = random.Random(f"{kind} {failing} {seed}")
        return lambda announced: chance.choice(self.visits[kind, failing, announced])

    def _healthy(self, kind: str) -> Sequence[Mapping[str, object]]:
        return self.visits[kind, HEALTHY, True][0].data["function"]  # type: ignore[return-value]


@dataclass(frozen=True)
class Bar:
    """One figure beside what it has to be."""

    name: str
    figure: str
    is_held: bool


async def triggered(life: VisitedLife, every_h: float, *, visits: bool) -> list[float]:
    """The score after each of the triggers that had a completed evaluation."""
    scores: list[float] = []
    for _ in range(TRIGGERS):
        await life.pass_hours(every_h, visits=visits)
        await life.trigger()
        scores += [life.score] if life.verdicts else []
    return scores


def flips(scores: Sequence[float]) -> int:
    """How often `allow` changed."""
    allowed = [score >= ALLOWED_FROM for score in scores]
    return sum(a != b for a, b in pairwise(allowed))


async def trigger_bars(agents: Agents, kind: str, runs: int) -> list[Bar]:
    """Triggers alone, at two paces; and beside the visits of the scheduler."""
    found: list[Bar] = []
    for failing in FLAPPING:
        for every_h, visits in ((EVERY_H[0], False), (EVERY_H[1], False), (EVERY_H[1], True)):
            rows = [
                await triggered(agents.new(kind, failing, f"{n}", REST), every_h, visits=visits)
                for n in range(runs)
            ]
            beside = "beside scheduled visits" if visits else "alone"
            name = (
                f"{kind} failing {failing:.0%}: {TRIGGERS} triggers each {every_h:.2g} h {beside}"
            )
            found.append(trigger_bar(name, rows, only_flips=visits))
    return found


def trigger_bar(name: str, rows: Sequence[Sequence[float]], *, only_flips: bool) -> Bar:
    """What so many lives show; a visit that we timed may change a score by more."""
    turned = [flips(row) for row in rows]
    spread = [statistics.pstdev(row) for row in rows if row] or [0.0]
    steady = sum(turns <= FLIPS_MAX for turns in turned) / len(turned)
    narrow = sum(value <= DEVIATION_MAX for value in spread) / len(spread)
    figure = f"at most one flip in {steady:.1%} (worst {max(turned)})"
    if only_flips:
        return Bar(name, figure, steady >= RUNS_SHARE)
    figure += f", deviation at most 1 in {narrow:.1%} (worst {max(spread):.2f})"
    return Bar(name, figure, min(steady, narrow) >= RUNS_SHARE)


async def admitted(agents: Agents, kind: str, failing: float, runs: int) -> float:
    """Share of runs in which the agent is let in after five scheduled visits."""
    allowed = 0
    for number in range(runs):
        life = agents.new(kind, failing, f"five {number}")
        await life.trigger()
        await life.until_scheduled(5)
        allowed += life.is_allowed
    return allowed / runs


async def five_bars(agents: Agents, kind: str, runs: int) -> list[Bar]:
    """Who is let in after five scheduled visits."""
    found: list[Bar] = []
    for failing in SHARES[:-1]:
        share = await admitted(agents, kind, failing, runs)
        held = share >= RUNS_SHARE if failing <= FEW else True
        held = share <= 1 - RUNS_SHARE if failing >= MANY else held
        name = f"{kind} failing {failing:.0%}: after 5 scheduled visits"
        found.append(Bar(name, f"admitted in {share:.1%}", held))
    return found


async def repair_bars(agents: Agents, kind: str, runs: int) -> list[Bar]:
    """How soon a repaired agent is back, and one that broke is denied."""
    back = denied = 0
    for number in range(runs):
        life = agents.new(kind, BROKEN, f"broken {number}")
        await life.trigger()
        await life.until_scheduled(3)
        life.draw = agents.draw(kind, HEALTHY, f"repaired {number}")
        await life.until_scheduled(3)
        back += life.is_allowed
        life.draw = agents.draw(kind, BROKEN, f"broken again {number}")
        await life.until_scheduled(2)
        denied += not life.is_allowed
    return [
        Bar(
            f"{kind}: repaired, 3 scheduled visits",
            f"back in {back / runs:.1%}",
            back >= RUNS_SHARE * runs,
        ),
        Bar(
            f"{kind}: broken, 2 scheduled visits", f"denied in {denied / runs:.1%}", denied == runs
        ),
    ]


def grouped(visits: Sequence[SeenVisit]) -> dict[tuple[str, float, bool], list[Evidence]]:
    """By kind, share and manner."""
    found: dict[tuple[str, float, bool], list[Evidence]] = defaultdict(list)
    for seen in visits:
        found[seen.kind, seen.failing, seen.announced].append(seen.evidence())
    return found


async def run(options: argparse.Namespace) -> bool:
    """Print all bars; whether they are held."""
    folder = options.keep or Path(tempfile.mkdtemp(prefix="steadiness-"))
    folder.mkdir(parents=True, exist_ok=True)
    visits = await collect(folder, tuple(DOMAINS), SHARES, options.visits)
    agents = Agents(grouped(visits), all_probes(folder))
    is_held = True
    for kind in DOMAINS:
        for make in (trigger_bars, five_bars, repair_bars):
            for bar in await make(agents, kind, options.runs):
                print(
                    f"{'held' if bar.is_held else 'NOT HELD':9} {bar.name}: {bar.figure}",
                    flush=True,
                )
                is_held = is_held and bar.is_held
    return is_held


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--visits", type=int, default=40, help="real ones of each sort")
    parser.add_argument("--keep", type=Path, help="folder for the real visits")
    sys.exit(0 if asyncio.run(run(parser.parse_args())) else 1)


if __name__ == "__main__":
    main()
