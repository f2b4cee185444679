"""Who arranges what it was given: what a template that inserts it cannot do."""

from random import Random

import pytest

from assay.common.json import JsonObject
from assay.probing.function.talking import initials_in, rearranged
from tests.probing.unit.test_function_trades import talks, works
from tests.support.fakes import hard_trades as trades

SEEDS = range(20)


@pytest.mark.parametrize("at_once", [False, True])
def test_who_writes_initials_is_proven(at_once: bool) -> None:  # noqa: FBT001
    made = (trades.CITES, trades.cites)
    assert sum(talks(made, seed, at_once=at_once) for seed in SEEDS) >= 0.8 * len(SEEDS)


def test_a_tool_that_writes_initials_is_proven() -> None:
    proven = [works(trades.CITE, trades.reference, seed) for seed in SEEDS]
    assert sum(proven) >= 0.8 * len(SEEDS)


def test_who_inserts_values_in_another_order_is_not_proven() -> None:
    for seed in SEEDS:
        assert not talks((trades.CITES, trades.cites_by_template), seed)
        assert not works(trades.CITE, trades.reference_by_template, seed)
        assert not works(trades.CITE, shouts, seed)


def shouts(given: JsonObject) -> str:
    return f"{given['year']}: {given['title']}; {given['author']}".upper()


def test_initials_stand_for_names_that_are_left_out() -> None:
    asked = "Reference for: Jane Doe, The Quiet Harbour, 1999"
    assert initials_in("Doe, J. (1999). The Quiet Harbour", asked) == {"~j doe"}
    assert initials_in("J. Doe: The Quiet Harbour", asked) == {"~j doe"}
    assert initials_in("Jane Doe (J. Doe)", asked) == frozenset()
    assert initials_in(asked, asked) == frozenset()


def test_a_value_is_rearranged_where_its_words_stand_in_another_order() -> None:
    assert rearranged("Doe, Jane: Harbour", "Jane Doe") == {"~doe jane"}
    assert rearranged("on 14/03/2024", "2024-03-14") == {"~14 03 2024"}
    assert rearranged("Jane Doe, Jane", "Jane Doe") == frozenset()
    assert rearranged("Doe and Jane", "Jane Doe") == frozenset()
    assert rearranged("lamp", "lamp") == frozenset()


def test_nothing_of_a_value_is_no_arrangement() -> None:
    lots = Random(1)
    for _ in range(50):
        text = " ".join(lots.choices("abcdefgh", k=8))
        assert rearranged(text, "") == initials_in(text, "") == frozenset()
