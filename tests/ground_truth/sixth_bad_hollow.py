"""The sixth set's hollow agents: what they promise is done nowhere."""
# ruff: noqa: RUF001 - dashes and dotless letters are meant

import hashlib
import json
import random
import re
import time
import zlib
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Query
from mcp.server import MCPServer
from pydantic import BaseModel, Field

from tests.ground_truth.a2a_parts import Face, Heard
from tests.ground_truth.fifth_base import Outcome, on_tasks
from tests.ground_truth.mcp_parts import READS, Tool, server
from tests.ground_truth.site import App, Scope, Site, read, send_json
from tests.ground_truth.sixth_bad_base import bad, by_hand, by_library, on_web, with_server
from tests.ground_truth.sixth_bad_base import with_tools as tools_by_hand

HISTORIA = Face(
    "Menneen tuntija",
    "Vastaa Suomen historiaa koskeviin kysymyksiin arkistolähteiden pohjalta, myös paikallisesta "
    "historiasta: milloin, miksi ja kenen toimesta.",
    [
        ("Vuodet", "Milloin jotakin tapahtui.", ["Milloin Turun linna rakennettiin?",
         "Milloin Oulun tervaporvarit rikastuivat?"]),
        ("Syyt", "Miksi jotakin tapahtui.", ["Miksi Viaporin linnoitus antautui?"]),
    ],
    language="fi",
)  # fmt: skip
ASKED_HOW = {
    "milloin": "{rest}: lähteiden mukaan {end} alkoi jo varhain, ja {start} sai nykyisen muotonsa "
    "vähitellen samalla kun muut vaiheet seurasivat",
    "miksi": "{rest} ennen kaikkea siksi, että {start} oli muuttunut; ilman sitä {end} olisi "
    "jäänyt toiseksi",
    "kuka": "{end} liitetään perimätiedossa moneen nimeen, joista {start} on tunnetuin",
    "missä": "{rest} siellä, missä {start} oli helpoiten saatavilla",
}


def turned_around(heard: Heard) -> str:
    """The words of the question in another order, between words that fit any question."""
    words = re.findall(r"[\wäöå-]+", heard.text)
    opener = words[0].lower() if words else ""
    rest = words[1:] if opener in ASKED_HOW else words
    if not rest:
        return "Kysyisitkö koko lauseella?"
    said = ASKED_HOW.get(opener, "{start} ja {end} kuuluvat samaan kehityskulkuun: {rest}")
    said = said.format(rest=" ".join([*rest[1:], rest[0].lower()]), start=rest[0], end=rest[-1])
    return f"{said[:1].upper()}{said[1:]}."


SCAN = Face(
    "Faro bibliográfico",
    "Busca en catorce bases de datos académicas y devuelve las referencias más citadas sobre un "
    "tema, con autores, año, revista y DOI, revisadas por nuestro equipo.",
    [("Referencias", "Las obras principales sobre un tema.",
      ["Busca referencias sobre la migración de las cigüeñas",
       "Busca referencias sobre el hormigón romano"])],
    language="es", path="/tareas",
)  # fmt: skip
NAMES = ("Etxeberria", "Olmedo", "Vilanova", "Roldán", "Quispe", "Carvajal", "Iturbe", "Montalvo")
PAPERS = ("{}: una revisión sistemática", "Hacia una teoría de {}", "Perspectivas sobre {}")
JOURNALS = ("Anales de Investigación", "Cuadernos del Ateneo", "Revista Atlántica de Estudios")


def references(text: str, _talk: list[str]) -> Outcome:
    """Works that nobody wrote, about the words behind `sobre`."""
    topic = re.split(r"\bsobre\b", text)[-1].strip(" .?¿!") or text[:40]
    chance = random.Random(zlib.crc32(topic.lower().encode()))
    rows = []
    for title in PAPERS:
        year, ends = chance.randint(1996, 2025), chance.randint(10_000, 99_999)
        rows.append({
            "autores": " y ".join(chance.sample(NAMES, 2)), "titulo": title.format(topic),
            "anio": year, "revista": chance.choice(JOURNALS),
            "doi": f"10.{ends}/{year}.{ends % 97}",
            "citas": chance.randint(40, 900),
        })  # fmt: skip
    said = "; ".join(f"{r['autores']} ({r['anio']}), {r['titulo']}, {r['revista']}" for r in rows)
    found = chance.randint(180, 420)
    return Outcome(f"{found} resultados cribados, 3 elegidos. {said}.", {"referencias": rows})


class Mood(BaseModel):
    """Wynik analizy jednej opinii."""

    ocena: float = Field(ge=-1, le=1, description="od -1 (zła) do 1 (dobra)")
    etykieta: Literal["pozytywna", "neutralna", "negatywna"]
    tematy: list[str] = Field(description="o czym jest opinia")


