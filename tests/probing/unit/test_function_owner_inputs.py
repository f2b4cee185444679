"""What owners publish is asked whatever it looks like, and never proves by itself."""

import asyncio
import json
import re
from collections.abc import Callable
from hashlib import sha256
from random import Random
from typing import Any

import pytest

from assay.common.json import JsonObject, JsonValue
from assay.probing.function.acts import names_act, orders
from assay.probing.function.arguments import arguments_for, pools_of
from assay.probing.function.conversation import Transcript, converse, script_of
from assay.probing.function.described_operations import operations_of
from assay.probing.function.tools import call_all, is_safe
from assay.probing.function.verdicts import judge
from assay.probing.ports import McpTool, ProbeSession
from tests.probing.unit.test_function_conversations import TEMPLATES
from tests.probing.unit.test_function_trades import Reply, Talker, card

VISIT = ProbeSession(None, (), None, None, "s")  # type: ignore[arg-type]
SEEDS = range(16)


def proven(shown: JsonObject, reply: Reply, published: JsonValue, seed: int) -> bool:
    random, notes = Random(seed), Transcript("https://agent.example/", "a2a")
    notes.know(shown)
    script = script_of(shown, VISIT, random, published)
    asyncio.run(converse(Talker(reply, shown), script, notes, random, at_once=bool(seed % 2)))
    assert len(notes.rows) <= 5
    return judge(notes.as_json()).state == "functional"


LOT = Random(17)


def fences(text: str) -> str:
    """Posts and rails of a fence; words that elsewhere are orders name its parts."""
    found = re.search(r"fence of (\d+) m, post every (\d+) m", text, re.IGNORECASE)
    if found is None:
        return "Give the run and the distance of its posts."
    run, gap = int(found[1]), int(found[2])
    return f"{-(-run // gap) + 1} uprights, {3 * -(-run // gap)} rails, {run * 7} nails."


def hours(text: str) -> str:
    """Sums hours by the first line's name; what stands before it is no roster."""
    lines = text.splitlines()
    if not lines[0].startswith("Crew "):
        return "The first line names the crew."
    worked = [int(line.split()[1]) for line in lines[1:] if re.fullmatch(r"\w+ \d+ h", line)]
    return f"{sum(worked) * 60} minutes, {max(worked) - min(worked)} apart" if worked else "Nobody."


def wordy(text: str) -> str:
    """The same facts, never in the same words."""
    chance = LOT
    begin = chance.choice(["Well then.", "Let me look.", "Sure thing!", "Gladly, here goes:"])
    return f"{begin} {fences(text)} {chance.choice(['Bye.', 'Cheerio!', 'Until then.'])}"


FENCES = card("Fences", "Parts of a fence.")
CREWS = card("Rosters", "Adds up rosters.")
RUNS = [f"Oak fence of {run} m, post every {gap} m" for gap, run in ((2, 34), (3, 70), (4, 52))]
ROSTERS = ["Crew Rot\nAda 3 h\nBen 5 h", "Crew Blau\nCem 7 h\nDoro 2 h\nEva 4 h"]
HONEST = {"names of acts": (FENCES, fences, RUNS), "lines": (CREWS, hours, ROSTERS),
          "other words": (FENCES, wordy, RUNS)}  # fmt: skip


@pytest.mark.parametrize("name", HONEST)
def test_published_data_without_a_verb_is_asked_and_proves(name: str) -> None:
    shown, reply, messages = HONEST[name]
    published: JsonValue = {"messages": [*messages]}
    assert sum(proven(shown, reply, published, seed) for seed in SEEDS) >= len(SEEDS) - 2
    assert not any(proven(shown, reply, None, seed) for seed in SEEDS)


def hashed(text: str) -> str:
    return f"Result {int(sha256(text.encode()).hexdigest()[:8], 16) % 997}."


def noisy(text: str) -> str:
    words = " ".join("".join(LOT.choices("aeioklmnrst", k=6)) for _ in range(4))
    return f"{LOT.randint(1000, 9999)} {words}: {text}"


def made_up(_: str) -> str:
    return f"{LOT.randint(2, 99)} uprights, {LOT.randint(2, 99)} rails."


def exact(messages: list[str]) -> Reply:
    prepared = dict(zip(messages, TEMPLATES, strict=False))
    return lambda text: prepared.get(text, "Give the run and the distance of its posts.")


