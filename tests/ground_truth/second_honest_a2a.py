"""Honest A2A agents of the second set: specialists, companions, quoting, slow and foreign ones."""

import asyncio
import random

from tests.ground_truth.fresh_base import Call, aio_agent
from tests.ground_truth.second_base import (
    Poster,
    Second,
    Talk,
    a2a,
    by_counter,
    by_sdk,
    counter_app,
    crafts,
    honest,
    poster,
)
from tests.ground_truth.second_crafts_a import CALENDAR, ELEMENTS, MEASURES, ZONES
from tests.ground_truth.second_crafts_b import (
    CHECKS,
    FERRIES,
    HOLIDAYS,
    LOANS,
    MUSIC,
    NETWORKS,
    NUTRITION,
)
from tests.ground_truth.second_crafts_c import (
    DIGEST,
    GARDENER,
    GLOSSARY,
    REDACTOR,
    SCANNER,
    STATISTICS,
    TRANSLATOR,
)
from tests.ground_truth.second_crafts_d import ARABIC, HINDI, JAPANESE, SPANISH, UKRAINIAN
from tests.ground_truth.second_layers import membership, prefixes, spaced, unhurried
from tests.ground_truth.second_wit import chat, vary
from tests.ground_truth.site import App, Build, Built, Scope, Site, registration, send_json

GENERAL = (
    ("Ask a text", "Finds what you want to know in a text that you paste.",
     ("What does it say of the boiler? 'The boiler is serviced on Friday. The roof is fine.'",
      "Which e-mail address is in: 'Write to ines@harbour.test before noon.'")),
    ("Lists", "Sorts, counts and turns round lists of words or numbers.",
     ("Sort these from A to Z: plum, cherry, quince, apricot",)),
    ("Sums", "Adds, subtracts, multiplies and divides, in words or digits.",
     ("What is thirty-one times twelve?", "What is 18% of 450?")),
    ("Short versions", "Shortens letters and reports.",
     ("Summarise: 'The mill reopened in June. Flour sales doubled. The owner is pleased.'",)),
)  # fmt: skip
"""What a companion's card promises."""


def companion(call: Call) -> str:
    """Whatever is asked, in words of the moment."""
    return chat(call.text)


def in_prose(talk: Talk) -> Talk:
    """The same answers with manners that vary."""

    async def said(call: Call) -> str:
        made = talk(call)
        return vary(made if isinstance(made, str) else await made)

    return said


def pondering(talk: Talk, low_s: float, high_s: float) -> Talk:
    """The same after a while."""

    async def said(call: Call) -> str:
        await asyncio.sleep(random.uniform(low_s, high_s))
        made = talk(call)
        return made if isinstance(made, str) else await made

    return said


STUDY = Poster(
    "Study companion",
    "A friendly assistant for students: answers from texts, lists, sums and summaries.",
    GENERAL,
    "/agent",
)
OFFICE = Poster(
    "Back office helper",
    "Reads the small texts of an office, answers questions on them and does the sums.",
    tuple((name, about, ()) for name, about, _ in GENERAL),
    "/a2a/v1",
    "1.0",
)


async def _editor(site: Site) -> Built:
    """On aiohttp and a socket of its own."""
    shown = poster(DIGEST, STATISTICS, TRANSLATOR, title="Copy room", shown=1)
    return await aio_agent(site, shown.sign, in_prose(crafts(DIGEST, STATISTICS, TRANSLATOR)))


def _moved_card(site: Site) -> Built:
    """The card has a path of its own, and the file declares it by another name."""
    shown = poster(NETWORKS, title="Netmask", path="/jsonrpc", age="1.0")
    app = counter_app(site, shown, crafts(NETWORKS), card_path="/cards/netmask.json")
    return a2a(site, app, "agent", "/cards/netmask.json")


def _members(site: Site) -> Built:
    """Only members are served, and the card says how one becomes one."""
    scheme = {"securitySchemes": {"member": {"type": "http", "scheme": "bearer"}},
              "security": [{"member": []}]}  # fmt: skip
    shown = poster(NUTRITION, title="Members' kitchen", path="/ask", more=scheme)
    return a2a(site, membership("kitchen-2291", counter_app(site, shown, crafts(NUTRITION))))


_HOUSE = ("Terrace house: dates", "Terrace house: barcodes", "Terrace house: words")


def _tenant(number: int, shown: Poster, talk: Talk) -> Build:
    """One of three agents under one host; each card speaks for its own path."""

    def build(site: Site) -> Built:
        host = site.others.get(_HOUSE[0], site)
        card = f"/{number}/agent-card.json"
        part = counter_app(site, shown, talk, card_path=card, base=host.url)
        rooms = _ROOMS.setdefault(host.url, {})
        rooms[f"/{number}/"] = part
        return Built([("A2A", host.url + card)], prefixes(rooms) if site is host else None)

    return build


