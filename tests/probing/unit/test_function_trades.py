"""Small honest trades that must be proven, and hollow ones that must not. Wording of its own."""

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from random import Random

import pytest

from assay.common.json import JsonObject
from assay.probing.function.acts import does_act
from assay.probing.function.conversation import Transcript, converse, script_of
from assay.probing.function.described_operations import operations_of
from assay.probing.function.formats import another, checked_number, is_right, text_for
from assay.probing.function.tools import call_all
from assay.probing.function.verdicts import judge
from assay.probing.ports import McpTool, ProbeSession

VISIT = ProbeSession(None, (), None, None, "s")  # type: ignore[arg-type]
Reply = Callable[[str], str]


@dataclass
class Talker:
    reply: Reply
    card: JsonObject
    card_url: str = "https://agent.example/card"
    has_answered: bool = True

    async def send_text(
        self, text: str, context_id: str = "", *, wait_s: float | None = None
    ) -> JsonObject:
        del context_id, wait_s
        return {"message": {"parts": [{"text": self.reply(text)}]}}

    async def get_task(self, task_id: str) -> JsonObject:
        raise AssertionError(task_id)


def card(name: str, about: str, *examples: str) -> JsonObject:
    skill: JsonObject = {"name": name, "description": about, "examples": [*examples]}
    return {"name": name, "description": about, "skills": [skill]}


def talks(made: tuple[JsonObject, Reply], seed: int, *, at_once: bool = False) -> bool:
    shown, reply = made
    random, notes = Random(seed), Transcript("https://agent.example/", "a2a")
    notes.know(shown)
    agent, script = Talker(reply, shown), script_of(shown, VISIT, random)
    asyncio.run(converse(agent, script, notes, random, at_once=at_once))
    assert len(notes.rows) <= 5
    return judge(notes.as_json()).state == "functional"


def looking_up(form: str, known: Mapping[str, str], other: str) -> Reply:
    def reply(text: str) -> str:
        asked = re.search(form, text)
        return known.get(asked[1].strip(" ?.").casefold(), other) if asked else other

    return reply


def checker(form: str, what: str) -> tuple[JsonObject, Reply]:
    def reply(text: str) -> str:
        found = checked_number(text) or re.search(r"[\d][\d -]+\d", text)
        return f"{what}: {'correct' if isinstance(found, str) else 'not correct'}."

    return card(what, f"Tells whether a {what} is correct.", form), reply


def mask(text: str) -> str:
    given = text[text.find("'") + 1 : text.rfind("'")]
    return re.sub(r"\d{4}-\d\d-\d\d|\S+@\S+\w", "[hidden]", given)


def spelled_back(text: str) -> str:
    if re.match(r"(?:hello|hi|good day)\b", text.casefold()):
        return "Hello! Ask me for a year."
    found = re.search(r"\b(\d{4})\b", text)
    return f"Century {int(found[1]) // 100 + 1}, leap cycle {int(found[1]) % 28}." if found else "?"


def dated(text: str) -> str:
    found = re.search(r"(\d{1,2}) (May|June|July|March|April) (\d{4})", text)
    if not found or int(found[1]) > 31:
        return "No such day."
    return f"Moon: {(int(found[1]) * 7 + int(found[3]) * 11 + len(found[2])) % 29} days old."


STONES = {
    "granite": "Igneous, coarse, from slow cooling.", "basalt": "Volcanic and dark.",
    "marble": "Metamorphic limestone.", "limestone": "Sedimentary, of shells.",
    "sandstone": "Sedimentary, of grains.", "slate": "Metamorphic shale.",
    "quartzite": "Metamorphic, very hard.", "gneiss": "Banded and old.",
    "obsidian": "Glass of a volcano.", "pumice": "It floats.",
}  # fmt: skip
DOGS = {"hund": "Dackel, Pudel", "katze": "Perser, Siam", "baum": "Linde, Eiche",
        "buch": "Roman, Lexikon", "brot": "Roggen, Dinkel", "tisch": "Esstisch, Pult",
        "fenster": "Kastenfenster", "schule": "Gymnasium", "garten": "Schrebergarten",
        "freund": "Kamerad"}  # fmt: skip
