"""Honest A2A agents: assistants and specialists, on the library and by hand."""

import asyncio
import itertools
import random
from typing import Any

from tests.ground_truth.a2a_parts import (
    ASSISTANT,
    CARD,
    Face,
    Heard,
    Reply,
    face_of,
    hand_made_a2a,
    stock_a2a,
)
from tests.ground_truth.knowledge import DOMAINS, pick
from tests.ground_truth.mind import muse, think
from tests.ground_truth.site import App, Build, Built, Proof, Scope, Site, Spec, send_json
from tests.ground_truth.web_parts import Middle, around, behind_key, limited, slow

KIND = "a2a"


def assistant(heard: Heard) -> str:
    """Whatever is asked."""
    return think(heard.text)


def specialist(key: str) -> Reply:
    """One domain; anything else is declined in its own words."""
    domain = DOMAINS[key]

    def reply(heard: Heard) -> str:
        said = domain.answer(heard.text)
        return said or f"That is outside what I do. {domain.summary}"

    return reply


def card_service(site: Site, path: str = CARD) -> tuple[str, str]:
    """The usual declaration."""
    return ("A2A", site.url + path)


def on_library(face: Face, reply: Reply, *layers: Middle, **options: Any) -> Build:
    """On the official library."""

    def build(site: Site) -> Built:
        app: App = stock_a2a(site, face, reply, **options)
        return Built([card_service(site)], around(app, *layers))

    return build


def by_hand(face: Face, reply: Reply, *layers: Middle) -> Build:
    """Without a library."""

    def build(site: Site) -> Built:
        return Built([card_service(site)], around(hand_made_a2a(site, face, reply), *layers))

    return build


def at_another_address(site: Site) -> Built:
    """The card lives behind a permanent redirect and under a name of its own."""
    face = face_of(DOMAINS["zone"], "Meridian bot")
    app = hand_made_a2a(site, face, specialist("zone"), card_path="/agents/meridian/card.json")

    async def moved(scope: Scope, receive: Any, send: Any, inner: App) -> None:
        if scope["path"] in {CARD, "/meridian"}:
            to = {"location": "/agents/meridian/card.json"}
            await send_json(send, {"moved": True}, 308, to)
        else:
            await inner(scope, receive, send)

    return Built([("chat", site.url + "/meridian")], around(app, moved))


def cold_start(seconds: float) -> Middle:
    """The first call wakes a sleeping machine; it sleeps again after an hour."""
    state: dict[str, float] = {"awake": -1e9}
    lock = asyncio.Lock()

    async def layer(scope: Scope, receive: Any, send: Any, app: App) -> None:
        async with lock:
            now = asyncio.get_running_loop().time()
            if now - state["awake"] > 3600:
                await asyncio.sleep(seconds)
                state["awake"] = asyncio.get_running_loop().time()
        await app(scope, receive, send)

    return layer


OPENERS = ("Sure.", "Here you are:", "Happy to help!", "Of course.", "Let me see...", "Right:")


def chatty(heard: Heard) -> str:
    """The substance stays, the words around it do not."""
    return f"{random.choice(OPENERS)} {think(heard.text)} {random.choice(('', 'Anything else?'))}"


def thoughtful(low: float, high: float) -> Reply:
    """A model that takes seconds."""

    async def reply(heard: Heard) -> str:
        await asyncio.sleep(random.uniform(low, high))
        return think(heard.text)

    return reply


def translated(words: dict[str, str], unknown: str) -> Reply:
    """A country guide in another language."""

    def reply(heard: Heard) -> str:
        low = heard.text.lower()
        said = [line for word, line in words.items() if word in low]
        return " ".join(said) or unknown

    return reply


SPANISH = Face(
    "Guía de mercados",
    "Informa del día de mercado y de los productos de cada pueblo.",
    [("Mercados", "Día y productos del mercado de un pueblo.",
      ["¿Cuándo es el mercado de Alba?", "¿Qué se vende en Torres?"])],
)  # fmt: skip
SPANISH_WORDS = {
    "alba": "En Alba hay mercado el martes: queso, miel y mimbre.",
    "torres": "En Torres se vende aceite y cerámica cada sábado.",
    "vega": "Vega: viernes, verduras y pan de centeno.",
    "soto": "Soto: domingo por la mañana, ganado y lana.",
}
JAPANESE = Face(
    "駅弁案内",
    "駅ごとの名物弁当と値段を答えます。",
    [("駅弁", "駅の名物弁当を答えます。", ["仙台の駅弁は?", "金沢のおすすめを教えて"])],
)
JAPANESE_WORDS = {
    "仙台": "仙台は牛たん弁当、千二百円です。",
    "金沢": "金沢は笹寿司、九百五十円です。",
    "広島": "広島はあなごめし、千四百円です。",
    "函館": "函館は鰊みがき弁当、千百円です。",
}
GERMAN = Face(
    "Wanderauskunft",
    "Nennt Länge und Höhenmeter von Wanderwegen im Mittelgebirge.",
    [("Wege", "Länge und Anstieg eines Wegs.", ["Wie lang ist der Moorsteig?", "Adlerpfad"])],
)


