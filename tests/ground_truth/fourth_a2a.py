"""Sixteen honest A2A agents of the fourth set: twelve that understand their trade, four tools."""
# ruff: noqa: RUF001 - Cyrillic and full-width signs are meant

import datetime as dt
import http
import re

from tests.ground_truth.a2a_parts import Face
from tests.ground_truth.fourth_base import after, honest, limited, on_stock
from tests.ground_truth.fourth_endpoints import rest_office, rpc_office
from tests.ground_truth.fourth_texts import digest, extract, fraud_signs, sort_message
from tests.ground_truth.fourth_tongues import rechne_tage, schitat, shouhizei, talla, tva
from tests.ground_truth.fourth_trades import (
    paint_needed,
    parcel_weight,
    run_pace,
    scale_recipe,
    split_bill,
)
from tests.ground_truth.fourth_words import Mind, days, has
from tests.ground_truth.site import Build, Built, Site

RECIPES = Mind(
    "scale recipes to any number of people",
    "Scale from 4 to 6: 300 g rice, 2 onions",
    [scale_recipe],
)
BILLS = Mind("split bills, tips included", "Split 84.60 between 4 with a 12% tip", [split_bill])
RUNS = Mind(
    "work out pace, distance and finishing times for runners",
    "What pace is 10 km in 52:30?",
    [run_pace],
)
WALLS = Mind(
    "work out how much wall paint a room takes",
    "How much paint for a room of 4 by 5 m, 2.5 m high, two coats?",
    [paint_needed],
)
PARCELS = Mind(
    "work out what weight parcels are charged for",
    "A parcel of 40 x 30 x 20 cm and 3 kg: what weight counts?",
    [parcel_weight],
)
FIELDS = Mind(
    "pull data fields out of texts you send me",
    "Which dates and amounts are in: 'Paid 40.00 EUR on 2026-02-11'",
    [extract],
)
QUEUES = Mind(
    "sort customers' messages into queues",
    "Sort: 'My parcel was due on Monday and has not arrived'",
    [sort_message],
)
DIGESTS = Mind(
    "shorten texts you paste",
    "Shorten to a single sentence: 'The mill burned. The village rebuilt it.'",
    [digest],
)
FRAUDS = Mind(
    "look through messages for signs of fraud",
    "Is this a scam? 'Dear customer, click here within 24 hours'",
    [fraud_signs],
)
TAGE = Mind(
    "rechne mit Kalendertagen",
    "Welcher Wochentag ist der 24.12.2026?",
    [rechne_tage],
    ("Guten Tag! Ich {can}. Etwa so: {example}", "Hallo! Ich {can}. Versuchen Sie: {example}"),
    (
        "Das gehört nicht zu meinem Gebiet. Ich {can}, etwa: {example}",
        "Da kann ich leider nicht helfen: Ich {can}. Ein Beispiel: {example}",
    ),
)
TAXES = Mind(
    "calcule la TVA, du HT au TTC et retour",
    "Quel est le TTC de 120 € HT à 20 % ?",
    [tva],
    ("Bonjour ! Je {can}. Par exemple : {example}",),
    (
        "Désolé, ce n'est pas mon métier : je {can}. Par exemple : {example}",
        "Je ne fais pas cela. En revanche, je {can} : {example}",
    ),
)
YEN = Mind(
    "消費税の計算をします",
    "税抜1,000円の税込価格は？", [shouhizei],
    ("こんにちは。{can}。例：{example}",),
    (("申し訳ありませんが、消費税の計算"
     "だけです。例：{example}"),),
)  # fmt: skip


def shoe(asked: str) -> str:
    """Sizes of shoes, as a plain tool answers."""
    return talla(asked) or "No entiendo la talla. Escriba por ejemplo: 42 EU de hombre."


def counted(asked: str) -> str:
    return schitat(asked) or ("Пришлите текст в кавычках.")


def status_code(asked: str) -> str:
    """HTTP's status codes, by number or by name."""
    number = re.search(r"\b([1-5]\d\d)\b", asked)
    low = asked.lower()
    for one in http.HTTPStatus:
        if (number and one.value == int(number[1])) or (not number and one.phrase.lower() in low):
            about = f": {one.description}" if one.description else ""
            return f"{one.value} {one.phrase}{about}"
    if number:
        return f"{number[1]} is no code of the IANA registry."
    return "Give me a status code such as 404, or a name such as 'Bad Gateway'."