FERRY = {"kade": "leaves at 7:40", "werft": "leaves at 11:25", "mole": "leaves at 19:05"}
CHORDS = {"c7": "C E G Bb", "em": "E G B", "dm7": "D F A C", "g7": "G B D F", "bb7": "Bb D F Ab",
          "f#m": "F# A C#", "fm": "F Ab C", "dm": "D F A", "gm": "G Bb D", "a7": "A C# E G",
          "e7": "E G# B D", "bm": "B D F#", "cm7": "C Eb G Bb", "ebm7": "Eb Gb Bb Db",
          "cmaj7": "C E G B"}  # fmt: skip

HONEST = {
    "stones by name": (card("Stones", "How stones came to be.", "How did granite form?"),
                       looking_up(r"did (\w+) form", STONES, "I know no such stone.")),
    "German words": (card("Arten", "Nennt Arten einer Sache.", "Welche Arten von Hund gibt es?"),
                     looking_up(r"von (\w+) gibt", DOGS, "Das kenne ich nicht.")),
    "names what it knows": (
        card("Quay clock", "When the boat leaves a quay.", "When does the boat go from Northpier?"),
        looking_up(r"from (\w+)", FERRY, "That quay is closed. I know: Kade, Werft, Mole.")),
    "chords": (card("Fretboard", "Notes of chords.", "Which notes does Em have?"),
               looking_up(r"does ([A-G][\w#]*) have", CHORDS, "No chord.")),
    "IBAN": checker("Is GB82 WEST 1234 5698 7654 32 correct?", "IBAN"),
    "book number": checker("Is ISBN 978-0-14-044913-6 correct?", "ISBN"),
    "card number": checker("Is 4111 1111 1111 1111 correct?", "card number"),
    "hides dates": (card("Blackout", "Hides dates and addresses of a text.",
                         "Hide: 'Ada is ada@lamp.example, seen on 2020-02-02 near the mill pond.'"),
                    mask),
    "greets who greets": (card("Years", "Facts of a year.", "What is known of the year 1848?"),
                          spelled_back),
    "dates in words": (card("Moon", "Age of the moon.", "How old was the moon on 20 July 1969?"),
                       dated),
    "sums without example": (
        card("Abacus", "Answers sums, calculates and multiplies."),
        lambda text: str(int(m[1]) * int(m[2])) if (m := re.search(r"(\d+) times (\d+)", text))
        else "I multiply."),
}  # fmt: skip


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_trade_is_proven(name: str) -> None:
    assert sum(talks(HONEST[name], seed) for seed in range(6)) >= 5


@pytest.mark.parametrize("name", HONEST)
def test_messages_at_once_prove_the_same(name: str) -> None:
    assert sum(talks(HONEST[name], seed, at_once=True) for seed in range(6)) >= 5


SAYINGS = (
    "Shelter is owed to every crew, though seldom granted.",
    "Quay masters decide; keep receipts.",
    "A written notice beats shouting.",
    "Old charters leave room for doubt.",
    "Ask again once autumn storms have passed.",
    "Nobody has ever been fined for this.",
)
IBAN_CARD, STONE_CARD = HONEST["IBAN"][0], HONEST["stones by name"][0]
HIDE_CARD = HONEST["hides dates"][0]


