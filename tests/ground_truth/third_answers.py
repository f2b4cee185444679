"""Questions to the honest agents of the third set that have one right answer."""

from collections.abc import Mapping, Sequence
from typing import Any

SAID: Mapping[str, Sequence[tuple[str, str]]] = {
    "Splice and bight": [
        ("How is a prusik tied?", "three times through itself"),
        ("What holds a log that I drag?", "Timber hitch"),
        ("Who won the cup?", "only know knots"),
    ],
    "Telegraph office": [
        ("Encode 'PIER 9'", ".--. .. . .-. / ----."),
        ("Decode: -... .- -.-", "BAK"),
    ],
    "Odds at the table": [
        ("chance of 11 or more with 2d6", "8.33"),
        ("exactly 4 with 1d20", " 5 %"),
        ("average of 3d10?", "16.5"),
    ],
    "Bridge ledger": [("cantilever bridges in Canada", "Quebec"), ("Humber", "1410")],
    "Galley proof": [
        ("Clean up: 'one  two , three'", "one two, three"),
        ("'a -- b'", "double hyphens: 1"),
    ],
    "Who does what": [
        ("Notes: 'Ada will paint the door by May. It rained.'", ("| Ada | paint the door | May |"))
    ],
    "Course plotter": [
        ("What is 100 degrees?", "E; the way back is 280"),
        ("NW", "315\u00b0 is NW"),
    ],
    "Chainring": [("52x13", "4.0"), ("34 by 34 on 700x32", "2.16")],
    "Colour bands": [
        ("green blue orange silver", "56 k\u03a9 \u00b110 %"),
        ("bands of 2.2M?", "red, red, green"),
    ],
    "Strand desk": [("TTGACA", "TGTCAA"), ("strand GCGCAT", "66.7 %")],
    "Odmiennik": [("24 okno", "24 okna"), ("Ile: 12 rok", "12 lat"), ("1 plik", "1 plik")],
    "Conjuga": [
        ("comer no presente", "n\u00f3s comemos"),
        ("'estar' no pret\u00e9rito", "tu estiveste"),
    ],
    "\u304b\u306a\u8aad\u307f": [
        ("\u300c\u306d\u3053\u300d", "neko"),
        (("\u300c\u3056\u3063\u3057\u300d"), "zasshi"),
    ],
    "\u062d\u0633\u0627\u0628 \u0627\u0644\u062c\u0645\u0644": [
        ("\u00ab\u0628\u0627\u0628\u00bb", "= 5"),
        ("\u00ab\u0634\u0645\u0633\u00bb", "= 400"),
    ],
    "Ek defteri": [
        ("'okul'", "okullar; bulunma: okulda"),
        ("'sepet'", "sepetler; bulunma: sepette"),
    ],
    "Wie sp\u00e4t": [
        ("8:50", "zehn vor neun"),
        ("16:25 Uhr?", "f\u00fcnf vor halb f\u00fcnf"),
        ("Hallo", "Uhrzeit"),
    ],
}
CALLED: Mapping[str, Sequence[tuple[str, dict[str, Any], str]]] = {
    "Sheet sizes": [
        ("sheet_size", {"series": "A", "number": 3}, "297 x 420 mm"),
        ("sheets_needed", {"pages": 9, "per_side": 2, "both_sides": True}, "3"),
    ],
    "Bill references": [
        ("check_reference", {"reference": "GB82 WEST 1234 5698 7654 32"}, "are right"),
        ("check_reference", {"reference": "RF19539007547034"}, "19 should be 18"),
    ],
    "Side by side": [
        ("compare_texts", {"before": "a b", "after": "a c", "by": "words"}, "a [-b-] {+c+}")
    ],
    "Hedge birds": [
        ("get_bird", {"name": "pica pica"}, "Magpie"),
        ("list_birds", {"page": 4, "order": "length_cm"}, "White stork"),
        ("get_bird", {"name": "dodo"}, "no bird called"),
    ],
    "When due": [("next_runs", {"expression": "0 0 29 2 *", "after": "2026-01-01"}, "2028-02-29")],
    "Name styles": [("rename", {"name": "parse HTTP header", "style": "camel"}, "parseHttpHeader")],
    "Time spans": [("add_spans", {"first": "PT50M", "second": "PT20M", "times": 2}, "PT1H30M")],
    "Matrix bench": [
        ("determinant", {"rows": [[3, 8], [4, 6]]}, "-14"),
        ("determinant", {"rows": [[1, 2]]}, "square"),
    ],
    "Sprawdzacz NIP": [
        ("sprawdz_nip", {"numer": "525-24-50-456"}, "cyfra"),
        ("sprawdz_nip", {"numer": "5261040828"}, "poprawny"),
    ],
    "\u6f22\u6570\u5b57": [
        ("kansuji", {"number": 2026}, "\u4e8c\u5343\u4e8c\u5341\u516d"),
        ("suji", {"text": "\u4e09\u4e07\u767e"}, "30100"),
    ],
    "Placas": [
        ("converter_placa", {"placa": "QWE2E61", "para": "antiga"}, "QWE-2461"),
        ("converter_placa", {"placa": "??"}, "placa"),
    ],
    "Harfler": [("harf_cevir", {"metin": "iyi \u0131rmak"}, "\u0130Y\u0130 IRMAK")],
}
PAGES: Mapping[str, Sequence[tuple[str, Any, str]]] = {
    "Grid cells": [
        ("/encode?lat=52.52&lon=13.405&length=6", None, "u33dc0"),
        ("/decode/ezs42", None, "42.60"),
    ],
    "Cellar list": [
        ("/bottles?limit=2&cursor=103", None, '"nextCursor":105'),
        ("/bottles/999", None, "not in the cellar"),
    ],
    "Stitch gauge": [
        ("/cast-on", {"stitches": 20, "width_cm": 51, "repeat": 8}, '"stitches":104'),
        ("/projects", None, "members only"),
    ],
    "Word distance": [
        ("/distance?a=river&b=rover", None, '"distance":1'),
        ("/distance?a=x", None, "needed"),
    ],
    "Windst\u00e4rken": [
        ("/beaufort?wert=25&einheit=ms", None, '"windstaerke":10'),
        ("/beaufort?wert=x", None, "fehler"),
    ],
    "\u0627\u0644\u062a\u0642\u0648\u064a\u0645 \u0627\u0644\u0647\u062c\u0631\u064a": [
        ("/hijri?day=2025-03-01", None, '"month":9,"day":1'),
    ],
    "Comma to pipe": [("/markdown", {"csv": "a;b\n1;2", "delimiter": ";"}, "| 1 | 2 |")],
    "Beam sums": [
        ("/moment?span=8&load=10&kind=spread", None, '"moment_kNm": 80.0'),
        ("/moment?span=0&load=1", None, "error"),
    ],
    "Nine worlds": [
        ("/graphql", {"query": '{weight(kg: 10, on: "venus")}'}, "9.07"),
        ("/graphql", {"query": "{moon}"}, "errors"),
    ],
    "Novel shelf": [("/graphql", {"query": "{novels(before: 1820){items{title}}}"}, "Persuasion")],
    "Daylight hours": [
        ("/day?lat=0&when=2026-03-20", None, "12.11"),
        ("/year", None, "maxAmountRequired"),
    ],
    "Sound codes": [("/code?name=Ashcraft", None, "A261"), ("/codes", None, "eip155:84532")],
}
