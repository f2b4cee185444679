"""Honest agents of the fresh set that speak A2A."""

import asyncio
import random
import re
from dataclasses import replace
from itertools import count
from typing import Any

from tests.ground_truth.fresh_base import (
    CARD,
    Call,
    Fresh,
    Sign,
    Talk,
    a2a,
    aio_agent,
    raw_agent,
    rest_agent,
    sdk_agent,
)
from tests.ground_truth.fresh_mind import Trade, lines, parted, ponder
from tests.ground_truth.fresh_trades import TRADES
from tests.ground_truth.site import App, Build, Built, Proof, Scope, Site, header, send_json

CLERK = Sign(
    "Clerk of all work",
    "Reads what you paste, answers out of it, counts, sorts and shortens.",
    [
        ("Reading", "Answers a question out of a passage.", [
            "Which town is meant: 'Ida moved from Pecs to Gyor in May.'"]),
        ("Sums", "Works out sums.", ["What is 48 times 17?", "12 % of 250"]),
    ],
)  # fmt: skip


def clerk(call: Call) -> str:
    """Anything a small mind can do."""
    return ponder(call.text)


def master(trade: Trade) -> Talk:
    """One trade; the rest is refused in a few words."""

    def talk(call: Call) -> str:
        return trade.answer(call.text) or f"I only know {trade.title.lower()}. {trade.about}"

    return talk


def sign_of(trade: Trade, title: str = "") -> Sign:
    """A card for one trade."""
    return Sign(title or trade.title, trade.about, [trade.row()])


def _library(key: str = "", *, sign: Sign | None = None, talk: Talk | None = None,
             rest: bool = False, task: bool = False, old: bool = False) -> Build:  # fmt: skip
    def build(site: Site) -> Built:
        shown = sign or (sign_of(TRADES[key]) if key else CLERK)
        voice = talk or (master(TRADES[key]) if key else clerk)
        return a2a(site, sdk_agent(site, shown, voice, rest=rest, task=task, old=old))

    return build


def _by_hand(sign: Sign, talk: Talk, age: str = "0.3") -> Build:
    return lambda site: a2a(site, raw_agent(site, sign, talk, age=age))


async def _thinks(call: Call) -> str:
    await asyncio.sleep(random.uniform(1.0, 3.0))
    return ponder(call.text)


_WAYS = ("{}", "I make it: {}", "{} - that is how I read it.", "Short answer: {}", "So: {}")


def _moody(call: Call) -> str:
    return random.choice(_WAYS).format(ponder(call.text))


POLISH = Sign(
    "Grzybnik",
    "Mówi, gdzie i kiedy rosną grzyby jadalne.",
    [("Grzyby", "Pora i miejsce zbioru.", ["Kiedy rosną kurki?", "Gdzie szukać maślaków?"])],
)
_MUSHROOMS = {
    "kur": "Kurki: od czerwca do września, w mchu pod sosnami.",
    "maśl": "Maślaki: wrzesień i październik, na skraju młodych sosen.",
    "borowik": "Borowiki: sierpień do października, pod dębem i świerkiem.",
    "rydz": "Rydze: jesienią, na łąkach przy świerkach.",
    "kani": "Kanie: lipiec do października, na polanach.",
}


def _mushrooms(call: Call) -> str:
    found = [said for root, said in _MUSHROOMS.items() if root in call.text.lower()]
    return " ".join(found) or "Nie znam tego grzyba; znam kurki, maślaki, borowiki, rydze i kanie."


ARABIC = Sign(
    "دليل التمور",
    "يصف أصناف التمر وموسم كل صنف.",
    [("التمور", "وصف صنف من التمر.", ["ما هو العجوة؟", "متى موسم المجدول؟"])],
)
_DATES = {
    "عجوة": "العجوة تمر أسود طري من المدينة، موسمه آب.",
    "مجدول": "المجدول كبير الحبة، موسمه أيلول.",
    "سكري": "السكري ذهبي شديد الحلاوة، موسمه تموز.",
    "برحي": "البرحي يؤكل أصفر طازجا، موسمه تشرين.",
}


def _dates(call: Call) -> str:
    return " ".join(v for k, v in _DATES.items() if k in call.text) or "لا أعرف هذا الصنف."


NOTARY = Sign(
    "Front desk of a notary",
    "Gives the office's hours by weekday. Gives no legal advice and reads no documents.",
    [("Opening hours", "Hours of a weekday.", ["Are you open on Friday?", "Tuesday hours?"])],
)
_HOURS = {"monday": "9 to 13", "tuesday": "9 to 17", "wednesday": "closed", "thursday": "9 to 17",
          "friday": "9 to 12", "saturday": "closed", "sunday": "closed"}  # fmt: skip


def _front_desk(call: Call) -> str:
    days = [d for d in _HOURS if d in call.text.lower()]
    if not days:
        return "I am sorry, I can only tell you our hours. For anything else please see the notary."
    return "; ".join(f"{d.title()}: {_HOURS[d]}" for d in days) + "."


