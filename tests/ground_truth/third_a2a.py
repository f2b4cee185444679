"""The third set's honest A2A agents."""

import json
import re

from tests.ground_truth.a2a_parts import Heard
from tests.ground_truth.third_a2a_tongues import (
    abjad,
    clock,
    conjugated,
    declined,
    romaji,
    suffixed,
)
from tests.ground_truth.third_a2a_trades import (
    compass,
    dice,
    gears,
    knots,
    minutes,
    morse,
    resistor,
    strand,
    tidy,
)
from tests.ground_truth.third_base import by_desk, by_stock, face, honest, slowly

BRIDGES = tuple(
    {"name": name, "country": country, "kind": kind, "span_m": span, "opened": opened}
    for name, country, kind, span, opened in (
        ("Golden Gate Bridge", "United States", "suspension", 1280, 1937),
        ("Brooklyn Bridge", "United States", "suspension", 486, 1883),
        ("Akashi Kaikyo Bridge", "Japan", "suspension", 1991, 1998),
        ("Great Belt East Bridge", "Denmark", "suspension", 1624, 1998),
        ("Humber Bridge", "United Kingdom", "suspension", 1410, 1981),
        ("Forth Bridge", "United Kingdom", "cantilever", 521, 1890),
        ("Quebec Bridge", "Canada", "cantilever", 549, 1917),
        ("Sydney Harbour Bridge", "Australia", "arch", 503, 1932),
        ("Chaotianmen Bridge", "China", "arch", 552, 2009),
        ("Millau Viaduct", "France", "cable-stayed", 342, 2004),
        ("Normandy Bridge", "France", "cable-stayed", 856, 1995),
        ("Tatara Bridge", "Japan", "cable-stayed", 890, 1999),
        ("Rion-Antirion Bridge", "Greece", "cable-stayed", 560, 2004),
        ("Vasco da Gama Bridge", "Portugal", "cable-stayed", 420, 1998),
        ("Arrabida Bridge", "Portugal", "arch", 270, 1963),
        ("Stari Most", "Bosnia and Herzegovina", "arch", 29, 1566),
        ("Ponte Vecchio", "Italy", "arch", 30, 1345),
        ("Rialto Bridge", "Italy", "arch", 29, 1591),
        ("Hardanger Bridge", "Norway", "suspension", 1310, 2013),
        ("Yavuz Sultan Selim Bridge", "Turkey", "suspension", 1408, 2016),
    )
)


def bridges(heard: Heard) -> str:
    """Bridges by name, country, kind, length or age, as a JSON list."""
    low = heard.text.lower()
    named = [b for b in BRIDGES if b["name"].lower().removesuffix(" bridge") in low]
    if named:
        return json.dumps(named)
    found, narrowed = list(BRIDGES), False
    for key in ("country", "kind"):
        hits = [b for b in found if b[key].lower() in low]
        found, narrowed = (hits, True) if hits else (found, narrowed)
    for pattern, key, sign in (
        (r"(?:longer|more|over)\D{0,12}(\d+)", "span_m", 1),
        (r"(?:shorter|less|under)\D{0,12}(\d+)", "span_m", -1),
        (r"(?:after|since)\D{0,12}(\d{4})", "opened", 1), (r"before\D{0,12}(\d{4})", "opened", -1),
    ):  # fmt: skip
        limit = re.search(pattern, low)
        if limit:
            found = [b for b in found if sign * (b[key] - int(limit[1])) > 0]
            narrowed = True
    if not narrowed:
        return json.dumps({"error": "name a bridge, a country, a kind, a span or a year"})
    return json.dumps(found)