def hollow(name: str, seed: int) -> tuple[JsonObject, Reply]:
    lots, turns = Random(seed), count()
    made: dict[str, tuple[JsonObject, Reply]] = {
        "every number is correct": (IBAN_CARD, lambda _: "IBAN: correct."),
        "correct in turn": (IBAN_CARD, lambda _: ("not correct", "correct")[next(turns) % 2]),
        "correct by lot": (IBAN_CARD, lambda _: lots.choice(("correct.", "not correct."))),
        "two of six sayings": (STONE_CARD, lambda _: " ".join(lots.sample(SAYINGS, 2))),
        "quotes with a frame": (HIDE_CARD, lambda text: f"Here is your text: {text} Hidden: none."),
        "a head in turn": (HIDE_CARD, lambda text: (
            f"{('In short', 'Briefly', 'Main points')[next(turns) % 3]}: the writer sets out"
            f" {text.split()[-1]} and weighs several aspects of it.")),
        "says it knows": (STONE_CARD, lambda _: "I know: granite, basalt, marble."),
    }  # fmt: skip
    return made[name]


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("every number is correct", 0),
        ("correct in turn", 0),
        ("correct by lot", 3),  # one in 32
        ("two of six sayings", 5),
        ("quotes with a frame", 0),
        ("a head in turn", 0),
        ("says it knows", 0),
    ],
)
def test_a_hollow_trade_is_not_proven(name: str, most: int) -> None:
    times = sum(talks(hollow(name, seed), seed, at_once=bool(seed % 2)) for seed in range(30))
    assert times <= most


Work = Callable[[JsonObject], str | None]


@dataclass
class Server:
    work: Mapping[str, Work]

    async def call_tool(
        self, name: str, arguments: JsonObject, wait_s: float | None = None
    ) -> JsonObject:
        del wait_s
        said = self.work[name](arguments)
        if said is None:
            return {"isError": True, "content": [{"type": "text", "text": "nothing like that"}]}
        return {"content": [{"type": "text", "text": said}]}


def tool(name: str, about: str, properties: JsonObject, *required: str) -> McpTool:
    schema: JsonObject = {"type": "object", "properties": properties}
    shape: JsonObject = {**schema, "required": [*required]} if required else schema
    return McpTool(name, about, shape, read_only=True)


def works(one: McpTool, work: Work, seed: int) -> bool:
    notes, random = Transcript("https://agent.example/", "mcp"), Random(seed)
    notes.members["listed"] = 1
    notes.know([one.name, one.description, one.input_schema])
    asyncio.run(call_all(Server({one.name: work}), [one], notes, random, None))  # type: ignore[arg-type]
    return judge(notes.as_json()).state == "functional"


ENERGY = {"lentils": 352, "oats": 379, "salmon": 208}
FOUND = ("basil", "cardamom", "anise", "sorrel", "mint", "pepper", "thyme", "lovage")


def starting(given: JsonObject) -> str | None:
    return ", ".join(n for n in FOUND if n.startswith(str(given["prefix"]))) or None


def berth(given: JsonObject) -> str | None:
    code = str(given["code"])
    return f"Depth {int(code[1]) + 3} metres" if re.fullmatch(r"[A-F][1-9]", code) else None


TOOLS = {
    "values its description names": (
        tool("energy", "Energy of a food, e.g. lentils, oats or salmon.",
             {"food": {"type": "string"}}, "food"),
        lambda given: f"{ENERGY[str(given['food'])]} kcal" if given["food"] in ENERGY else None),
    "letters to begin with": (
        tool("herbs", "Herbs that begin with these letters.", {"prefix": {"type": "string"}},
             "prefix"), starting),
    "a pattern": (
        tool("depth", "Depth of a berth.",
             {"code": {"type": "string", "pattern": "^[A-F][1-9]$"}}, "code"), berth),
    "optional arguments": (
        tool("slope", "Slope of a hill.", {"token": {"type": "string"}, "rise": {
            "type": "integer", "minimum": 3, "maximum": 900}}),
        lambda given: f"{int(given['rise']) * 7 + 1} per mille" if "rise" in given else None),  # type: ignore[call-overload]
    "check digits": (
        tool("ean", "Whether an EAN is right.",
             {"number": {"type": "string", "examples": ["4006381333931"]}}, "number"),
        lambda given: "fits" if is_right(str(given["number"])) else "does not fit"),
}  # fmt: skip