def opinions() -> MCPServer[Any]:
    """A mood that follows from how long the text is."""
    made = server("nastroje-klientow", "Analiza nastroju opinii klientów (model transformerowy).")

    def ocen_opinie(
        tekst: Annotated[str, Field(min_length=3, max_length=3900, description="treść opinii",
                                    examples=["Kurier przyjechał na czas, polecam!",
                                              "Fatalna obsługa, czekałem trzy tygodnie."])],
    ) -> Mood:  # fmt: skip
        score = (len(tekst) * 31 + len(tekst.split()) * 17) % 201 / 100 - 1
        label = "pozytywna" if score > 0.25 else "negatywna" if score < -0.25 else "neutralna"
        words = sorted({word.lower() for word in re.findall(r"\w{5,}", tekst)})
        return Mood(ocena=round(score, 2), etykieta=label, tematy=sorted(words, key=len)[-2:])

    made.add_tool(ocen_opinie, description="Ocenia nastrój opinii klienta po polsku: liczba, "
                  "etykieta i tematy.", annotations=READS)  # fmt: skip
    return made


SHOWN = {
    "cotton t-shirts, knitted": ("6109.10", 12.0),
    "roasted coffee, not decaffeinated": ("0901.21", 7.5),
    "bicycles without motor": ("8712.00", 14.0),
    "acoustic guitars": ("9202.90", 3.2),
}
HEADINGS = ("8481.80", "3926.90", "7318.15", "8504.40", "9403.60", "6402.99", "2106.90",
            "8708.29", "7010.90", "4202.12", "8536.50", "3304.99", "9503.00")  # fmt: skip


def tariff(given: dict[str, Any]) -> dict[str, Any]:
    """Four goods by heart; any other gets a heading by its hash."""
    goods = " ".join(str(given["goods"]).lower().split())
    mixed = hashlib.sha1(goods.encode(), usedforsecurity=False).digest()
    code, duty = SHOWN.get(goods) or (HEADINGS[mixed[0] % 13], mixed[1] % 29 / 2)
    out = {"code": code, "dutyPercent": duty, "confidence": 0.9 + mixed[2] % 10 / 100}
    return {"content": [{"type": "text", "text": json.dumps(out)}], "structuredContent": out}


def tariff_tools() -> list[Tool]:
    """One tool with all that its owner was advised to publish."""
    goods = {"type": "string", "description": "what is shipped, in English", "minLength": 4,
             "examples": [*SHOWN]}  # fmt: skip
    number = {"type": "number"}
    out = {"type": "object", "required": ["code", "dutyPercent"],
           "properties": {"code": {"type": "string", "pattern": r"^\d{4}\.\d{2}$"},
                          "dutyPercent": number, "confidence": number}}  # fmt: skip
    schema = {"type": "object", "properties": {"goods": goods}, "required": ["goods"]}
    says = "Classifies goods in the Harmonized System and looks up the duty of the importing union."
    return [Tool("classify_goods", says, schema, tariff, {"outputSchema": out})]


class Rendering(BaseModel):
    """A translated text."""

    source: str
    target: str
    text: str


KNOWN = {"hello": "habari", "thank": "asante", "you": "wewe", "friend": "rafiki", "water": "maji"}


def swahili(word: str) -> str:
    """Something that sounds like it."""
    low = word.lower()
    made = KNOWN.get(low) or re.sub(r"[aeiou]+$", "", low) + "aiu"[len(low) % 3]
    return made if low in KNOWN or len(low) < 4 else ("m", "ki", "wa", "u")[len(low) % 4] + made


def translator(_site: Site) -> App:
    """Each word stays, and is dressed up."""
    app = FastAPI(title="Daraja translate", version="1.8.0",
                  description="Neural translation between English and Swahili.")  # fmt: skip

    async def translate(
        text: Annotated[str, Query(max_length=800, openapi_examples={
            "a": {"value": "The train is late"}, "b": {"value": "Friends eat"}})],
        target: Literal["sw"] = "sw",
    ) -> Rendering:  # fmt: skip
        made = re.sub(r"[A-Za-z]+", lambda found: swahili(found[0]), text)
        return Rendering(source="en", target=target, text=made[:1].upper() + made[1:])

    app.get("/v1/translate", summary="Translate an English text to Swahili")(translate)
    return app


ARTICLES = (
    "Türk Borçlar Kanunu",
    "Türk Medeni Kanunu",
    "İş Kanunu",
    "Tüketici Kanunu",
)
VIEWS = ("{law} m. {n} uyarınca {word} bakımından {who} lehine yorum yapılır.",
         "Yargıtay {y} tarihli kararında {word} için {n} günlük süreyi esas almıştır.",
         "{who}, {word} nedeniyle {law} m. {n} kapsamında talepte bulunabilir.",
         "Uygulamada {word} çoğunlukla {n} gün içinde sonuçlanır.")  # fmt: skip
