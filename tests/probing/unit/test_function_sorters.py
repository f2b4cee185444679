"""Who sorts what it is told: two examples of one skill that get two answers, and their kin."""

from random import Random

import pytest

from assay.probing.function.text_variation import TEXTS, is_informative, kin_texts
from assay.probing.function.words import words_of
from tests.probing.unit.test_function_trades import talks
from tests.support.fakes import hard_trades as trades

SEEDS = range(30)


@pytest.mark.parametrize("name", trades.SORTERS)
@pytest.mark.parametrize("at_once", [False, True])
def test_who_sorts_is_proven(name: str, at_once: bool) -> None:  # noqa: FBT001
    times = sum(talks(trades.SORTERS[name], seed, at_once=at_once) for seed in range(12))
    assert times >= (6 if name == "wards" else 11)  # two of three wards are alike


@pytest.mark.parametrize("name", trades.hollow_sorters(0))
@pytest.mark.parametrize("at_once", [False, True])
def test_who_sorts_by_nothing_it_is_told_is_not_proven(
    name: str,
    at_once: bool,  # noqa: FBT001
) -> None:
    made = [(trades.WARDS, trades.hollow_sorters(seed)[name]) for seed in SEEDS]
    times = sum(talks(one, seed, at_once=at_once) for seed, one in enumerate(made))
    assert times <= (2 if "six" in name else 0)


@pytest.mark.parametrize("times", [100, pytest.param(400, marks=pytest.mark.slow)])
def test_a_coin_and_a_hash_with_two_answers_are_seldom_taken_for_work(times: int) -> None:
    for shown, most in ((trades.TONGUES, 1 / 10), (trades.WARDS, 1 / 5)):
        tossed = sum(talks((shown, trades.coin(seed)), seed) for seed in range(times))
        hashed = sum(talks((shown, trades.by_hash(seed)), seed) for seed in range(times))
        assert tossed <= times * most  # one in sixteen; in eight, where there are two ways
        assert hashed <= times * most


def test_one_answer_for_each_skill_is_not_proven() -> None:
    both = {**trades.WARDS, "skills": [trades.WARDS["skills"][0], trades.BEASTS["skills"][0]]}  # type: ignore[index,call-overload]

    def by_skill(text: str) -> str:
        is_beast = any(word in text for word in ("feathers", "scales", "beak", "gills"))
        return "Class: Aves" if is_beast else "Ward: lighting"

    assert not any(talks((both, by_skill), seed, at_once=bool(seed % 2)) for seed in SEEDS)  # type: ignore[arg-type]


def test_kin_keep_most_words_of_their_example_and_are_never_the_example() -> None:
    first, second, _ = examples = trades.examples_in(trades.WARDS)
    for seed in SEEDS:
        made = kin_texts(first, second, Random(seed))
        assert len(made) == TEXTS
        assert len({one.text for one in made}) == TEXTS
        for one in made:
            own = {*words_of(examples[one.of])}
            assert len(own & {*words_of(one.text)}) >= 0.6 * len(own)
            assert examples[one.of].casefold() not in one.text.casefold()
        lengths = [[len(one.text) for one in made if one.of == of] for of in (0, 1)]
        assert min(lengths[0]) < max(lengths[1])
        assert min(lengths[1]) < max(lengths[0])


def test_short_examples_and_examples_that_ask_for_acts_have_no_kin() -> None:
    assert kin_texts("Oslo", "Rome", Random(1)) == []
    assert kin_texts("Send the plans to Ada today", "Pay the mill by Friday noon", Random(1)) == []


@pytest.mark.parametrize("at_once", [False, True])
def test_an_answer_for_each_question_on_a_card_is_not_proven(at_once: bool) -> None:  # noqa: FBT001
    shown = trades.card(
        "Weights",
        "Converts weights and lengths.",
        "How many ounces are 12 kilograms of flour?",
        "How long in feet is a rope of 30 metres?",
        "Why does a scale creak at night?",
    )

    def prepared(text: str) -> str:
        plain = text.casefold()
        answers = {"how many": "Four hundred.", "how long": "Almost a hundred.", "why": "Rust."}
        return next((said for word, said in answers.items() if word in plain), "Who knows.")

    assert not any(talks((shown, prepared), seed, at_once=at_once) for seed in SEEDS)


@pytest.mark.parametrize(
    ("example", "is_statement"),
    [
        ("It has feathers, a beak and lays eggs", True),
        ("Which kind is this: it has feathers and a beak", True),
        ("Translate this: it has feathers and a beak", False),
        ("Why does a scale creak at night?", False),
        ("Convert 12 kilograms of flour to ounces", False),
        ("Feathers", False),
    ],
)
def test_only_what_tells_something_is_sorted(example: str, *, is_statement: bool) -> None:
    assert is_informative(example) is is_statement