PHASES = ("new moon", "waxing crescent", "first quarter", "waxing gibbous", "full moon",
          "waning gibbous", "last quarter", "waning crescent")  # fmt: skip
KNOWN_NEW = dt.datetime.fromisoformat("2000-01-06T18:14+00:00")
SYNODIC = 29.530588853


def moon(asked: str) -> str:
    """The moon's phase at noon, from the mean synodic month."""
    named = days(asked)
    if not named:
        off = "I only know the moon. " if not has(asked, "moon", "phase", "lunar") else ""
        return off + "Name a date, for example 14 March 2026 or 2026-03-14."
    said: list[str] = []
    for day in named[:5]:
        noon = dt.datetime(day.year, day.month, day.day, 12, tzinfo=dt.UTC)
        age = ((noon - KNOWN_NEW).total_seconds() / 86400) % SYNODIC
        phase = PHASES[int(age / SYNODIC * 8 + 0.5) % 8]
        said.append(f"{day.isoformat()}: {phase}, {age:.1f} days old")
    return "; ".join(said)


def slowed_down(build: Build, calls: int, window_s: float) -> Build:
    """The same agent behind a limit; its card stays free."""

    def built(site: Site) -> Built:
        made = build(site)
        assert isinstance(made, Built)
        assert made.app is not None
        card = made.services[0][1].removeprefix(site.url)
        return Built(made.services, limited(made.app, calls, window_s, [card]))

    return built


MAKER = {"provider": {"organization": "Fernleigh Software", "url": "https://fernleigh.example"},
         "documentationUrl": "https://fernleigh.example/agents"}  # fmt: skip