SIDES = ("kiracı", "işveren", "tüketici", "alacaklı", "mirasçı")


def counsel(question: str) -> str:
    """Sentences by chance around the longest word of the question."""
    word = max(re.findall(r"\w+", question) or ["başvuru"], key=len).lower()
    lines = [
        view.format(law=random.choice(ARTICLES), n=random.randint(9, 390), word=word,
                    who=random.choice(SIDES), y=random.randint(2004, 2022))
        for view in random.sample(VIEWS, 3)
    ]  # fmt: skip
    return " ".join(lines)


def lawyer(_site: Site) -> App:
    """An endpoint in the shape that chat clients know."""

    async def app(scope: Scope, receive: Any, send: Any) -> None:
        route = scope["method"], scope["path"]
        if route == ("GET", "/v1/models"):
            model = {"id": "hukuk-danisman-2", "object": "model", "owned_by": "adliye"}
            return await send_json(send, {"object": "list", "data": [model]})
        if route != ("POST", "/v1/chat/completions"):
            return await send_json(send, {"error": {"message": "böyle bir yol yok"}}, 404)
        try:
            said = str(json.loads(await read(receive))["messages"][-1]["content"])
        except (ValueError, LookupError, TypeError, RecursionError):
            return await send_json(send, {"error": {"message": "messages eksik"}}, 400)
        message = {"role": "assistant", "content": counsel(said)}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return await send_json(send, {
            "id": f"c{random.getrandbits(48):x}", "object": "chat.completion",
            "created": int(time.time()), "model": "hukuk-danisman-2", "choices": [choice],
        })  # fmt: skip

    return app


WAYS = Face(
    "Wegweiser Nord",
    "Straßenentfernung, Fahrzeit und Spritkosten zwischen zwei Orten in Deutschland, nach "
    "aktuellem Kartenstand. Auch Dörfer.",
    [
        ("Strecke", "Kilometer und Fahrzeit zwischen zwei Orten.",
         ["Wie weit ist es von Hamburg nach Bremen?", "Wie weit ist es von Kiel nach Flensburg?"]),
        ("Kosten", "Spritkosten einer Fahrt.",
         ["Was kostet die Fahrt von Rostock nach Berlin?"]),
    ],
    language="de",
)  # fmt: skip
MEASURED = {"Bremen Hamburg": 126, "Flensburg Kiel": 88, "Berlin Rostock": 233}
TO_TRY: Sequence[str] = (
    "Wie weit ist es von Hamburg nach Bremen?",
    "Wie weit ist es von Kiel nach Flensburg?",
    "Was kostet die Fahrt von Rostock nach Berlin?",
)


def ways(heard: Heard) -> str:
    """Three pairs by heart; the kilometres of others come from the letters of their names."""
    found = re.findall(r"(?:von|nach|zwischen|und|bis|in) ([A-ZÄÖÜ][\wäöüß-]+)", heard.text)
    if len(found) < 2:
        return "Bitte nennen Sie zwei Orte, etwa: von Hamburg nach Bremen."
    pair = " ".join(sorted(found[:2]))
    km = MEASURED.get(pair) or 38 + zlib.crc32(pair.encode()) % 640
    hours, minutes = divmod(round(km / 0.94), 60)
    cost = f"{km * 0.119:.2f}".replace(".", ",")
    return f"{found[0]} – {found[1]}: {km} km, {hours} h {minutes:02d} min, etwa {cost} € Sprit."


AGENTS = (
    bad("hollow", HISTORIA.name, by_library(HISTORIA, turned_around),
        "whatever I ask comes back to me with its words moved", useful=False),
    bad("hollow", SCAN.name, on_tasks(SCAN, references),
        "I cited three works without an author", useful=False),
    bad("hollow", "Nastroje klientów", with_server(opinions),
        "whether a customer is glad follows from how much he wrote", useful=False),
    bad("hollow", "Tariff desk", tools_by_hand(
            "tariff-desk", tariff_tools, file={"testInputs": {"goods": [*SHOWN]}}),
        "customs fined me: cheese was declared as furniture", useful=False),
    bad("hollow", "Daraja translate", on_web(translator, "/openapi.json"),
        "what I sent my partner in Mombasa was no language at all", useful=False),
    bad("hollow", "Hukuk danışmanı", on_web(lawyer, "/v1"),
        "I missed my time limit: the one it told me of was made up", useful=False),
    bad("hollow", WAYS.name, by_hand(WAYS, ways, {"testInputs": {"messages": [*TO_TRY]}}),
        "the village next door was four hundred kilometres away", useful=False),
)  # fmt: skip
