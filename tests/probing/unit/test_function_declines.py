"""Results that are refusals, what they show of how to ask, and arguments that fit one another."""

from random import Random

import pytest

from assay.common.json import JsonObject
from assay.probing.function.arguments import tied, way_of
from assay.probing.function.choosing import Takes, other_arguments, shown_in
from assay.probing.function.words import declines
from tests.probing.unit.test_function_conversations import proven
from tests.probing.unit.test_function_trades import works
from tests.support.fakes import hard_trades as trades

SEEDS = range(20)


@pytest.mark.parametrize("name", trades.TOOLS)
def test_who_says_in_a_result_how_to_be_asked_is_asked_so(name: str) -> None:
    one, work = trades.TOOLS[name]
    assert sum(works(one, work, seed) for seed in SEEDS) >= 0.8 * len(SEEDS)


def says_fields(_: JsonObject) -> str:
    return "five fields expected, such as 10 4 * * 2"


def quotes_plan(given: JsonObject) -> str:
    return f"cannot parse {given}"


@pytest.mark.parametrize(
    ("one", "work"),
    [
        (trades.ROUTES, trades.refuses_roads),
        (trades.PLANS, says_fields),
        (trades.PLANS, quotes_plan),
    ],
)
def test_who_only_refuses_in_results_is_not_proven(one: trades.McpTool, work: trades.Work) -> None:
    assert not any(works(one, work, seed) for seed in SEEDS)


def test_refusals_that_differ_are_no_work() -> None:
    def refuses(given: JsonObject) -> str:
        reasons = ("unreadable plan, five fields expected", "the hours must be written like 09:30")
        return reasons[len(str(given)) % 2]

    assert not any(works(trades.PLANS, refuses, seed) for seed in SEEDS)
    assert not any(works(trades.PLANS, trades.refuses_in_turn(), seed) for seed in SEEDS)


def test_refusals_that_differ_are_no_answers_of_one_who_is_spoken_to() -> None:
    shown = trades.card("Bell", "Tells when bells ring.", "When is the bell of Oslo heard?")

    def refuses(text: str) -> str:
        return (
            "I cannot read that place; it must be written like N4 W7"
            if sum(map(ord, text)) % 2
            else "Unreadable hours: expected HH:MM, on the clock of the tower"
        )

    assert not any(proven(refuses, seed, shown) for seed in SEEDS)


@pytest.mark.parametrize(
    "said",
    [
        "cannot read the road 'x'; write it as A-B: 4",
        "five fields expected",
        "expected HH:MM",
        "The code must be like AB-12.",
        "Kann 'x' nicht lesen",
        "Bitte schreiben Sie es als A-B: 4",
        "Impossible de lire cette ligne; écrivez-la comme A-B: 4",
        "No puedo leer eso; escríbalo como A-B: 4",
        "Non riesco a leggere la riga",
        "Nie mogę odczytać wiersza",
        "Не удалось прочитать строку",  # noqa: RUF001 - Russian
        "Не вдалося прочитати рядок",  # noqa: RUF001 - Ukrainian
        "読み取れません。「A-B: 4」のように書いてください",
        "无法解析该行",
    ],
)
def test_a_short_answer_that_says_how_to_write_is_a_decline(said: str) -> None:
    assert declines(said)


@pytest.mark.parametrize(
    "said",
    [
        "Expected rain: 5 mm by noon.",
        "x must be 4, as 2x = 8.",
        "The reader cannot but smile.",
        "She reads like a poet writes.",
        "Rated A-B: 4 stars, written in 1987.",
        "Es wird Regen erwartet.",
        "One cannot read this poem without tears. " + "It goes on and on. " * 20,
    ],
)
def test_an_answer_is_no_decline(said: str) -> None:
    assert not declines(said)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("cannot read 'x'; write it as A-B: 4", ["A-B: 4"]),
        ("It must be like AB-12.", ["AB-12"]),
        ("Please give it in the form 4x7", ["4x7"]),
        ("Schreiben Sie es als 4x7", ["4x7"]),
        ("Escríbalo como 4x7", ["4x7"]),
    ],
)
def test_what_a_refusal_shows_is_taken_up(said: str, shown: list[str]) -> None:
    assert shown_in(said) == shown


def test_what_is_shown_for_one_element_is_taken_for_all_of_them() -> None:
    row: JsonObject = {
        "tool": "cheapest_way",
        "class": "not_found",
        "asked": 'cheapest_way {"goal": "x", "roads": ["violin", "harp"], "start": "y"}',
        "answer": "cannot read 'harp'; write it as A-B: 4",
    }
    takes = Takes("cheapest_way", trades.ROUTES.input_schema, "")
    for seed in SEEDS:
        made = other_arguments(takes, [row], {}, Random(seed))
        assert made is not None
        roads = made["roads"]
        assert isinstance(roads, list)
        assert all(str(road)[1] == "-" and ": " in str(road) for road in roads)


def test_values_of_one_call_fit_one_another() -> None:
    given: JsonObject = {"roads": ["Kade-Werft: 3", "Werft-Mole: 7"], "start": "x", "goal": "y"}
    free: JsonObject = {"start": {}, "goal": {}, "roads": {}}
    broken = [tied(given, free, Random(seed), way="parts") for seed in SEEDS]
    assert {str(one["start"]) for one in broken} == {"Kade", "Werft", "Mole"}
    whole = [tied(given, free, Random(seed), way="whole") for seed in SEEDS]
    assert {str(one["goal"]) for one in whole} == {"Kade-Werft: 3", "Werft-Mole: 7"}
    fixed: JsonObject = {"start": {"enum": ["x"]}, "goal": {"pattern": "^y$"}, "roads": {}}
    assert all(tied(given, fixed, Random(seed), way="parts") == given for seed in SEEDS)
    assert {way_of(one) for one in broken} == {"parts"}
    assert {way_of(one) for one in whole} == {"whole"}
    assert way_of(given) == "apart"
    record: JsonObject = {"record": {"lamp": 4, "bell": 7}, "key": "x"}
    found = {str(tied(record, {"key": {}}, Random(seed), way="whole")["key"]) for seed in SEEDS}
    assert found == {"lamp", "bell"}