def paths(heard: Heard) -> str:
    """Any trail has a length; unknown ones are guessed from the map."""
    names = [w.strip("?.,!\"'") for w in heard.text.split() if w[:1].isupper() and len(w) > 5]
    return "; ".join(
        f"{n}: {4 + pick(n, 190) / 10:.1f} km, {pick(n + 'h', 900)} Höhenmeter" for n in names[:3]
    ) or "Nennen Sie mir bitte den Weg."  # fmt: skip


def booking_clerk(heard: Heard) -> str:
    """Declines everything that is no question of stock, politely."""
    low = heard.text.lower()
    if any(word in low for word in ("available", "stock", "how many", "left")):
        word = max(heard.text.split(), key=len).strip("?.,!").lower()
        return f"We have {pick(word, 40)} of those at the depot, {pick(word + 'r', 9)} reserved."
    return "I only answer questions of availability. I do not take orders here."


CLERK = Face(
    "Depot clerk",
    "Answers how much of an article is available at the depot. Takes no orders by chat.",
    [("Availability", "Stock of an article.", ["How many trestles are available?"])],
)


def memory_of_conversation() -> Reply:
    """Remembers within a conversation, and never across two."""
    threads: dict[str, list[str]] = {}

    def reply(heard: Heard) -> str:
        mine = threads.setdefault(heard.context, [])
        mine.append(heard.text)
        if "my first question" in heard.text.lower() and len(mine) > 1:
            return f"You first asked: {mine[0][:120]}"
        return think(heard.text)

    return reply


def two_dialects(site: Site) -> Built:
    """One agent, declared once per protocol version on two paths."""
    new = stock_a2a(site, face_of(DOMAINS["days"]), specialist("days"))
    old = hand_made_a2a(
        site,
        face_of(DOMAINS["days"], "Almanac (legacy)", path="/old/rpc"),
        specialist("days"),
        card_path="/old/card.json",
    )

    async def app(scope: Scope, receive: Any, send: Any) -> None:
        await (old if scope["path"].startswith("/old") else new)(scope, receive, send)

    return Built([card_service(site), ("A2A 0.3", site.url + "/old/card.json")], app)


def bare_address(site: Site) -> Built:
    """Registers the address of the endpoint itself, with the card beside it."""
    face = face_of(DOMAINS["synonym"], path="/talk")
    return Built([("agent", site.url + "/talk")], hand_made_a2a(site, face, specialist("synonym")))


def with_website(site: Site) -> Built:
    """A card, a home page, an address of mail and a name service entry."""
    app = hand_made_a2a(site, face_of(DOMAINS["country"]), specialist("country"))

    async def home(scope: Scope, receive: Any, send: Any, inner: App) -> None:
        if scope["path"] == "/":
            page = b"<!doctype html><title>Atlas</title><h1>Atlas</h1><p>Countries by name."
            kind = [(b"content-type", b"text/html; charset=utf-8")]
            await send({"type": "http.response.start", "status": 200, "headers": kind})
            await send({"type": "http.response.body", "body": page})
        else:
            await inner(scope, receive, send)

    services = [
        card_service(site),
        ("web", site.url + "/"),
        ("email", "mailto:atlas@mail.test"),
        ("ENS", "atlas.eth"),
    ]
    return Built(services, around(app, home))


def deploys_in_mid_visit(site: Site) -> Built:
    """Two releases run side by side for a while: which one answers changes every few calls."""
    face = face_of(DOMAINS["ticker"], "Fundamentals, rolling")
    count = itertools.count()

    def change(card: dict[str, Any], _scope: Scope) -> dict[str, Any]:
        return card | {"version": f"5.{next(count) // 3 % 2}.0"}

    def reply(heard: Heard) -> str:
        said = specialist("ticker")(heard)
        return f"{said}" if next(count) // 5 % 2 else f"Ratios: {said}"

    return Built([card_service(site)], hand_made_a2a(site, face, reply, change_card=change))