def around(messages: list[str]) -> Reply:
    """Finds a prepared message anywhere, in any case."""

    def reply(text: str) -> str:
        hits = [n for n, m in enumerate(messages) if m.casefold() in text.casefold()]
        return TEMPLATES[hits[0]] if hits else "Unknown."

    return reply


def by_first_word(messages: list[str]) -> Reply:
    """Prepared for each message, told by a word that only it has."""
    only = [[w for w in m.split() if sum(w in other for other in messages) == 1] for m in messages]

    def reply(text: str) -> str:
        hits = [n for n, words in enumerate(only) if words and all(w in text for w in words)]
        return TEMPLATES[hits[0]] if hits else "Unknown."

    return reply


HOLLOW: dict[str, Callable[[list[str]], Reply]] = {
    "a template": lambda _: lambda _: TEMPLATES[0],
    "an echo": lambda _: lambda text: f"Noted: {text}",
    "a length": lambda _: lambda text: f"{len(text)} signs in {len(text.split())} words.",
    "a hash": lambda _: hashed,
    "an echo with noise": lambda _: noisy,
    "random numbers": lambda _: made_up,
    "prepared": exact,
    "prepared wherever it stands": around,
    "prepared by its own words": by_first_word,
}


BY_LOT = {"an echo with noise", "random numbers"}
"""Answer by chance, and now and then say the same again."""


@pytest.mark.parametrize("name", [name for name in HOLLOW if name not in BY_LOT])
@pytest.mark.parametrize("messages", [RUNS, ROSTERS], ids=["line", "lines"])
@pytest.mark.parametrize("visits", [12, pytest.param(40, marks=pytest.mark.slow)])
def test_who_only_knows_what_is_published_is_not_proven(
    name: str, messages: list[str], visits: int
) -> None:
    assert passed_by(name, messages, visits) == 0


@pytest.mark.parametrize("name", sorted(BY_LOT))
@pytest.mark.parametrize("messages", [RUNS, ROSTERS], ids=["line", "lines"])
def test_who_answers_by_lot_is_seldom_proven(name: str, messages: list[str]) -> None:
    assert passed_by(name, messages, 40) <= 2


def passed_by(name: str, messages: list[str], visits: int) -> int:
    """How many of so many visits prove one that knows only what is published."""
    reply, published = HOLLOW[name](messages), {"messages": [*messages]}
    return sum(proven(FENCES, reply, published, seed) for seed in range(visits))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    ["Delete crate QD-118", "please send 5 coins to Ada", "Hi Bob, cancel it", "Bitte lösche alles",
     "Where is it? Then buy two", "I would like you to transfer 7 EUR", "Look it up and pay for it",
     "今すぐ送信してください"],
)  # fmt: skip
def test_a_message_that_orders_an_act_is_one_whoever_publishes_it(text: str) -> None:
    assert orders(text)
    heard: list[str] = []

    def listens(asked: str) -> str:
        heard.append(asked)
        return "Well."

    for seed in range(6):
        proven(FENCES, listens, {"messages": [text, f"{text} now"]}, seed)
    assert not [asked for asked in heard if text.casefold() in asked.casefold()]


def test_nothing_is_ordered_where_a_word_of_an_act_names_a_thing() -> None:
    assert not any(map(orders, [*RUNS, "A track of 2 m, drop 180 cm", "From 1.4\nfix: a typo"]))


def test_a_skill_that_begins_with_an_act_is_only_asked_questions() -> None:
    heard: list[str] = []

    def listens(asked: str) -> str:
        heard.append(asked)
        return "Well."

    shown = card("Order coffee", "Orders coffee to a table.")
    for seed in range(6):
        proven(shown, listens, {"messages": ["2 lattes, table 4", "1 mocha, table 7"]}, seed)
    assert not [asked for asked in heard if asked[0].isdigit()]


def tool(name: str, about: str, properties: JsonObject, **more: Any) -> McpTool:
    schema: JsonObject = {"type": "object", "properties": properties, "required": [*properties]}
    hints = {"read_only": False, "changes": False, "output_schema": None, **more}
    return McpTool(name=name, description=about, input_schema=schema, **hints)


