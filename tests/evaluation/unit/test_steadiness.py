"""Agents that lose a share of their calls: who is let in, and how often that changes.

A few lives of each; `bench/steadiness.py` has many, drawn from real visits.
"""

import random
from itertools import pairwise

import pytest

from assay.common.json import JsonObject
from assay.evaluation.model import Evidence
from assay.evaluation.schedule import REST
from tests.evaluation.unit.test_accumulate import NAMES, PROBES
from tests.support.fakes.ladder import proven
from tests.support.fakes.visited_life import URL, Draw, VisitedLife

LIVES = 5
CALLS = 12


def losing(share: float, seed: str) -> Draw:
    """Visits of an agent that loses that share of its calls."""
    chance = random.Random(f"{share} {seed}")

    def draw(announced: bool) -> Evidence:  # noqa: FBT001 - the shape of `Draw`
        def lost() -> bool:
            return chance.random() < share

        shown = proven(URL)
        if not announced:
            del shown["control"]
        if lost() and lost():
            shown["function"] = [{"service": URL, "kind": "a2a", "state": "refuses", "why": ""}]
        seen: dict[str, JsonObject] = {name: {"ok": not lost()} for name in NAMES if not lost()}
        seen |= {"reachable": {"ok": not (lost() and lost())}, "leaks": {"ok": True}}
        calls = {"made": CALLS, "failed": sum(lost() for _ in range(CALLS))}
        return Evidence(
            {"status": "tested", "why": None, "probes": seen, **shown}, 20, {"calls": calls}
        )

    return draw


def lives(share: float, rank: int = 1) -> list[VisitedLife]:
    return [VisitedLife(losing(share, f"{n}"), PROBES, f"{n}", rank) for n in range(LIVES)]


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5])
async def test_fifty_triggers_flip_allow_once_at_most(share: float) -> None:
    for life in lives(share, REST):
        for _ in range(50):
            await life.pass_hours(1.5)
            await life.trigger()
        allowed = [score >= 65 for _, score, _ in life.verdicts]
        assert sum(a != b for a, b in pairwise(allowed)) <= 1


async def test_who_loses_many_calls_is_denied_after_five_visits_and_who_loses_few_is_not() -> None:
    for share, is_allowed in ((0.3, False), (0.0, True)):
        for life in lives(share):
            await life.trigger()
            await life.until_scheduled(5)
            assert life.is_allowed == is_allowed
    found = lives(0.02)
    for life in found:
        await life.trigger()
        await life.until_scheduled(5)
    assert sum(life.is_allowed for life in found) >= LIVES - 1


async def test_a_repaired_agent_is_back_in_three_visits_and_a_broken_one_denied_in_two() -> None:
    for number, life in enumerate(lives(0.9)):
        await life.trigger()
        await life.until_scheduled(3)
        assert not life.is_allowed
        life.draw = losing(0.0, f"repaired {number}")
        await life.until_scheduled(3)
        assert life.is_allowed
        life.draw = losing(0.9, f"broken {number}")
        await life.until_scheduled(2)
        assert not life.is_allowed
