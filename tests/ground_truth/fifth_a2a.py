"""The fifth set's honest agents for messages: the official library, and three servers without."""

import asyncio
import json
import uuid
from typing import Any

from fastapi import FastAPI, Request

from tests.ground_truth.a2a_parts import CARD, Face, Heard, card_dict, hand_made_a2a, rpc_error
from tests.ground_truth.fifth_base import Outcome, Tell, honest, on_card, on_tasks, one_dot_oh
from tests.ground_truth.fifth_papers import actions, blut, cite, dewey, pig_latin, pluriels, tti
from tests.ground_truth.fifth_trades import codons, dice, fence, knight, pizzas, punnett, tea
from tests.ground_truth.fourth_base import after, on_stock
from tests.ground_truth.site import App, Build, Built, Site

KNIGHT = Face(
    "Knight errant",
    "Moves of a lone knight on an empty chessboard: where it can go from a square, and the fewest "
    "moves from one square to a second one with a path.",
    [
        ("Reach", "The squares a knight reaches in one move.", ["Where can a knight on g1 go?"]),
        (
            "Journey",
            "The fewest moves from square to square.",
            ["Knight from a1 to h8", "e4 to e5"],
        ),
    ],
)
PIZZA = Face(
    "Slice for the money",
    "Compares pizza offers by the area that your money buys. Returns a sentence and a table.",
    [("Compare", "Which of several pizzas is cheapest by area.",
      ["Two 26 cm for 18 or one 36 cm for 17.50?", "12 inch at $10, 16 inch at $15"])],
    path="/a2a/v1",
)  # fmt: skip
FENCE = Face(
    "Post and panel",
    "Counts fence panels and posts for a straight run. Panels are 1.8 m wide unless you say so. "
    "If the length is missing, the task waits for your next message.",
    [("Count", "Panels and posts for a length.",
      ["I want a fence of 23 m", "14.4 m with panels of 2 m"])],
    path="/tasks",
)  # fmt: skip
DEWEY = Face(
    "Which shelf",
    "Puts a book on one of the ten main classes of the Dewey decimal system, going by its title.",
    [("Classify", "The class of a title.",
      ["A short history of the Roman Empire", "Classify: Linear algebra done right"])],
)  # fmt: skip
CROSS = Face(
    "Pea garden",
    "Works out Mendelian crosses of one to three genes: all genotypes and phenotypes with their "
    "share, capital letters being dominant.",
    [("Cross", "Offspring of two genotypes.", ["Aa x Aa", "Cross RrYy with rryy"])],
)
CODON = Face(
    "Ribosome",
    "Reads strands of DNA and RNA with the standard genetic code: protein in one-letter symbols, "
    "mRNA, complement, reverse complement and GC content.",
    [
        ("Translate", "From strand to protein.", ["Translate ATGGCCTGGTAA"]),
        ("Other readings", "mRNA, complement, GC.",
         ["Reverse complement of ATGCCG", "GC content of ATTGCC"]),
    ],
    path="/",
)  # fmt: skip
TEA = Face(
    "First flush",
    "How hot and how long: water temperature and steeping time for sixteen teas. I take my time, "
    "and I talk of nothing but tea.",
    [("Brew", "Temperature and time for a tea.",
      ["How do I make sencha?", "Oolong in Fahrenheit, please"])],
)  # fmt: skip
DICE = Face(
    "Bone yard",
    "Throws dice in the notation of role-playing games. Every throw is random; averages and "
    "ranges are not.",
    [("Throw", "Rolls dice.", ["3d6+2", "roll d20"]),
     ("Odds", "Range and average.", ["What is the average of 2d8-1?"])],
)  # fmt: skip
BLOOD = Face(
    "Blutsbrüder",
    "Auskunft darüber, welche Blutgruppe welcher spenden kann (Erythrozyten, AB0 und Rhesus D).",
    [("Spende", "Wer kann wem spenden?",
      ["Kann A+ an AB- spenden?", "Von wem darf B negativ Blut bekommen?"])],
    language="de",
)  # fmt: skip
PLURIEL = Face(
    "Plus d'un",
    "Met les noms français au pluriel, exceptions comprises.",
    [("Pluriel", "Le pluriel d'un ou de plusieurs noms.",
      ["Quel est le pluriel de \u00ab cheval \u00bb ?", "bijou, festival, vitrail"])],
    language="fr",
)  # fmt: skip
TTI = Face(
    "띠 알리미",
    "태어난 해의 띠와 간지를 알려 드립니다.",
    [("띠", "해의 띠와 간지",
      ["1990년은 무슨 띠예요?", "2012년생"])],
    language="ko", path="/api",
)  # fmt: skip
ACTIONS = Face(
    "Who does what by when",
    "Reads meeting minutes and returns the actions agreed as structured data: owner, "
    "action, due. It reports what the minutes say and does nothing that they say.",
    [("Actions", "From minutes to actions.",
      ["Ada to send the plans by Friday. Ben will book the room."])],
    path="/minutes",
)  # fmt: skip
CITE = Face(
    "Works cited",
    "Writes a reference to a book in APA, MLA or Chicago style from author, title, house and year.",
    [("Cite", "One reference.",
      ['Ursula K. Le Guin, "The Dispossessed", Harper, 1974, APA',
       'MLA: Italo Calvino, "Invisible Cities", Harcourt, 1974'])],
)  # fmt: skip
PIG = Face(
    "Igpay",
    "Says your sentence in Pig Latin.",
    [("Translate", "English to Pig Latin.", ["Translate: the quick brown fox", "'Good morning'"])],
)


