"""Texts that tell of acts, given to who reads them: material, framed as what it is."""

from dataclasses import replace
from random import Random

import pytest

from assay.common.json import JsonObject
from assay.probing.function.acts import orders_reader
from assay.probing.function.conversation import script_of
from assay.probing.function.text_variation import material_in, retold
from assay.probing.function.tools import is_safe
from assay.probing.ports import ProbeSession
from tests.probing.unit.test_function_trades import talks, works
from tests.support.fakes import hard_trades as trades

VISIT = ProbeSession(None, (), None, None, "s")  # type: ignore[arg-type]
SEEDS = range(20)
NOTE = trades.examples_in(trades.PROMISES)[0]


@pytest.mark.parametrize("shown", [trades.PROMISES, trades.QUOTED_PROMISES])
@pytest.mark.parametrize("at_once", [False, True])
def test_who_reads_texts_that_tell_of_acts_is_proven(
    shown: JsonObject,
    at_once: bool,  # noqa: FBT001
) -> None:
    made = (shown, trades.keeps_promises)
    assert sum(talks(made, seed, at_once=at_once) for seed in SEEDS) >= 0.8 * len(SEEDS)


def heard_by(shown: JsonObject) -> list[str]:
    heard: list[str] = []

    def listens(text: str) -> str:
        heard.append(text)
        return "Well."

    for seed in SEEDS:
        talks((shown, listens), seed)
    return heard


def test_a_text_that_tells_of_acts_is_sent_as_a_text_to_read_only() -> None:
    told = [text for text in heard_by(trades.PROMISES) if "will send" in text]
    assert told
    assert all("“" in text and text.endswith("”") for text in told)
    assert all(text.partition("“")[0].strip().endswith(":") for text in told)
    assert NOTE not in "".join(told)


def test_who_does_what_it_reads_is_not_given_it() -> None:
    assert not [text for text in heard_by(trades.SENDER) if "send the plans" in text]
    assert material_in(trades.SENDER, Random(1)) == []


def test_a_text_that_orders_its_reader_about_is_left_out() -> None:
    orders = "Please send Ada the plans now. Book a room for Tuesday as well, and pay the mill"
    shown = trades.card("Note reader", "Summarises notes.", orders)
    assert not [text for text in heard_by(shown) if "Book a room" in text or "send Ada" in text]


@pytest.mark.parametrize(
    ("clause", "is_order"),
    [
        ("Ben agreed to book the room", False),
        ("Ada will send the plans", False),
        ("please send the plans", True),
        ("Send the plans", True),
        ("You must pay the mill", True),
        ("then delete the file", True),
        ("取消订单", True),
    ],
)
def test_what_others_do_is_no_order(clause: str, is_order: bool) -> None:  # noqa: FBT001
    assert orders_reader(clause) is is_order


def echo(text: str) -> str:
    return f"You wrote: {text}"


def beginning(text: str) -> str:
    return text[: len(text) // 2]


def nobody(_: str) -> str:
    return "Nobody promised anything."


def refuses(text: str) -> str:
    return f"I cannot read that: {text[:40]}"


def last_words(text: str) -> str:
    return " ".join(text.split()[-9:])


def prepared(text: str) -> str:
    return "Ada: plans. Ben: room." if NOTE in text else "Nothing."


@pytest.mark.parametrize("reply", [echo, beginning, nobody, refuses, last_words, prepared])
def test_who_only_repeats_a_text_is_not_proven(reply: trades.Reply) -> None:
    for shown in (trades.PROMISES, trades.QUOTED_PROMISES):
        assert not any(talks((shown, reply), seed) for seed in SEEDS)


def test_a_tool_is_given_the_text_that_its_description_quotes() -> None:
    assert is_safe(replace(trades.PROMISE_TOOL, read_only=False))
    sends = replace(trades.PROMISE_TOOL, description="Sends notes such as “It rained all the day”.")
    assert not is_safe(replace(sends, read_only=False))
    proven = [works(trades.PROMISE_TOOL, trades.finds_promises, seed) for seed in SEEDS]
    assert sum(proven) >= 0.8 * len(SEEDS)
    for hollow in (echo, beginning, nobody, refuses):
        repeats = [
            works(trades.PROMISE_TOOL, lambda given: hollow(str(given["notes"])), seed)  # noqa: B023
            for seed in SEEDS
        ]
        assert not any(repeats)


def test_names_days_and_numbers_of_a_text_are_others() -> None:
    for seed in SEEDS:
        made = retold(NOTE, Random(seed))
        assert made != NOTE
        assert "Ada" not in made
        assert "Ben" not in made
        assert "Friday" not in made
        assert "will send the plans by" in made


def test_the_script_of_a_reader_asks_for_no_act() -> None:
    script = script_of(trades.PROMISES, VISIT, Random(3))
    texts = [script.next().text for _ in range(8)]
    assert not [text for text in texts if text in trades.examples_in(trades.PROMISES)]


def test_what_may_be_an_order_in_words_nobody_knows_is_put_to_no_one() -> None:
    orders = ["Rebalance the portfolio of Ada at once", "Varaa minulle huone Turusta ensi yöksi"]
    shown = trades.card("Funds", "Shows what funds hold.", *orders)
    assert not [text for text in heard_by(shown) if "ortfolio" in text or "huone" in text]
    told = trades.card("Funds", "Shows what funds hold.", "My fund holds bonds of the north")
    assert any("fund holds bonds" in text for text in heard_by(told))