AGENTS = [
    honest("a2a", "Pan and portion", on_stock(
        Face("Pan and portion", "Scales a recipe to fit your table. Tell it for"
             " how many the recipe is written, for how many you cook, and the ingredients.",
             [("Scale a recipe", "Multiplies every amount of an ingredient list.",
               ["Scale this recipe from 4 to 10 people: 200 g flour, 2 eggs, 1.5 tbsp sugar",
                "My soup serves 6: 1 kg leeks, 3 potatoes, 2 litres stock. I need it for 15.",
                "Halve it: 500 g plums, 120 g butter, 4 eggs"])]), RECIPES), "card"),
    honest("a2a", "Going Dutch", on_stock(
        Face("Going Dutch", "Splits a restaurant bill between friends, with a tip if you give one.",
             [("Split", "Who pays what.", ["Split 84.60 between 4 with a 12% tip",
                                           ("We were five and the bill was $132.50. How much"
                                           " each?")])],
             path="/a2a/v1"), BILLS, streaming=True), "card"),
    honest("a2a", "Kilometre coach", rpc_office(
        Face("Kilometre coach", "Arithmetic for runners: pace from distance and time,"
                                " finishing time"
             " from pace, min/km to min/mile.",
             [("pace", "Pace of a run", ["What pace is 10 km in 52:30?"]),
              ("finish", "Finishing time", ["How long does a half marathon take at 5:40 per km?"]),
              ("convert", "Units", ["Convert 8:00 min/mile to min/km"])]),
        after(RUNS, 2, 4), polled=True, more={"card": MAKER})),
    honest("a2a", "Fristenrechner", rpc_office(
        Face("Fristenrechner", "Rechnet mit Daten: Wochentage, Abstände, Fristen in Tagen,"
             " Werktagen, Wochen oder Monaten (ohne Feiertage).",
             [("Wochentag", "Welcher Tag das ist", ["Welcher Wochentag ist der 24.12.2026?"]),
              ("Abstand", "Tage zwischen zwei Daten",
               ["Wie viele Tage liegen zwischen dem 1. Mai 2026 und dem 3. Juli 2026?"]),
              ("Frist", "Datum nach einer Frist", ["Was ist 45 Tage nach dem 3. März 2026?"])],
             language="de", path="/"), TAGE), "card"),
    honest("a2a", "Facturette", on_stock(
        Face("Facturette", "Assistant TVA pour indépendants : HT, TTC, montant de la taxe.",
             [("Calcul de TVA", "Passe du hors taxes au toutes taxes comprises, et inversement.",
               ["Quel est le TTC de 120 € HT à 20 % ?",
                "59,90 € TTC à 5,5 %, combien en HT ?"])], language="fr"),
        TAXES, old_too=True)),
    honest("a2a", "Tallas de zapato", rpc_office(
        Face("Tallas de zapato", "Convierte tallas de calzado.",
             [("Convertir talla", "EU, US, UK, cm", [("¿Qué talla EU es una 9 US de"
                                                     " hombre?")])],
             language="es"), after(lambda h: shoe(h.text), 0.1, 0.3), age="1.0")),
    honest("a2a", "Field picker", rpc_office(
        Face("Field picker", "Reads a mail or a note and gives back its data as JSON: e-mail"
             " addresses; dates (ISO 8601), amounts, references, phone numbers, links, people.",
             [("Extract fields", "All fields, or those you name.",
               [("Which dates and amounts are in: 'Paid 40.00 EUR on 2026-02-11, rest by 3 May"
                " 2026'"),
                "Extract everything: 'Order AB-12345, ask Mrs Jane Doe at jane@doe.example'"])],
             path="/jsonrpc"), after(FIELDS, 0.5, 1.5), age="1.0", polled=True, is_json=True,
        more={"card": MAKER})),
    honest("a2a", "Inbox sorter", on_stock(
        Face("Inbox sorter", "Sorts a customer's message: billing, delivery, technical, account,"
             " returns, praise or general, and how urgent it is.",
             [("Sort a message", "Queue and urgency with the sentence that decided.",
               ["Sort: 'I was charged twice for my subscription, please refund today'",
                "Which queue? 'The app crashes when I open the camera'"])]),
        after(QUEUES, 1, 2), as_task=True, streaming=True)),
    honest("a2a", "Long read, short", on_stock(
        Face("Long read, short", "Shortens articles, letters and minutes to the sentences that"
                                 " carry"
             " them. Works on what you paste; links stay unopened.",
             [("Summarise", "As many sentences as you ask for.",
               [("Shorten to a single sentence: 'The mill was built in 1790. It burned down in"
                " 1840, and the village rebuilt the mill within a year.'")])]),
        after(DIGESTS, 3, 8), binding="HTTP+JSON")),
    honest("a2a", "Scam spotter", on_stock(
        Face("Scam spotter", "Looks at a doubtful mail or text and names what speaks against it,"
             " quoting the words. Also flags orders hidden there for AIs.",
             [("Check a message", "Signs of fraud, with quotes",
               [("Is this a scam? 'Dear customer, your account expires within 24 hours. Click"
                " here.'")])]),
        FRAUDS, as_task=True, old_too=True), "card"),
    honest("a2a", "Roller and tray", rest_office(
        Face("Roller and tray", ("How much wall paint you need. Asks back when a measure is"
                                " missing."),
             [("Paint for a room", "Litres from the room's size, coats, doors and windows.",
               ["How much paint for a room of 4 by 5 m, 2.5 m high, two coats?",
                "Litres for 60 m² of wall, one coat"])]),
        after(WALLS, 0.5, 1.0), polled=True)),
    honest("a2a", "What does 418 mean", rpc_office(
        Face("What does 418 mean", "HTTP status codes", [("status", "Look up", ["404"])]),
        lambda h: status_code(h.text), card_path="/.well-known/agent.json")),
    honest("a2a", "Moon tonight", rest_office(
        Face("Moon tonight", "Phase and age of the moon for any date, from the mean lunar month.",
             [("Moon phase", "For one date or several",
               ["Which phase has the moon on 14 March 2026?", "moon 2026-08-12"])]),
        lambda h: moon(h.text))),
    honest("a2a", "消費税メモ", rpc_office(
        Face("消費税メモ",
             "税込と税抜の計算（10%、8%）",
             [("消費税", "金額から計算します",
               ["税抜1,000円の税込価格は？",
                "税込1,080円の税抜はいくら？食品です"])],
             language="ja"), YEN, age="1.0", more={"streams": True})),
    honest("a2a", "Счётчик текста", on_stock(
        Face("Счётчик текста", "Считает слова, буквы и предложения.",
             [("Подсчёт", "Текст в кавычках", ["Посчитай: «Мама мыла раму.»"])], language="ru"),
        lambda h: counted(h.text))),
    honest("a2a", "Carton clerk", slowed_down(rpc_office(
        Face("Carton clerk", "Volumetric weight of a parcel and what is charged;"
                             " divisor 5000 unless you"
             " name another. 30 calls a minute.",
             [("Chargeable weight", "From size and weight, in cm or inches, kg or lb.",
               ["A parcel of 40 x 30 x 20 cm and 3 kg: what weight counts?"])]), PARCELS), 30, 60)),
]  # fmt: skip
