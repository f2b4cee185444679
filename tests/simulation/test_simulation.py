"""Ledger, sender and reconciler under schedules that a seed chooses: money and books agree.

`bench/simulation.py` runs more of them, shows one, and counts how soon planted bugs are found.
"""

from dataclasses import replace

import pytest

from tests.simulation.campaign import campaign, collected, first_found, trace
from tests.simulation.kept import kept_seeds
from tests.simulation.mutants import MUTANTS, planted
from tests.simulation.world import run

SCHEDULES = 200
"""Whose crashes and settlements are counted."""

PART, SLOW_PARTS, PARTS = 2_000, 4, 20
"""Schedules of a part, and how many parts the slow suite and the long one have together."""

TRIES = 2_000
"""Schedules in which a planted bug must have been found."""


@pytest.mark.slow
def test_what_was_found_once_is_mended() -> None:
    for seed in kept_seeds():
        outcome = run(seed)
        assert outcome.violation is None, f"seed {seed}: {trace(seed)[-6000:]}"


@pytest.mark.slow
def test_money_books_and_answers_agree_in_every_schedule() -> None:
    outcomes = campaign(range(SCHEDULES))
    found = {outcome.seed: str(outcome.violation) for outcome in outcomes if outcome.violation}
    assert found == {}
    assert sum(outcome.crashes for outcome in outcomes) > SCHEDULES / 10
    assert sum(outcome.settled for outcome in outcomes) > SCHEDULES


@pytest.mark.slow
def test_a_seed_is_one_schedule_step_for_step() -> None:
    for seed in range(10):
        assert trace(seed) == trace(seed)


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_planted_bug_is_found(mutant: str) -> None:
    assert first_found(mutant, [*kept_seeds(), *range(TRIES)]) is not None


@pytest.mark.slow
def test_an_error_of_a_planted_bug_itself_is_no_find(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug whose function takes other arguments than the one it replaces breaks every schedule."""
    name = "sent before it is written down"
    (mutant,) = MUTANTS[name].mutants
    dead = replace(MUTANTS[name], mutants=(replace(mutant, bug=lambda: None),))
    monkeypatch.setitem(MUTANTS, name, dead)
    seeds = range(10)
    with collected(), planted(name):
        assert any("TypeError" in str(run(seed).violation) for seed in seeds)
    assert first_found(name, seeds) is None


@pytest.mark.slow
@pytest.mark.parametrize("part", range(SLOW_PARTS))
def test_money_books_and_answers_agree_in_many_schedules(part: int) -> None:
    agree_in(part)


@pytest.mark.long
@pytest.mark.parametrize("part", range(SLOW_PARTS, PARTS))
def test_money_books_and_answers_agree_in_all_schedules(part: int) -> None:
    agree_in(part)


def agree_in(part: int) -> None:
    outcomes = campaign(range(SCHEDULES + part * PART, SCHEDULES + (part + 1) * PART))
    found = {outcome.seed: str(outcome.violation) for outcome in outcomes if outcome.violation}
    assert found == {}
