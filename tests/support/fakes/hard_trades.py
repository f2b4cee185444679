"""Small agents that are hard to ask, and hollow ones that look like them. Wording of their own."""

import re
from collections.abc import Callable, Mapping
from fnmatch import fnmatch
from itertools import count
from random import Random
from zlib import crc32

from assay.common.json import JsonObject
from assay.probing.ports import McpTool

Reply = Callable[[str], str]
Work = Callable[[JsonObject], str]


def card(name: str, about: str, *examples: str) -> JsonObject:
    skill: JsonObject = {
        "id": name.casefold().replace(" ", "-"),
        "name": name,
        "description": about,
        "examples": [*examples],
    }
    return {"name": name, "description": about, "skills": [skill]}


def tool(name: str, about: str, properties: JsonObject) -> McpTool:
    schema: JsonObject = {
        "type": "object",
        "properties": properties,
        "required": [*properties],
    }
    return McpTool(name, about, schema, read_only=True)


# What only its owner can name: published messages.

CRATES = card("Crate finder", "Says in which bay of the warehouse a crate stands.")
CRATE_MESSAGES = ["Which bay holds crate QD-118-K?", "Which bay holds crate ZL-907-B?"]


def finds_crates(text: str) -> str:
    found = re.search(r"\b([A-Z]{2})-(\d{3})-([A-Z])\b", text)
    if found is None:
        return "Crates have numbers that are painted on their lids."
    bay = crc32(found[0].encode()) % 61
    return f"It stands in bay {bay}, level {int(found[2]) % 7}."


DEPOTS = card("Depot desk", "Says how much of something lies in a depot.")
DEPOT_MESSAGES = [
    "How many Finchley stools lie in the Harrow depot?",
    "How many Tarn benches lie in the Quill depot?",
    "How many Ouse trestles lie in the Selby depot?",
]


def counts_stock(text: str) -> str:
    found = re.search(r"many (Finchley stools|Tarn benches|Ouse trestles) .* the (\w+) depot", text)
    if found is None or found[2] not in {"Harrow", "Quill", "Selby"}:
        return "That is not in our books."
    return f"There are {crc32((found[1] + found[2]).encode()) % 400} of them."


# Who sorts: two messages of one sort get one answer.

WARDS = card(
    "Complaint desk",
    "Says which ward of the town hall a complaint belongs to.",
    "The street lamp outside number nine has been dark for a week",
    "My neighbour burns plastic in his garden every evening",
    "Lanterns along the canal path flicker all night",
)
TONGUES = card(
    "Tongue spotter",
    "Names the language that a line is written in.",
    "Der alte Kahn liegt seit Jahren im Schilf vor unserem Dorf",
    "Le vieux bateau dort depuis longtemps dans les roseaux du village",
)
BEASTS = card(
    "Beast keys",
    "Determines the class of an animal by what it looks like.",
    "It has feathers, a beak and lays eggs on cliffs",
    "It has scales, gills and lives in cold streams",
)


def names_ward(text: str) -> str:
    plain = text.casefold()
    if any(word in plain for word in ("lamp", "dark", "lantern", "flicker")):
        return "Ward: lighting"
    return "Ward: air" if any(word in plain for word in ("burn", "smoke", "plastic")) else "?"


def names_tongue(text: str) -> str:
    words = re.findall(r"\w+", text.casefold())
    german = sum(word in {"der", "alte", "liegt", "seit", "im", "vor", "unserem"} for word in words)
    french = sum(word in {"le", "vieux", "dort", "depuis", "dans", "les", "du"} for word in words)
    if not german and not french:
        return "I cannot tell."
    return "German" if german > french else "French"


def names_beast(text: str) -> str:
    words = set(re.findall(r"\w+", text.casefold()))
    bird, fish = len(words & {"feathers", "beak", "cliffs"}), len(words & {"scales", "gills"})
    if bird == fish:
        return "Not enough is known of it."
    return "Class: Aves" if bird > fish else "Class: Pisces"