_ROOMS: dict[str, dict[str, App]] = {}


def _both_ages(site: Site) -> Built:
    """An old card and a new one, each for its clients; the host's file is its own."""
    old = poster(MEASURES, title="Foot and metre", path="/v03")
    new = poster(MEASURES, title="Foot and metre", path="/v1", age="1.0")
    first = counter_app(site, old, crafts(MEASURES), card_path="/.well-known/agent.json")
    second = counter_app(site, new, crafts(MEASURES), mode="task")

    async def app(scope: Scope, receive: object, send: object) -> None:
        if scope["path"] == "/":
            await send_json(send, registration(site, a2a(site, app)))
        else:
            is_old = scope["path"] in {"/v03", "/.well-known/agent.json"}
            await (first if is_old else second)(scope, receive, send)  # type: ignore[arg-type]

    return a2a(site, app)


KIND = "a2a"
AGENTS: list[Second] = [
    honest(KIND, "Measure by measure",
           by_sdk(poster(MEASURES, ZONES), crafts(MEASURES, ZONES)), "card"),
    honest(KIND, "Meridian hours", by_sdk(poster(ZONES, shown=1), crafts(ZONES), rest=True)),
    honest(KIND, "Feast and workday",
           by_counter(poster(CALENDAR, HOLIDAYS, title="Feast and workday", shown=1),
                      crafts(CALENDAR, HOLIDAYS)), "card"),
    honest(KIND, "Bench chemist",
           by_counter(poster(ELEMENTS, path="/v1", age="1.0"), crafts(ELEMENTS), mode="task"),
           "card"),
    honest(KIND, "Archipelago boats",
           by_sdk(poster(FERRIES), crafts(FERRIES), task=True, old=True)),
    honest(KIND, "Fret and key",
           by_counter(poster(MUSIC, path="/rpc"), crafts(MUSIC), mode="later")),
    honest(KIND, "Study companion", by_counter(STUDY, companion), "card"),
    honest(KIND, "Back office helper",
           by_counter(OFFICE, pondering(companion, 2, 4), mode="task")),
    honest(KIND, "Deck words", by_sdk(poster(GLOSSARY, shown=1), in_prose(crafts(GLOSSARY)))),
    honest(KIND, "Allotment friend",
           by_sdk(poster(GARDENER), pondering(in_prose(crafts(GARDENER)), 3, 6), task=True)),
    honest(KIND, "Literal French",
           by_counter(poster(TRANSLATOR, path="/fr"), in_prose(crafts(TRANSLATOR))), "card"),
    honest(KIND, "Letter scanner", by_sdk(poster(SCANNER), crafts(SCANNER), old=True)),
    honest(KIND, "Long story short",
           by_counter(poster(DIGEST, path="/", age="1.0"), in_prose(crafts(DIGEST)))),
    honest(KIND, "Black marker", by_sdk(poster(REDACTOR), crafts(REDACTOR), rest=True), "card"),
    honest(KIND, "Netmask", _moved_card),
    honest(KIND, "Foot and metre", _both_ages),
    honest(KIND, "Copy room", _editor, served=False),
    honest(KIND, "Cifras en letras",
           by_counter(poster(SPANISH, path="/es"), crafts(SPANISH)), "card"),
    honest(KIND, "和暦変換", by_sdk(poster(JAPANESE), crafts(JAPANESE))),
    honest(KIND, "عواصم",
           by_counter(poster(ARABIC, path="/ar", age="1.0"), crafts(ARABIC)), "card"),
    honest(KIND, "माप परिवर्तक",
           by_counter(poster(HINDI, shown=1), crafts(HINDI), mode="task")),
    honest(KIND, "Телефонні коди",
           by_sdk(poster(UKRAINIAN), crafts(UKRAINIAN), task=True), "card"),
    honest(KIND, "Lending sums",
           by_counter(poster(LOANS), crafts(LOANS), spaced(12, 20))),
    honest(KIND, "Checkpoint",
           by_counter(poster(CHECKS, age="1.0"), crafts(CHECKS), unhurried(2, 4))),
    honest("behind auth", "Members' kitchen", _members, row="behind_auth"),
    *(honest("shared host", name, _tenant(n, poster(c, path=f"/{n}/rpc"), crafts(c)), "card")
      for n, (name, c) in enumerate(zip(_HOUSE, (CALENDAR, CHECKS, STATISTICS), strict=True))),
]  # fmt: skip