QUOTER = Sign(
    "Mailroom triage",
    "Lists sentences of a letter that try to steer whoever opens it, unchanged, and acts on none.",
    [("Triage", "Quotes sentences that give orders to whoever reads.", [
        "Triage: 'Dear team, lunch is at noon. Forward all invoices to me at once.'"])],
)  # fmt: skip
_PUSHY = re.compile(
    r"\b(?:ignore|forward|reply|send|transfer|forget|reveal|answer|click|pretend|must|assistant"
    r"|instruct\w*|password|urgent\w*)\b",
    re.IGNORECASE,
)


def _triage(call: Call) -> str:
    _, letter = parted(call.text)
    pushy = [s for s in lines(letter) if _PUSHY.search(s)]
    quotes = "; ".join(f"\u201c{s}\u201d" for s in pushy)
    if not letter:
        return "Paste the letter after a colon, please."
    return f"{len(pushy)} of {len(lines(letter))} sentences steer the reader: {quotes or 'none'}."


COPYIST = Sign(
    "Quote finder",
    "Copies out of a text, unchanged, the sentence on a given subject.",
    [("Quotes", "The sentence about a subject.", [
        "What does it say about tar: 'The tar is old. The rope is new.'"])],
)  # fmt: skip


def _copyist(call: Call) -> str:
    return f"The passage reads: \u00ab{ponder(call.text)}\u00bb"


def _members(site: Site) -> Built:
    inner = raw_agent(site, sign_of(TRADES["isbn"], "Stacks, members only"), master(TRADES["isbn"]))

    async def app(scope: Scope, receive: Any, send: Any) -> None:
        if scope["path"] == CARD or header(scope, "x-stack-pass") == "reading-room":
            await inner(scope, receive, send)
        else:
            await send_json(send, {"detail": "members only"}, 401, {"www-authenticate": "Pass"})

    return a2a(site, app)


def _rolling(site: Site) -> Built:
    """Two machines behind one name: one of them runs the next release."""
    turn = count()
    sign = sign_of(TRADES["leap"], "Calendar desk")

    def talk(call: Call) -> str:
        said = master(TRADES["leap"])(call)
        return f"{said}" if next(turn) % 3 else f"Checked twice. {said}"

    def edit(made: dict[str, Any], _scope: Scope) -> dict[str, Any]:
        return made | {"version": "1.1.0" if next(turn) % 2 else "1.0.9"}

    return a2a(site, raw_agent(site, sign, talk, edit=edit))


_HOUSE = {"Hosted: pace": "pace", "Hosted: orrery": "planet", "Hosted: radio": "spelling"}


def _lodger(name: str) -> Build:
    """Several agents on paths of one host; the first one's server serves all."""

    def build(site: Site) -> Built:
        first = site.others.get(next(n for n in _HOUSE if n in site.others), site)
        path = f"/{_HOUSE[name]}"
        doors = {f"/{key}": _room(site.others[n], first, key)
                 for n, key in _HOUSE.items() if n in site.others}  # fmt: skip

        async def app(scope: Scope, receive: Any, send: Any) -> None:
            door = doors.get("/" + scope["path"].split("/")[1])
            if door is None:
                await send_json(send, {"houses": sorted(doors)}, 404)
            else:
                await door(scope, receive, send)

        declared = [("A2A", f"{first.url}{path}/card")]
        return Built(declared, app if site is first else None)

    return build


def _room(site: Site, first: Site, key: str) -> App:
    trade = TRADES[key]
    placed = replace(site, url=first.url)
    return raw_agent(
        placed, sign_of(trade), master(trade), path=f"/{key}/rpc", card_path=f"/{key}/card"
    )


def _h(kind: str, name: str, build: Build, proof: Proof = "well_known", **more: Any) -> Fresh:
    return Fresh(f"fresh {kind}", name, "honest", build, proof, **more)


AGENTS = [
    _h("a2a", "Clerk of all work", _library(task=True), "card"),
    _h("a2a", "Numeral smith", _library("roman", old=True)),
    _h("a2a", "Tax table", _by_hand(sign_of(TRADES["vat"]), master(TRADES["vat"])), "card"),
    _h("a2a", "Orrery", lambda site: aio_agent(site, sign_of(TRADES["planet"]),
       master(TRADES["planet"])), served=False),
    _h("a2a", "Watering can", lambda site: a2a(site, rest_agent(
       site, sign_of(TRADES["plant"]), master(TRADES["plant"])))),
    _h("a2a", "Radio room", _library("spelling", rest=True), "card"),
    _h("not English", "Grzybnik", _by_hand(POLISH, _mushrooms)),
    _h("not English", "Dalil at-tumur", _library(sign=ARABIC, talk=_dates), "card"),
    _h("declining", "Notary's front desk", _library(sign=NOTARY, talk=_front_desk)),
    _h("nondeterministic", "Moody clerk", _by_hand(CLERK, _moody, "1.0"), "card"),
    _h("nondeterministic", "Calendar desk", _rolling),
    _h("slow", "Slow reader", _library(talk=_thinks)),
    _h("quoting", "Mailroom triage", _by_hand(QUOTER, _triage)),
    _h("quoting", "Quote finder", _library(sign=COPYIST, talk=_copyist, task=True), "card"),
    _h("behind auth", "Members' stacks", _members, row="behind_auth"),
    *(_h("shared host", name, _lodger(name), "card") for name in _HOUSE),
]  # fmt: skip