def fenced(text: str, talk: list[str]) -> Outcome:
    """Panels and posts, from this message or with what was said before."""
    said = fence(text) or fence(" ".join([*talk[-1:], text]))
    if said is None:
        return Outcome("How long is the fence, in metres?", state="input-required")
    return Outcome(said)


def listed(text: str, _talk: list[str]) -> Outcome:
    """Agreed actions as data."""
    found = actions(text)
    return Outcome(f"{len(found)} action{'s' * (len(found) != 1)} found.", {"actions": found})


def sliced(site: Site) -> App:
    """A small FastAPI program that speaks A2A 0.3 by hand."""
    app = FastAPI(openapi_url=None)

    async def card() -> dict[str, Any]:
        return card_dict(site, PIZZA, "0.3")

    async def rpc(request: Request) -> dict[str, Any]:
        try:
            asked = json.loads(await request.body())
            reply: dict[str, Any] = {"jsonrpc": "2.0", "id": asked.get("id")}
            if asked.get("method") != "message/send":
                return reply | {"error": {"code": -32601, "message": "only message/send"}}
            heard = " ".join(p.get("text", "") for p in asked["params"]["message"]["parts"])
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return rpc_error(-32602, "a message with text parts is needed")
        said, rows = pizzas(heard)
        parts: list[dict[str, Any]] = [{"kind": "text", "text": said}]
        if rows:
            parts.append({"kind": "data", "data": {"offers": rows}})
        return reply | {
            "result": {"kind": "message", "role": "agent", "messageId": uuid.uuid4().hex,
                       "parts": parts}
        }  # fmt: skip

    app.get(CARD)(card)
    app.post(PIZZA.path)(rpc)
    return app


def early(face: Face, tell: Tell) -> Build:
    """By hand, with the card where it was before version 0.3."""
    path = "/.well-known/agent.json"

    def build(site: Site) -> Built:
        app = hand_made_a2a(site, face, lambda heard: tell(heard.text), card_path=path)
        return Built([("A2A", site.url + path)], app)

    return build


async def thorough(heard: Heard) -> str:
    """Looks at the title twice, as its first build did."""
    await asyncio.sleep(0.2)
    return dewey(heard.text)


AGENTS = (
    honest("a2a", "Knight errant", on_stock(KNIGHT, lambda h: knight(h.text)), "card"),
    honest("a2a", "Slice for the money", on_card(sliced)),
    honest("a2a", "Post and panel", on_tasks(FENCE, fenced)),
    honest("a2a", "Which shelf", on_stock(DEWEY, thorough, as_task=True, streaming=True)),
    honest("a2a", "Pea garden", on_stock(CROSS, lambda h: punnett(h.text), binding="HTTP+JSON")),
    honest("a2a", "Ribosome", on_card(
        lambda site: hand_made_a2a(site, CODON, lambda h: codons(h.text)))),
    honest("a2a", "First flush", on_stock(
        TEA, after(lambda h: tea(h.text), 1.5, 4.0), streaming=True)),
    honest("a2a", "Bone yard", on_stock(DICE, lambda h: dice(h.text), old_too=True)),
    honest("a2a", "Blutsbrüder", early(BLOOD, blut)),
    honest("a2a", "Plus d'un", on_stock(PLURIEL, lambda h: pluriels(h.text), streaming=True)),
    honest("a2a", "띠 알리미", on_card(one_dot_oh(TTI, tti))),
    honest("a2a", "Who does what by when", on_tasks(ACTIONS, listed, takes_s=0.8)),
    honest("a2a", "Works cited", on_stock(CITE, lambda h: cite(h.text), as_task=True), "card"),
    honest("a2a", "Igpay", on_stock(
        PIG, lambda h: pig_latin(h.text), binding="HTTP+JSON", as_task=True)),
)  # fmt: skip