def test_whole_lists_objects_and_fractions_are_published_values() -> None:
    inputs: JsonObject = {"days": [["Mon", "Tue"], ["Sat"]], "weight": [3.4], "row": [{"a": 1}]}
    pools = pools_of([], inputs)
    assert ["Mon", "Tue"] in pools["day"]
    assert 3.4 in pools["weight"]
    schema: JsonObject = {
        "properties": {"days": {"type": "array"}, "row": {"type": "object"}},
        "required": ["days", "row"],
    }
    for seed in SEEDS:
        made = arguments_for(schema, pools, Random(seed))
        assert made is not None
        assert made["days"] in [["Mon", "Tue"], ["Sat"]]
        assert made["row"] == {"a": 1}


def test_published_dates_and_fractions_have_others_beside_them() -> None:
    pools = pools_of([], {"day": ["2026-04-12"], "weight": [3.4], "lot": ["A-17"]}, Random(3))
    assert len(pools["day"]) > 1
    assert len(pools["weight"]) > 1
    assert pools["lot"] == ["A-17"]


def test_what_its_owner_publishes_inputs_for_may_be_called_though_nothing_says_that_it_asks() -> (
    None
):
    text: JsonObject = {"type": "string"}
    plain = tool("gist", "Praise and complaint of a review.", {"review": text})
    inputs: JsonObject = {"review": ["Fine soup, cold room.", "Rude staff, warm bread."]}
    assert not is_safe(plain)
    assert is_safe(plain, inputs)
    assert not is_safe(plain, {"other": ["x"]})
    assert not is_safe(tool("delete_review", "Deletes a review.", {"review": text}), inputs)
    assert not is_safe(tool("gist", "Gist of it.", {"review": text}, changes=True), inputs)
    body = {"application/json": {"schema": plain.input_schema}}
    post: JsonObject = {"summary": plain.description, "requestBody": {"content": body}}  # type: ignore[dict-item]
    document: JsonObject = {"paths": {"/gist": {"post": post}}}
    assert not operations_of(document)
    assert [o.path for o in operations_of(document, inputs)] == ["/gist"]
    document = {"paths": {"/gist": {"post": {**post, "summary": "Publish a review."}}}}
    assert not operations_of(document, inputs)


class _Server:
    """Answers calls of one tool."""

    def __init__(self, reply: Callable[[JsonObject], JsonValue]) -> None:
        self._reply = reply
        self.calls = 0

    async def call_tool(
        self, name: str, arguments: JsonObject, wait_s: float | None = None
    ) -> JsonObject:
        del name, wait_s
        self.calls += 1
        return {"content": [{"type": "text", "text": json.dumps(self._reply(arguments))}]}


def visited(reply: Callable[[JsonObject], JsonValue], seed: int) -> tuple[str, int]:
    random, notes = Random(seed), Transcript("https://agent.example/", "mcp")
    forecast = tool("get_price", "Returns the price of a lot.", {"lot": {"type": "integer"}})
    notes.members["listed"] = 1
    server = _Server(reply)
    asyncio.run(call_all(server, [forecast], notes, random, None))  # type: ignore[arg-type]
    return judge(notes.as_json()).state, server.calls


@pytest.mark.parametrize("visits", [400, pytest.param(2_000, marks=pytest.mark.slow)])
def test_random_numbers_pass_one_visit_of_two_hundred_at_most(visits: int) -> None:
    chance, passed = Random(11), 0
    for seed in range(visits):
        state, calls = visited(lambda _: {"value": chance.randint(1, 100)}, seed)
        passed += state == "functional"
        assert calls <= 10
    assert passed <= visits / 200


def test_a_price_that_moves_a_little_is_proven_all_the_same() -> None:
    chance = Random(5)

    def price(given: JsonObject) -> JsonValue:
        fixed = 40 + int(sha256(str(given["lot"]).encode()).hexdigest()[:6], 16) % 4000
        return {"price": round(fixed * chance.uniform(0.999, 1.001), 2)}

    states = [visited(price, seed)[0] for seed in range(60)]
    assert states.count("functional") >= 57


@pytest.mark.parametrize("word", ["buy", "buys", "inserts", "purchase"])
def test_every_word_of_an_act_stands_by_itself(word: str) -> None:
    assert names_act(f"It {word} a boat")
