"""Examples that hold a text to work on: what agents that sort, pick and shorten are proven by."""

from collections.abc import Callable
from random import Random

import pytest

from assay.common.json import JsonObject
from assay.probing.function.acts import does_act, orders_act
from assay.probing.function.formats import named_format
from assay.probing.function.talking import judge_conversation
from assay.probing.function.text_variation import TEXTS, sorted_texts
from assay.probing.function.variation import LONG_QUOTED, figures_varied
from assay.probing.function.words import selected, words_of

EXAMPLES = [
    "Which shelf? 'Our boiler leaks into the cellar again, please send a plumber'",
    "Where does this go? 'The choir rehearses in the small hall since Easter'",
]
SEEDS = range(40)


def transcript(answer: Callable[[str], str], seed: int, card: str = "") -> JsonObject:
    """What an agent says to five texts of two sorts."""
    made = sorted_texts(EXAMPLES[0], EXAMPLES, Random(seed))
    rows: list[JsonObject] = []
    for number, one in enumerate(made):
        said = answer(one.text)
        facts: JsonObject = {"of": one.sort, "own": one.own, "ours": one.ours}
        role = "other" if number else "first"
        row: JsonObject = {"role": role, "asked": one.text, "class": "ok", "answer": said}
        rows.append({**row, **facts, "family": EXAMPLES[0], "literal": False})
    return {"asked": [*rows], "known": [*words_of(card)]}


def quoted(request: str) -> str:
    found = LONG_QUOTED.search(request)
    assert found
    return found[2]


def by_words(request: str) -> str:
    plain = request.casefold()
    return "Shelf: repairs" if "boiler" in plain or "leak" in plain else "Shelf: music"


def test_texts_of_two_sorts_hold_no_text_of_the_agents_own_as_it_stands() -> None:
    for seed in SEEDS:
        made = sorted_texts(EXAMPLES[0], EXAMPLES, Random(seed))
        assert len(made) == TEXTS
        assert {one.sort for one in made} == {"here", "there"}
        for one in made:
            assert not any(quoted(example) in one.text for example in EXAMPLES)
            assert one.own in one.text
            assert one.ours in one.text
            assert "plumber" not in one.text  # the clause asks for an act


def test_an_example_without_a_text_or_with_an_act_in_its_question_is_not_asked_so() -> None:
    assert sorted_texts("How far is Mars?", ["How far is Mars?"], Random(1)) == []
    order = "Send this to Ada: 'The choir rehearses in the small hall since Easter'"
    assert sorted_texts(order, [order], Random(1)) == []


def test_who_sorts_by_what_texts_say_is_proven_though_its_card_names_the_sorts() -> None:
    for seed in SEEDS:
        found = judge_conversation(transcript(by_words, seed, "shelf repairs music"))
        assert found.state == "functional"


def test_who_says_the_same_of_all_texts_is_not_proven() -> None:
    for seed in SEEDS:
        found = judge_conversation(transcript(lambda _: "Shelf: repairs", seed, "shelf repairs"))
        assert found.state == "not_functional"


def test_who_says_two_things_in_turn_is_not_proven() -> None:
    for seed in SEEDS:
        said = iter(("Shelf: repairs", "Shelf: music") * TEXTS)
        found = judge_conversation(transcript(lambda _: next(said), seed, "shelf repairs music"))  # noqa: B023
        assert found.state != "functional"


def test_who_chooses_by_chance_is_hardly_ever_proven() -> None:
    chance = Random(5)
    proven = 0
    for seed in range(400):
        said = lambda _: chance.choice(("Shelf: repairs", "Shelf: music"))  # noqa: E731
        found = judge_conversation(transcript(said, seed, "shelf repairs music"))
        proven += found.state == "functional"
    assert proven < 400 / 8  # one in sixteen


def test_who_goes_by_the_length_of_texts_is_not_proven() -> None:
    def by_length(request: str) -> str:
        return "Shelf: repairs" if len(quoted(request)) > 190 else "Shelf: music"

    proven = [
        judge_conversation(transcript(by_length, seed, "shelf repairs music")).state
        for seed in SEEDS
    ]
    assert proven.count("functional") < len(proven) / 4


def test_who_is_prepared_for_its_examples_alone_is_not_proven() -> None:
    def prepared(request: str) -> str:
        known = {quoted(example): f"Shelf: {n} {n}" for n, example in enumerate(EXAMPLES)}
        return next((say for text, say in known.items() if text in request), "Shelf: unknown")

    for seed in SEEDS:
        assert judge_conversation(transcript(prepared, seed, "shelf")).state != "functional"


