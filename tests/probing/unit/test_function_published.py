"""Published inputs: examples of what an agent can be asked, and never a proof by themselves."""

import asyncio
import re
from collections.abc import Callable
from itertools import count
from random import Random

import pytest

from assay.common.json import JsonObject, JsonValue
from assay.net.egress.ports import EgressResponse, OutboundRequest
from assay.probing.function.arguments import pools_of
from assay.probing.function.conversation import Transcript, converse, script_of
from assay.probing.function.examples import published_inputs, with_published
from assay.probing.function.variation import reslotted
from assay.probing.function.verdicts import judge
from assay.probing.ports import ProbeSession
from tests.probing.unit.test_function_conversations import TEMPLATES
from tests.probing.unit.test_function_trades import Talker
from tests.support.fakes import hard_trades as trades

VISIT = ProbeSession(None, (), None, None, "s")  # type: ignore[arg-type]
SEEDS = range(20)


def talks(shown: JsonObject, reply: trades.Reply, published: JsonValue, seed: int) -> bool:
    random, notes = Random(seed), Transcript("https://agent.example/", "a2a")
    notes.know(shown)
    script = script_of(shown, VISIT, random, published)
    asyncio.run(converse(Talker(reply, shown), script, notes, random, at_once=bool(seed % 2)))
    assert len(notes.rows) <= 5
    return judge(notes.as_json()).state == "functional"


def as_list(messages: list[JsonValue]) -> JsonValue:
    return messages


def under_messages(messages: list[JsonValue]) -> JsonValue:
    return {"messages": messages}


def by_skill(messages: list[JsonValue]) -> JsonValue:
    return {"crate-finder": messages, "depot-desk": messages, "lid": ["A", "B"]}


@pytest.mark.parametrize("form", [as_list, under_messages, by_skill])
def test_published_messages_prove_what_only_its_owner_can_name(
    form: Callable[[list[JsonValue]], JsonValue],
) -> None:
    for shown, reply, messages in (
        (trades.CRATES, trades.finds_crates, trades.CRATE_MESSAGES),
        (trades.DEPOTS, trades.counts_stock, trades.DEPOT_MESSAGES),
    ):
        assert not any(talks(shown, reply, None, seed) for seed in SEEDS)
        proven = sum(talks(shown, reply, form([*messages]), seed) for seed in SEEDS)
        assert proven >= len(SEEDS) - 2


def test_answers_prepared_for_published_messages_prove_nothing() -> None:
    for shown, messages in (
        (trades.CRATES, trades.CRATE_MESSAGES),
        (trades.DEPOTS, trades.DEPOT_MESSAGES),
    ):
        prepared = dict(zip(messages, TEMPLATES, strict=False))
        for seed in SEEDS:
            assert not talks(shown, lambda t: prepared.get(t, "Unknown."), [*messages], seed)  # noqa: B023
            assert not talks(shown, lambda _: TEMPLATES[0], [*messages], seed)
            assert not talks(shown, lambda text: f"Looked up: {text}", [*messages], seed)
            turns = count()
            assert not talks(shown, lambda _: TEMPLATES[next(turns) % 3], [*messages], seed)  # noqa: B023


def test_answers_prepared_for_a_message_and_what_stands_around_it_prove_nothing() -> None:
    def prepared(text: str) -> str:
        found = [n for n, m in enumerate(trades.CRATE_MESSAGES) if m.casefold() in text.casefold()]
        return TEMPLATES[found[0]] if found else "Unknown."

    assert not any(talks(trades.CRATES, prepared, [*trades.CRATE_MESSAGES], s) for s in SEEDS)


def test_a_published_request_for_an_act_is_not_sent() -> None:
    heard: list[str] = []

    def listens(text: str) -> str:
        heard.append(text)
        return "Well."

    orders = ["Send crate QD-118-K to bay 7", "Send crate ZL-907-B to bay 2"]
    for seed in SEEDS:
        talks(trades.CRATES, listens, [*orders], seed)
    assert not [text for text in heard if "send" in text.casefold()]


def test_messages_of_one_shape_get_each_others_values_and_new_ones() -> None:
    made = {t for s in SEEDS for t in reslotted(*_first(trades.DEPOT_MESSAGES), Random(s))}
    assert "How many Finchley stools lie in the Quill depot?" in made
    assert not made & {*trades.DEPOT_MESSAGES}
    crates = {t for s in SEEDS for t in reslotted(*_first(trades.CRATE_MESSAGES), Random(s))}
    assert len(crates) > len(SEEDS)
    form = re.compile(r"Which bay holds crate [A-Z]{2}-\d{3}-[A-Z]\?")
    assert all(form.fullmatch(text) for text in crates)


def test_values_are_made_only_where_letters_and_digits_say_how() -> None:
    assert reslotted("Where is Oslo?", ["Where is Oslo?", "Where is Rome?"], Random(1)) == []
    assert reslotted("Where is Oslo?", ["Where is Oslo?", "Who made the lamp?"], Random(1)) == []
    both = ["料金表の品番A-17はいくら", "料金表の品番B-20はいくら"]
    made = {t for s in SEEDS for t in reslotted(both[0], both, Random(s))}
    assert made
    assert all(re.fullmatch(r"料金表の品番[A-Z]-\d\dはいくら", text) for text in made)


def _first(messages: list[str]) -> tuple[str, list[str]]:
    return messages[0], messages


@pytest.mark.parametrize(
    "published", [None, 4, "text", [4, None], {"messages": {"a": 1}}, {"": []}]
)
def test_what_is_no_list_of_messages_changes_nothing(published: JsonValue) -> None:
    assert with_published(trades.CRATES, published) == trades.CRATES


def test_messages_are_no_values_of_arguments() -> None:
    assert pools_of([], ["Which bay?", "Which lid?"]) == {}
    assert pools_of([], {"lot": ["A-17", "B-20"]}) == {"lot": ["A-17", "B-20"]}


class _Site:
    def __init__(self) -> None:
        self.asked: list[str] = []

    async def send(self, request: OutboundRequest, limits: object = None) -> EgressResponse:
        del limits
        self.asked.append(request.url)
        return EgressResponse(200, (), b'{"testInputs": ["Which bay?"]}', False, 1.0)  # noqa: FBT003


@pytest.mark.parametrize("announced", [True, False])
def test_only_announced_visits_read_published_inputs(announced: bool) -> None:  # noqa: FBT001
    site = _Site()
    visit = ProbeSession(None, (), site, None, "s", announced=announced)  # type: ignore[arg-type]
    found = asyncio.run(published_inputs(visit, "https://agent.example/a2a"))
    assert found == (["Which bay?"] if announced else None)
    assert len(site.asked) == announced