SORTERS = {
    "wards": (WARDS, names_ward),
    "tongues": (TONGUES, names_tongue),
    "beasts": (BEASTS, names_beast),
}
LABELS = ("Ward: lighting", "Ward: air")


def hollow_sorters(seed: int) -> Mapping[str, Reply]:
    lots, turns = Random(7919 * seed + 5), count()
    prepared = dict(zip(examples_in(WARDS), (*LABELS, LABELS[0]), strict=True))
    return {
        "one answer": lambda _: LABELS[0],
        "by length": lambda text: LABELS[len(text) > 58],
        "by few or many words": lambda text: LABELS[len(text.split()) > 9],
        "by hash of six": lambda text: f"Ward: {'abcdef'[crc32(f'{seed}{text}'.encode()) % 6] * 4}",
        "echo": lambda text: f"Ward: {text}",
        "in turn": lambda _: LABELS[next(turns) % 2],
        "two by two": lambda _: LABELS[next(turns) // 2 % 2],
        "by lot of six": lambda _: f"Ward: {lots.choice('abcdef') * 4}",
        "prepared": lambda text: prepared.get(text, "Ward: general"),
        "prepared for what it holds": lambda text: next(
            (label for example, label in prepared.items() if example in text), "Ward: general"
        ),
    }


def coin(seed: int) -> Reply:
    lots = Random(7919 * seed + 5)
    return lambda _: lots.choice(LABELS)


def by_hash(seed: int) -> Reply:
    return lambda text: LABELS[crc32(f"{seed}{text}".encode()) % 2]


def examples_in(shown: JsonObject) -> list[str]:
    return [str(e) for e in shown["skills"][0]["examples"]]  # type: ignore[index,union-attr,call-overload]


# Who says in a result how it wants to be asked.

ROUTES = tool(
    "cheapest_way",
    "Returns the cheapest way between two points of a network.",
    {
        "roads": {"type": "array", "items": {"type": "string"}},
        "start": {"type": "string"},
        "goal": {"type": "string"},
    },
)
_ROAD = re.compile(r"(\w)-(\w): (\d+)")


def cheapest_way(given: JsonObject) -> str:
    roads = [(str(road), _ROAD.fullmatch(str(road))) for road in given["roads"]]  # type: ignore[union-attr]
    bad = next((road for road, read in roads if read is None), None)
    if bad is not None:
        return f"cannot read the road '{bad}'; write it as A-B: 4"
    costs: dict[str, int] = {str(given["start"]): 0}
    for _ in roads:
        for _, read in roads:
            assert read is not None
            for here, there in ((read[1], read[2]), (read[2], read[1])):
                if here in costs:
                    costs[there] = min(costs.get(there, 10**9), costs[here] + int(read[3]))
    goal = str(given["goal"])
    nodes = {n for _, read in roads if read for n in read.groups()[:2]}
    if str(given["start"]) not in nodes or goal not in nodes:
        return f"no such point; known are {', '.join(sorted(nodes))}"
    return f"costs {13 * costs[goal]} pence" if goal in costs else "there is no way"


PLANS = tool("ring_plan", "Tells when a bell rings next.", {"plan": {"type": "string"}})


def ring_plan(given: JsonObject) -> str:
    fields = str(given["plan"]).split()
    if len(fields) != 5:
        return f"cannot parse {str(given['plan'])!r}: five fields expected, such as 10 4 * * 2"
    if not (fields[0].isdigit() and fields[1].isdigit()):
        return "the first two fields must be numbers"
    return f"rings {int(fields[1]) * 60 + int(fields[0])} minutes past midnight"


PATHS = tool(
    "matching",
    "Lists those of some paths that a wildcard matches.",
    {
        "paths": {"type": "array", "items": {"type": "string"}},
        "pattern": {"type": "string"},
    },
)


def matching(given: JsonObject) -> str:
    found = [p for p in map(str, given["paths"]) if fnmatch(p, str(given["pattern"]))]  # type: ignore[arg-type]
    sizes = [str(crc32(p.encode()) % 9000) for p in found]
    return f"{len(found)}: {' '.join(sizes)}" if found else "nothing matches"


MEMBERS = tool(
    "member_of",
    "Returns the member of a record under a key.",
    {
        "record": {"type": "object", "additionalProperties": {"type": "integer"}},
        "key": {"type": "string"},
    },
)


def member_of(given: JsonObject) -> str:
    record = given["record"]
    assert isinstance(record, dict)
    if given["key"] not in record:
        return "no such key"
    return f"3 times it is {3 * int(str(record[str(given['key'])]))}"


TOOLS: Mapping[str, tuple[McpTool, Work]] = {
    "roads": (ROUTES, cheapest_way),
    "five fields": (PLANS, ring_plan),
    "paths": (PATHS, matching),
    "keys": (MEMBERS, member_of),
}


def refuses_roads(given: JsonObject) -> str:
    return f"cannot read the road '{given['roads'][0]}'; write it as A-B: 4"  # type: ignore[index,call-overload]


def refuses_in_turn() -> Work:
    turns = count()
    reasons = (
        "unreadable plan, five fields expected",
        "could not understand the hours; they must be written like 09:30",
        "the plan must be given as minute hour day month weekday",
    )
    return lambda _: reasons[next(turns) % 3]


# Who works on texts that tell of acts.

PROMISES = card(
    "Promise keeper",
    "Extracts from notes who promised what.",
    "Ada will send the plans by Friday; the weather was discussed at length;"
    " Ben agreed to book the room on Tuesday",
    "Clara has to pay the carpenter before 14 May; lunch was late again;"
    " Dora promised to call the mill",
)
_PROMISE = re.compile(r"([A-Z]\w+) (?:will|agreed to|has to|promised to) ([^;.“”\"']+)")


def keeps_promises(text: str) -> str:
    found = _PROMISE.findall(text)
    return "\n".join(f"{who}: {what.strip()}" for who, what in found) or "Nobody promised anything."


QUOTED_PROMISES = card(
    "Note reader",
    "Finds who promised what in notes such as “Ada will send the plans by Friday;"
    " it rained all day; Ben agreed to book the room on Tuesday”.",
)
"""An example stands in its description only."""
SENDER = card(
    "Promise mailer",
    "Extracts promises from notes and sends them to everybody.",
    *examples_in(PROMISES),
)

PROMISE_TOOL = tool(
    "find_promises",
    "Finds who promised what in notes such as “Ada will send the plans by Friday;"
    " it rained all day; Ben agreed to book the room on Tuesday”.",
    {"notes": {"type": "string"}},
)


def finds_promises(given: JsonObject) -> str:
    return keeps_promises(str(given["notes"]))


# Who arranges what it was given.

CITES = card(
    "Citation desk",
    "Shows how a printed work is cited.",
    "Reference for: Jane Doe, The Quiet Harbour, 1999",
    "Reference for: Omar Haddad, Lamps of the North, 2007",
)
CITE = tool(
    "reference",
    "Returns the reference of a book.",
    {
        "author": {"type": "string", "examples": ["Jane Doe", "Omar Haddad"]},
        "title": {"type": "string", "examples": ["The Quiet Harbour", "Lamps of the North"]},
        "year": {"type": "integer"},
    },
)


def cites(text: str) -> str:
    found = re.search(r"([A-Z]\w+) ([A-Z]\w+), ([^,]+), (\d{4})", text)
    return f"{found[2]}, {found[1][0]}. ({found[4]}). {found[3]}." if found else "Which book?"


def reference(given: JsonObject) -> str:
    first, _, last = str(given["author"]).rpartition(" ")
    initials = " ".join(f"{name[0]}." for name in first.split())
    return f"{last}, {initials} ({given['year']}). {given['title']}."


def cites_by_template(text: str) -> str:
    found = re.search(r"([A-Z]\w+ [A-Z]\w+), ([^,]+), (\d{4})", text)
    return f"{found[1]} ({found[3]}): {found[2]}." if found else f"{text} (n. d.)"


def reference_by_template(given: JsonObject) -> str:
    return f"{given['title']} ({given['year']}), written by {given['author']}"