def deploys_during_the_day(site: Site) -> Built:
    """An ordinary release: the version and a text of the card change every second day."""
    face = face_of(DOMAINS["recipe"])

    def change(card: dict[str, Any], _scope: Scope) -> dict[str, Any]:
        release = int(site.clock.hours // 48)
        return card | {
            "version": f"2.{release}.0",
            "description": f"{card['description']} (v{release})",
        }

    app = hand_made_a2a(site, face, specialist("recipe"), change_card=change)
    return Built([card_service(site)], app)


def _a(name: str, build: Build, proof: Proof = "well_known", **more: Any) -> Spec:
    return Spec(more.pop("kind", KIND), name, "honest", build, proof, **more)


def _key(site: Site) -> Built:
    app = hand_made_a2a(site, face_of(DOMAINS["loan"], "Member desk"), specialist("loan"))
    return Built([card_service(site)], around(app, behind_key("member-key-77f1")))


AGENTS = [
    _a("Desk assistant", on_library(ASSISTANT, assistant)),
    _a("Desk assistant, tasks", on_library(ASSISTANT, assistant, as_task=True), "card"),
    _a("Desk assistant, streaming", on_library(ASSISTANT, assistant, streaming=True)),
    _a("Desk assistant, both versions", on_library(ASSISTANT, assistant, old_too=True), "card"),
    _a("Desk assistant, REST binding", on_library(ASSISTANT, assistant, binding="HTTP+JSON")),
    _a("Desk assistant, no library", by_hand(ASSISTANT, assistant)),
    _a("Exchange desk", on_library(face_of(DOMAINS["currency"]), specialist("currency"))),
    _a("Measures", by_hand(face_of(DOMAINS["length"]), specialist("length")), "card"),
    _a("Skywatch", on_library(face_of(DOMAINS["weather"]), specialist("weather"), as_task=True)),
    _a("Fundamentals", by_hand(face_of(DOMAINS["ticker"]), specialist("ticker"))),
    _a("Moved Meridian", at_another_address),
    _a("Almanac twice", two_dialects),
    _a("Thesaurus at its endpoint", bare_address),
    _a("Atlas with a website", with_website, "card"),
    _a("Kitchen with releases", deploys_during_the_day, kind="deploying"),
    _a("Rolling release", deploys_in_mid_visit, kind="nondeterministic"),
    _a("Chatty", on_library(ASSISTANT, chatty), kind="nondeterministic"),
    _a("Remembers its talk", by_hand(ASSISTANT, memory_of_conversation()),
       kind="nondeterministic"),
    _a("Ponders", on_library(ASSISTANT, thoughtful(0.8, 2.5)), kind="slow"),
    _a("Ponders long", by_hand(ASSISTANT, thoughtful(3.0, 6.0)), "card", kind="slow"),
    _a("Slow line", by_hand(face_of(DOMAINS["element"]), specialist("element"), slow(0.5, 1.5)),
       kind="slow"),
    _a("Wakes up", by_hand(face_of(DOMAINS["colour"]), specialist("colour"), cold_start(7.0)),
       kind="cold start"),
    _a("Wakes up slowly", on_library(ASSISTANT, assistant, cold_start(15.0)), kind="cold start"),
    _a("Twelve a minute", by_hand(face_of(DOMAINS["circle"]), specialist("circle"), limited(12)),
       kind="rate limited"),
    _a("Twenty-five a minute", on_library(ASSISTANT, assistant, limited(25)), "card",
       kind="rate limited"),
    _a("Guía de mercados", by_hand(SPANISH, translated(SPANISH_WORDS, "No conozco ese pueblo.")),
       kind="not English"),
    _a("Ekiben", on_library(JAPANESE, translated(JAPANESE_WORDS, "その駅は存じません。")),
       "card", kind="not English"),
    _a("Wanderauskunft", by_hand(GERMAN, paths), kind="not English"),
    _a("Depot clerk", on_library(CLERK, booking_clerk), kind="declining"),
    _a("Lender, numbers only", by_hand(face_of(DOMAINS["loan"]), specialist("loan")), "card",
       kind="declining"),
    _a("Member desk", _key, row="behind_auth", kind="behind auth"),
    _a("Muser", by_hand(Face("Muser", "Muses about any subject.",
       [("Muse", "Thoughts on a subject.", ["Lighthouses", "Rye bread"])]),
       lambda heard: muse(heard.text)), kind="declining"),
]  # fmt: skip