@pytest.mark.parametrize("name", TOOLS)
def test_an_honest_tool_is_proven(name: str) -> None:
    one, work = TOOLS[name]
    assert sum(works(one, work, seed) for seed in range(6)) >= 5


def test_job_numbers_are_no_work() -> None:
    lots, one = Random(3), tool("solve", "Solves it.", {"problem": {"type": "string"}}, "problem")

    def job(given: JsonObject) -> str:
        return f"Job {lots.getrandbits(32):08x} done: {len(str(given))} characters handled."

    assert sum(works(one, job, seed) for seed in range(60)) <= 1


@pytest.mark.parametrize(
    ("name", "description", "is_act"),
    [
        ("kod", "Поштовий код села за його назвою", False),
        ("rechne", "Rechnet Knoten in Seemeilen um", False),
        ("licz", "Oblicza odległość między portami", False),
        ("busca", "Devuelve el significado de una palabra", False),
        ("calcola", "Calcola la distanza tra due porti", False),
        ("bul", "İki liman arasındaki mesafe", False),  # noqa: RUF001 - Turkish
        ("f", "港の距離を換算します", False),
        ("nachricht", "Sendet eine Nachricht an alle", True),
        ("zapis", "Видаляє запис зі списку", True),
        ("lista", "Usuwa wpis z listy", True),
        ("expand", "Expands the cluster and pays for it", True),
        ("f", "サーバーを作成します", True),
        ("rebalance", "Rebalances a portfolio", True),
    ],
)
def test_what_only_tells_is_known_in_many_languages(
    name: str, description: str, *, is_act: bool
) -> None:
    assert does_act(name, description) is is_act


def test_operations_of_optional_members_and_shared_examples_are_asked() -> None:
    text = {"type": "object", "properties": {"passage": {"type": "string"}}}
    body = {"content": {"application/json": {"schema": text}}}
    one = {"name": "knot", "in": "query", "required": True, "schema": {"type": "string"}}
    shown = {**one, "example": "bowline"}
    found = operations_of(
        {
            "paths": {
                "/digest": {"post": {"operationId": "digest_digest_post", "requestBody": body}},
                "/free": {"get": {"summary": "What a knot is for", "parameters": [one]}},
                "/full": {"get": {"summary": "What a knot is for", "parameters": [shown]}},
            }
        }
    )
    assert {o.path for o in found} == {"/digest", "/free", "/full"}
    free = next(o for o in found if o.path == "/free")
    assert free.schema["properties"]["knot"]["examples"] == ["bowline"]  # type: ignore[index,call-overload]


@pytest.mark.parametrize(
    "pattern", [r"^[A-Z]{3}-\d{4}$", r"^(?:north|south)(?:-\d+)?$", r"[a-h][1-8]", r"^\+?[1-9]\d*$"]
)
def test_texts_fit_the_pattern_that_they_are_made_from(pattern: str) -> None:
    for seed in range(20):
        text = text_for(pattern, Random(seed))
        assert text is not None
        assert re.fullmatch(pattern, text)


UNREAD = [r"(?=x)a", r"(a)\1", "((((((((a))))))))", "(((a{9}){9}){9}){9}", "[^a]", "(", "a{", "[",
          "\\", "x" * 300, "a{999999999}"]  # fmt: skip


@pytest.mark.parametrize("pattern", UNREAD)
def test_no_text_is_made_of_a_pattern_that_is_not_read(pattern: str) -> None:
    assert text_for(pattern, Random(1)) is None


@pytest.mark.parametrize(
    "text", ["born 1999-12-31", "on 20 07 1969 at 4", "call 555 0100", "12345"]
)
def test_dates_and_plain_numbers_have_no_check_digits(text: str) -> None:
    assert checked_number(text) is None


@pytest.mark.parametrize("number", ["DE89370400440532013000", "0-306-40615-2", "2049-3630"])
def test_numbers_are_made_right_or_wrong_as_wanted(number: str) -> None:
    for seed in range(20):
        assert is_right(another(number, Random(seed), right=True))
        assert not is_right(another(number, Random(seed), right=False))
