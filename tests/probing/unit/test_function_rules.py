"""The pure rules of proof of function: acts, checkable requests, variations, verdicts."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.probing.function.acts import asks_for_act, does_act
from assay.probing.function.choosing import offered_in
from assay.probing.function.conversation import script_of
from assay.probing.function.generated_texts import checkable, is_right
from assay.probing.function.known_values import reworded
from assay.probing.function.operations import fields_of
from assay.probing.function.variation import varied
from assay.probing.function.verdicts import judge
from assay.probing.function.words import reorders, substance, words_of
from assay.probing.ports import ProbeSession

ACTS = [
    "Buy 10 USDC worth of ETH",
    "Book me a table for two in Lisbon",
    "Send an email to bob@example.com saying hello",
    "What is the weather, and then delete my account",
    "Call +1 555 0100",
    "Compra 10 acciones de Tesla",
    "Réserve un vol pour Paris",
    "Überweise 20 Euro an Anna",
    "Купи билет в Казань",
    "预订明天的酒店",
    "東京行きを予約して",
    "송금 10,000원",
    "احجز فندقا في دبي",
    "Zrób coś dla mnie",
    "Rebalance my portfolio",
]
QUESTIONS = [
    "What is the capital of France?",
    "Convert 10 USD to EUR",
    "¿Cuál es la altitud de Madrid?",
    "Wie ist das Wetter in Berlin?",
    "Какая погода в Казани?",
    "东京天气怎么样",
    "Explain the difference between TCP and UDP",
]


@pytest.mark.parametrize("text", ACTS)
def test_a_request_for_an_act_is_known_and_what_cannot_be_told_is_one(text: str) -> None:
    assert asks_for_act(text)


@pytest.mark.parametrize("text", QUESTIONS)
def test_a_question_is_no_act(text: str) -> None:
    assert not asks_for_act(text)


@pytest.mark.parametrize(
    ("name", "description", "is_act"),
    [
        ("get_weather", "Get the weather of a city.", False),
        ("list_orders", "Lists orders.", False),
        ("search_books", "Searches the catalogue.", False),
        ("send_message", "Sends a message.", True),
        ("get_and_delete_mail", "Reads mail.", True),
        ("frobnicate", "Frobnicates.", True),
        ("transferTokens", "What transfers tokens.", True),
        ("weather", "Deletes the weather.", True),
    ],
)
def test_a_tool_is_called_only_where_it_can_be_told_to_read(
    name: str, description: str, *, is_act: bool
) -> None:
    assert does_act(name, description) is is_act


@given(st.integers())
def test_repeating_a_checkable_request_is_never_right(seed: int) -> None:
    request = checkable(Random(seed))
    assert not is_right(request, request.text)
    assert not is_right(request, "Certainly! " + request.text + " Done.")
    assert is_right(request, " ".join(request.expected))
    assert not is_right(request, " ".join(str(n) for n in range(2_000)))


@given(st.integers())
def test_the_same_seed_asks_the_same(seed: int) -> None:
    assert checkable(Random(seed)) == checkable(Random(seed))
    example = "How many miles are 10 kilometres from Paris?"
    assert varied(example, Random(seed)) == varied(example, Random(seed))
    assert words_of(example)[0] in words_of(reworded(example, Random(seed)))


CARDS = st.fixed_dictionaries(
    {
        "skills": st.lists(
            st.fixed_dictionaries(
                {
                    "name": st.sampled_from(["Trading", "Weather", "Send money", "Übersetzung"]),
                    "description": st.sampled_from(["Buys and sells.", "Finds facts.", ""]),
                    "examples": st.lists(st.sampled_from(ACTS + QUESTIONS), max_size=6),
                }
            ),
            max_size=4,
        )
    }
)


@given(CARDS, st.integers())
def test_no_request_of_a_proof_asks_for_an_act(card: dict[str, object], seed: int) -> None:
    visit = ProbeSession(None, (), None, None, "s", prompts=("Buy me a boat", "What is tar?"))  # type: ignore[arg-type]
    script = script_of(card, visit, Random(seed))  # type: ignore[arg-type]
    texts = [script.next().text for _ in range(12)]
    assert not [text for text in texts if text in ACTS or text == "Buy me a boat"]


def row(role: str, answer: str, asked: str = "") -> dict[str, object]:
    return {"role": role, "asked": asked, "class": "ok", "answer": answer}


def verdict(*rows: dict[str, object], known: str = "") -> str:
    return judge({"kind": "a2a", "asked": rows, "known": words_of(known)}).state  # type: ignore[dict-item]


def test_what_becomes_equal_without_the_words_of_request_and_card_is_a_template() -> None:
    echoed = [row(r, f"Result for {t}", t) for r, t in (("first", "Oslo"), ("other", "Rome"))]
    assert verdict(*echoed, row("reworded", "Result for Oslo", "Hi Oslo")) == "not_functional"


def test_reworded_requests_have_to_keep_their_substance() -> None:
    answers = [row("first", "chilly 4", "in Oslo"), row("other", "sunny 28", "in Rome")]
    again = row("reworded", "sunny and 28", "Hello, in Rome")
    assert verdict(*answers, again) == "unfinished"
    assert verdict(*answers, again, row("reworded", "4 it is", "Hi, in Oslo")) == "functional"
    assert verdict(*answers, again, row("reworded", "thunder 39", "Hi, in Oslo")) == "unfinished"
    assert verdict(*answers, row("reworded", "hail 39", "Hi, in Rome")) == "not_functional"


@given(st.text(max_size=300), st.text(max_size=300))
def test_substance_never_repeats_what_is_known(answer: str, request: str) -> None:
    assert not substance(answer, frozenset(words_of(request))) & set(words_of(request))


@given(
    st.recursive(
        st.none() | st.text() | st.integers(), lambda v: st.lists(v) | st.dictionaries(st.text(), v)
    )
)
def test_any_transcript_has_a_verdict(value: object) -> None:
    for kind in ("a2a", "mcp", "http", "x402", "none"):
        rows = [row("first", str(value)), row("call", str(value))]
        assert judge({"kind": kind, "asked": rows, "listed": 1, "known": []}).why  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("refusal", "offered"),
    [
        ("unknown stop; there are Kade, Werft or Mole", ["Kade", "Werft", "Mole"]),
        ("no such berth\nnorth\nsouth\neast", ["no such berth", "north", "south", "east"]),
        ("Nothing like that. For example: pilot boat", ["pilot boat"]),
        ("This is not a place that we know of or have ever been to, I am afraid.", []),
    ],
)
def test_what_a_refusal_says_is_known_is_asked_for(refusal: str, offered: list[str]) -> None:
    assert offered_in(refusal) == offered


@pytest.mark.parametrize(
    ("answer", "given", "is_other"),
    [
        ("apple kiwi lemon pear", "pear lemon apple kiwi", True),
        ("pear lemon apple kiwi", "pear lemon apple kiwi", False),
        ("You said: pear lemon apple", "pear lemon apple kiwi", False),
        ("ship storm harbour gull", "the ship met a storm near the harbour and a gull", True),
    ],
)
def test_another_order_of_what_was_given_is_work_and_repeating_it_is_none(
    answer: str, given: str, *, is_other: bool
) -> None:
    assert reorders(answer, given) is is_other


def test_lengths_of_what_was_given_are_no_substance_but_of_those_who_count() -> None:
    asked = ["a" * 30, "b" * 41]
    rows = [
        {**row("call", f"Handled {len(text)} items", f'sort {{"given": "{text}"}}'),
         "tool": "sort", "input": True, "valid": True}
        for text in asked
    ]  # fmt: skip
    for known, state in ((["sort"], "not_functional"), (["sort", "counts"], "functional")):
        transcript = {"kind": "mcp", "asked": rows, "listed": 1, "known": known}
        assert judge(transcript).state == state  # type: ignore[arg-type]


GRAPHQL = {
    "data": {
        "__schema": {
            "queryType": {"name": "Query"},
            "types": [
                {"kind": "OBJECT", "name": "Query", "fields": [
                    {"name": "berth", "description": "A berth by its number.", "args": [
                        {"name": "number", "type": {"kind": "NON_NULL", "ofType": {
                            "kind": "SCALAR", "name": "Int"}}},
                    ], "type": {"kind": "OBJECT", "name": "Berth"}},
                    {"name": "deleteBerth", "description": "Deletes a berth.", "args": [],
                     "type": {"kind": "SCALAR", "name": "Boolean"}},
                    {"name": "harbours", "description": "All harbours.", "args": [],
                     "type": {"kind": "LIST", "ofType": {"kind": "SCALAR", "name": "String"}}},
                ]},
                {"kind": "OBJECT", "name": "Berth", "fields": [
                    {"name": "metres", "args": [], "type": {"kind": "SCALAR", "name": "Float"}},
                    {"name": "next", "args": [], "type": {"kind": "OBJECT", "name": "Berth"}},
                ]},
            ],
        }
    }
}  # fmt: skip


def test_the_fields_of_a_graphql_schema_that_only_read_are_asked() -> None:
    fields = fields_of(GRAPHQL)  # type: ignore[arg-type]
    assert fields is not None
    assert [field.query({"number": 7} if field.name == "berth" else {}) for field in fields] == [
        "{harbours}",
        "{berth(number: 7){metres next{metres next{metres}}}}",
    ]
    assert fields_of({"errors": [{"message": "introspection is off"}]}) is None


@pytest.mark.parametrize(
    ("name", "description", "is_act"),
    [
        ("bases", "Writes a number in binary.", False),
        ("note", "Writes a number in the ledger.", True),
        ("book_numbers", "The check digit of a code.", False),
        ("book", "Books a room.", True),
    ],
)
def test_what_says_it_in_other_words_is_no_act(
    name: str, description: str, *, is_act: bool
) -> None:
    assert does_act(name, description) is is_act


def test_a_question_about_a_state_is_no_act() -> None:
    assert not asks_for_act("Are you open on Monday?")
    assert asks_for_act("Are you open on Monday? Then book me in")
    assert asks_for_act("Open the gate")