@pytest.mark.parametrize("kept", [0.3, 0.6, 1.0])
def test_who_repeats_a_text_or_its_beginning_or_end_is_not_proven(kept: float) -> None:
    def beginning(request: str) -> str:
        words = quoted(request).split()
        return "You wrote: " + " ".join(words[: round(len(words) * kept)])

    def end(request: str) -> str:
        words = quoted(request).split()
        return "You wrote: " + " ".join(words[-round(len(words) * kept) :])

    for seed in SEEDS:
        assert judge_conversation(transcript(beginning, seed)).state != "functional"
        assert judge_conversation(transcript(end, seed)).state != "functional"


def test_who_picks_what_it_seeks_wherever_it_stands_is_proven() -> None:
    sought = ("boiler", "leaks", "cellar", "choir", "rehearses", "hall", "easter")

    def picks(request: str) -> str:
        return ", ".join(word for word in words_of(quoted(request)) if word in sought)

    states = [judge_conversation(transcript(picks, seed)).state for seed in SEEDS]
    assert states.count("functional") > len(states) * 3 / 4  # own text must stand at both ends


def test_who_keeps_the_first_and_last_sentence_is_proven() -> None:
    def shortens(request: str) -> str:
        sentences = quoted(request).split(". ")
        return f"{sentences[0]}. {sentences[-1]}"

    states = [judge_conversation(transcript(shortens, seed)).state for seed in SEEDS]
    assert states.count("functional") == len(states)


def test_words_are_selected_only_where_some_between_them_are_left_out() -> None:
    given = "Barley grows tall beside seven windy meadows where sheep sleep under poplars"
    both = {"barley", "grows", "tall", "sleep", "under", "poplars"}
    assert selected("Barley grows tall. Sleep under poplars.", given) == both
    assert selected("Barley and poplars are words of it", given) == frozenset()
    assert selected("Barley grows tall beside", given) == frozenset()
    assert selected("sheep sleep under poplars", given) == frozenset()
    assert selected(given, given) == frozenset()


@pytest.mark.parametrize(
    ("clause", "orders"),
    [
        ("The lamp breaks when I open the lid.", False),
        ("I was charged twice in May.", False),
        ("Please cancel my subscription.", True),
        ("Cancel it.", True),
        ("Look at it and then delete the file.", True),
        ("取消订单", True),
    ],
)
def test_a_clause_orders_an_act_where_it_tells_its_reader_to(clause: str, orders: bool) -> None:  # noqa: FBT001
    assert orders_act(clause) is orders


@pytest.mark.parametrize(
    ("name", "description", "is_act"),
    [
        ("mask_text", "Replace e-mail addresses and phone numbers by labels.", False),
        ("mask_text", "Mask names, then send the text to the archive", True),
        ("decode", "Decode and run the script", True),
        ("redact", "Redacts a document and saves it", True),
        ("add", "Add two numbers.", False),
        ("add_days", "Adds days to a date", False),
        ("add", "Adds a note", True),
        ("add", "Adds the values to the ledger", True),
        ("add_values", "Adds an amount to the account", True),
    ],
)
def test_what_works_on_texts_and_numbers_is_no_act(
    name: str,
    description: str,
    is_act: bool,  # noqa: FBT001
) -> None:
    assert does_act(name, description) is is_act


@pytest.mark.parametrize(
    ("said", "form"),
    [
        ("day must be YYYY-MM-DD", "date"),
        ("write it as YYYY-MM-DDTHH:MM", "local-date-time"),
        ("HH:MM, 24 hours", "minutes"),
        ("an RFC 3339 moment", "date-time"),
        ("a day", None),
    ],
)
def test_a_format_is_known_by_how_it_is_spelt_out(said: str, form: str | None) -> None:
    assert named_format(said) == form


def test_moments_and_grouped_numbers_get_other_figures_that_are_still_ones() -> None:
    for seed in SEEDS:
        moment = figures_varied("2026-07-01T09:30", Random(seed))
        assert moment is not None
        day, _, hours = moment.partition("T")
        assert 1 <= int(day[-2:]) <= 28
        assert int(hours[:2]) < 24
        assert int(hours[3:]) < 60
        price = figures_varied("税抜1,000円の税込価格は?", Random(seed))
        assert price is not None
        assert price != "税抜1,000円の税込価格は?"