AGENTS = (
    honest("a2a", "Splice and bight", by_stock(face(
        "Splice and bight", "A book of rope knots: what each is for, how it is tied"
        " and when not to trust it. Twelve of them, no other topic.",
        ("Knots", "Picks a knot for a purpose, or explains a named one.",
         ["How do I tie a bowline?", "Which knot joins two ropes of different thickness?",
          "Tell me about the timber hitch"]),
    ), knots)),
    honest("a2a", "Telegraph office", by_desk(face(
        "Telegraph office", "Puts words into Morse code and Morse code into words.",
        ("To Morse", "Letters and digits to dots and dashes.", ["Encode 'STORM AT SIX'"]),
        ("From Morse", "Dots and dashes to letters; a slash parts words.",
         ["Decode: ... --- ... / .-- .- .. -"]),
        path="/telegraph",
    ), morse, age="1.0"), "card"),
    honest("a2a", "Odds at the table", by_stock(face(
        "Odds at the table", "Works out chances and means of dice throws. The words"
        " vary, the figures never.",
        ("Dice odds", "The chance of a sum with any dice, in per cent.",
         ["What is the chance of at least 9 with 2d6?", "Exactly 10 with 3d6",
          "What does 4d8 throw on average?"]),
    ), dice, as_task=True), "card"),
    honest("a2a", "Bridge ledger", by_desk(face(
        "Bridge ledger", "Searches twenty well-known bridges by name, country, kind, span in metres"
        " or year. Replies are JSON.",
        ("Bridge search", "Rows that fit what is asked.",
         ["Suspension bridges longer than 1400 m", "Bridges in Portugal", "Stari Most"]),
        path="/a2a/bridges",
    ), bridges, shape="task")),
    honest("a2a", "Galley proof", by_stock(face(
        "Galley proof", "Cleans up the typing of what you quote: spaces, dots, doubled words."
        " It hands the text back and says what it changed, never rewriting.",
        ("Clean up", "Mends spacing and marks.",
         ["Clean up: \u201cThe  ferry left , and and no one waved...\u201d"]),
    ), tidy, streaming=True)),
    honest("a2a", "Who does what", by_desk(face(
        "Who does what", "Reads notes of a meeting and lists who promised what by when, as a"
        " Markdown table. Takes a second or two.",
        ("Promises", "Finds sentences in which somebody will do something.",
         ["List the promises: 'Ines will book the hall by Friday. Otto will call the printer.'"]),
        path="/notes",
    ), slowly(minutes, 1.0, 2.2), shape="task"), "card"),
    honest("a2a", "Course plotter", by_desk(face(
        "Course plotter", "Names the compass point of a course and gives the way back.",
        ("Compass", "Degrees to one of sixteen points, and points to degrees.",
         ["Which point is 247 degrees?", "What is the way back from a course of 31\u00b0?", "SSW"]),
        path="/v1",
    ), compass, age="1.0", shape="task")),
    honest("a2a", "Chainring", by_desk(face(
        "Chainring", "Bicycle gears: the ratio and the metres per turn of the pedals, in"
        " JSON. Tyres are 28 mm wide unless you say otherwise.",
        ("Gear", "Chainring and cog, with the tyre if you like.",
         ["46x17", "50 by 11 on 700x25 tyres"]),
        path="/gear",
    ), slowly(gears, 0.9, 1.6), shape="data")),
    honest("a2a", "Colour bands", by_stock(face(
        "Colour bands", "Reads the coloured bands of a resistor, and finds the bands for a value.",
        ("Bands to ohms", "Three or four colours in order.", ["brown black red gold"]),
        ("Ohms to bands", "A value with k or M.", ["Which bands has 4.7k?", "330 ohm"]),
    ), resistor, old_too=True)),
    honest("a2a", "Strand desk", by_stock(face(
        "Strand desk", "Takes a strand of DNA and gives its length, reverse complement, GC share"
        " and the protein of its first frame, as a Markdown list.",
        ("Strand", "Anything of four bases or more.",
         ["ATGGCCATTGTAATG", "Describe the strand GGATCCTTAACG"]),
    ), strand, binding="HTTP+JSON"), "card"),
    honest("a2a", "Odmiennik", by_stock(face(
        "Odmiennik", "Odmienia polskie rzeczowniki po liczebnikach: 1 kot, 2 koty, 5 kot\u00f3w."
        " Zna czterna\u015bcie rzeczownik\u00f3w.",
        ("Liczba i rzeczownik", "Podaje w\u0142a\u015bciw\u0105 form\u0119.",
         ["5 kot", "Jak powiedzie\u0107: 22 jajko?", "13 bilet"]),
        language="pl",
    ), declined)),
    honest("a2a", "Conjuga", by_desk(face(
        "Conjuga", "Conjuga verbos portugueses no presente, no pret\u00e9rito ou no futuro:"
        " todos os regulares e os irregulares ser, ter, ir e estar.",
        ("Conjugar", "Um verbo no infinitivo e um tempo.",
         ["Conjugue 'cantar' no presente", "vender no futuro", "ter no passado"]),
        path="/verbos", language="pt",
    ), conjugated)),
    honest("a2a", "\u304b\u306a\u8aad\u307f", by_desk(face(
        "\u304b\u306a\u8aad\u307f", "\u3072\u3089\u304c\u306a\u3068\u30ab\u30bf\u30ab\u30ca\u3092"
        "\u30ed\u30fc\u30de\u5b57\u306b\u76f4\u3057\u307e\u3059\u3002",
        ("\u30ed\u30fc\u30de\u5b57", "\u304b\u306a\u306e\u8aad\u307f\u65b9\u3002",
         ["\u300c\u3059\u3044\u304b\u300d", "\u300c\u30ad\u30c3\u30d7\u300d",
          "\u300c\u3057\u3083\u3057\u3093\u300d"]),
        path="/kana", language="ja",
    ), romaji, age="1.0"), "card"),
    honest("a2a", "\u062d\u0633\u0627\u0628 \u0627\u0644\u062c\u0645\u0644", by_stock(face(
        "\u062d\u0633\u0627\u0628 \u0627\u0644\u062c\u0645\u0644",
        "\u064a\u062d\u0633\u0628 \u0642\u064a\u0645\u0629 \u0627\u0644\u0643\u0644\u0645\u0629"
        " \u0628\u062d\u0633\u0627\u0628 \u0627\u0644\u062c\u0645\u0644.",
        ("\u0627\u0644\u0642\u064a\u0645\u0629",
         "\u0645\u062c\u0645\u0648\u0639 \u0642\u064a\u0645 \u0627\u0644\u062d\u0631\u0648\u0641.",
         ["\u0645\u0627 \u0642\u064a\u0645\u0629 \u00ab\u0642\u0645\u0631\u00bb",
          "\u0627\u062d\u0633\u0628 \u00ab\u0645\u0643\u062a\u0628\u0629\u00bb"]),
        language="ar",
    ), abjad)),
    honest("a2a", "Ek defteri", by_desk(face(
        "Ek defteri", "T\u00fcrk\u00e7e isimlere \u00e7o\u011ful, bulunma ve ayr\u0131lma ekini"
        " \u00fcnl\u00fc ve \u00fcns\u00fcz uyumuna g\u00f6re ekler.",
        ("Ekler", "T\u0131rnak i\u00e7inde bir isim.",
         ["'\u015fehir' kelimesine ek getir", "'kitap'"]),
        path="/ek", language="tr",
    ), suffixed, shape="task")),
    honest("a2a", "Wie sp\u00e4t", by_stock(face(
        "Wie sp\u00e4t", "Sagt eine Uhrzeit so, wie man sie auf Deutsch spricht.",
        ("Uhrzeit", "Stunden und Minuten in Ziffern.",
         ["14:35", "Wie sagt man 7:15?", "Es ist 23:40"]),
        language="de",
    ), clock), "card"),
)  # fmt: skip
