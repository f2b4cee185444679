"""What honest agents of the fifth set have to answer, beyond their own examples."""

from typing import Any

SAID: dict[str, list[tuple[str, str]]] = {
    "Knight errant": [
        ("Knight from a1 to h8", "6 moves: a1-"),
        ("How do I get from e4 to e5?", "3 moves"),
        ("a knight on h1?", "f2 g3"),
    ],
    "Slice for the money": [
        ("Two 26 cm for 18 or one 36 cm for 17.50?", "Offer 1"),
        ("12 inch at $10, 16 inch at $15", "Offer 2 is the best: 1.156"),
        ("40 cm at 11, 20 cm at 4", "Offer 1"),
    ],
    "Post and panel": [
        ("I want a fence of 23 m", "13 panels of 1.8 m and 14 posts; saw 0.4 m"),
        ("14.4 m with panels of 2 m", "8 panels of 2 m and 9 posts; saw 1.6 m"),
    ],
    "Which shelf": [
        ("A short history of the Roman Empire", "900"),
        ("Classify: Linear algebra done right", "500"),
        ("Which class has 'Sonnets and other poems'?", "800"),
        ("Baking bread at home", "600"),
    ],
    "Pea garden": [
        ("Aa x Aa", "AA 1/4 (25 %), Aa 2/4 (50 %)"),
        ("Cross RrYy with RrYy", "RY 9/16"),
        ("Bb x BB", "B 4/4"),
    ],
    "Ribosome": [
        ("Translate ATGGCCTGGTAA", "MAW (stop)"),
        ("Reverse complement of ATGCCG", "CGGCAT"),
        ("GC content of ATTGCC", "50.0 % GC"),
    ],
    "First flush": [
        ("How do I make sencha?", "70 °C"),
        ("Oolong in Fahrenheit, please", "190 °F"),
    ],
    "Bone yard": [
        ("What is the average of 2d8-1?", "8 on average"),
        ("range of 3d6", "from 3 to 18"),
        ("5d2+10", " + 10 = "),
    ],
    "Blutsbrüder": [
        ("Kann A+ an AB- spenden?", "Nein"),
        ("Darf AB+ von 0- Blut bekommen?", "Ja: 0- kann AB+ spenden"),
        ("Ich habe B negativ", "spendet an B-, B+, AB-, AB+ und empfängt von 0-, B-"),
    ],
    "Plus d'un": [
        ("Quel est le pluriel de \u00ab cheval \u00bb ?", "chevaux"),
        ("bijou, festival, vitrail", "festival → festivals\nvitrail → vitraux"),
        ("le pluriel de nez", "nez → nez"),
    ],
    "띠 알리미": [("1990년은 무슨 띠예요?", "경오년, 말띠"),
                 ("2012년생", "임진년, 용띠")],
    "Who does what by when": [
        ("Ada to send the plans by Friday. Ben will book the room.", '"due": "Friday"'),
        ("Cleo agreed to paint the door before 3 May; it rained.", '"paint the door"'),
    ],
    "Works cited": [
        ('Ursula K. Le Guin, "The Dispossessed", Harper, 1974, APA',
         "Le Guin, U. K. (1974). The Dispossessed. Harper."),
        ('MLA: Italo Calvino, "Invisible Cities", Harcourt, 1974',
         "Calvino, Italo. Invisible Cities. Harcourt, 1974."),
    ],
    "Igpay": [
        ("Translate: the quick brown fox", "ethay ickquay ownbray oxfay"),
        ("'Good egg'", "Oodgay eggway"),
    ],
}  # fmt: skip
"""Messages to agents."""

Calls = list[tuple[str, dict[str, Any], str]]
CALLED: dict[str, Calls] = {
    "League secretary": [("round_robin", {"teams": ["A", "B", "C", "D"]}, "Round 3: A - B, C - D")],
    "Version marshal": [
        ("satisfies", {"version": "1.4.2", "range": "^1.2.0"}, "true"),
        ("satisfies", {"version": "0.3.0", "range": "^0.2.9"}, "false"),
        ("sort_versions", {"versions": ["1.0.0", "1.0.0-rc.1"]}, "1.0.0-rc.1\n1.0.0"),
    ],
    "Two drafts": [
        ("diff", {"before": "a\nb", "after": "a\nc"}, "-b\n+c"),
        ("similarity", {"before": "red oak elm", "after": "oak elm ash"}, "0.5"),
    ],
    "Toml table": [("read_toml", {"text": "[a]\nb = 3\n[c]\nd = 'x'"}, '"b": 3')],
    "Wayfarer": [
        ("cheapest_route", {"edges": ["A-B: 4", "B-C: 2", "A-C: 9"], "start": "A", "goal": "C"},
         "A > B > C (6)"),
    ],
    "Sedici caratteri": [
        ("calcola_codice_fiscale", {"cognome": "Rossi", "nome": "Mario", "nascita": "1980-01-01",
                                    "sesso": "M", "comune": "Roma"}, "RSSMRA80A01H501U"),
    ],
    "Rungs": [("word_ladder", {"start": "cold", "goal": "warm"}, "4 rungs")],
    "Rating room": [("rate_game", {"rating": 1450, "opponent": 1550, "result": "win"}, "1462.8")],
    "Five stars, five fields": [
        ("explain_cron", {"expression": "*/15 9-17 * * mon-fri", "after": "2026-03-06T17:40"},
         '"2026-03-06 17:45", "2026-03-09 09:00"'),
        ("explain_cron", {"expression": "61 * * * *"}, "lies outside"),
    ],
    "Path finder": [
        ("match_paths", {"pattern": "src/**/*.py", "paths": ["src/a.py", "src/b/c.py", "d.py"]},
         "src/a.py\nsrc/b/c.py"),
    ],
    "季語帳": [("kigo_season", {"kigo": "黄"}, "nothing found"),
            ("kigo_season", {"kigo": "蛍"}, "夏"),
            ("list_kigo", {"season": "冬"}, "こたつ")],
    "Side side side": [("solve_triangle", {"a": 3, "b": 4, "c": 5}, '"area": 6.0'),
                       ("solve_triangle", {"a": 1, "b": 1, "c": 3}, "no triangle")],
}  # fmt: skip
"""Calls of tools."""

OWLS = {"model": "venery-1", "messages": [{"role": "user", "content": "a group of crows?"}]}
SHIFTS = [{"name": "Ada", "start": "2026-05-04T08:00", "end": "2026-05-04T16:00"},
          {"name": "Ben", "start": "2026-05-04T15:30", "end": "2026-05-04T20:00"}]  # fmt: skip
POLY = {"jsonrpc": "2.0", "id": 1, "method": "poly.value", "params": [[2, 0, -3], 4]}
PAGES: dict[str, list[tuple[str, Any, str]]] = {
    "Small change": [("/v1/change?amount=3.87", None, '{"count":1,"value":"2.00"}')],
    "Clashing shifts": [("/clashes", {"shifts": SHIFTS}, '"minutes":30')],
    "Louder together": [("/sum?db=60&db=60", None, "63.0"), ("/sum?db=90&db=80", None, "90.4")],
    "Pfandbon": [("/bon", {"einweg": 6, "mehrweg_bier": 20, "kasten": 1}, "4,60")],
    "廿四节气": [("/jieqi?date=2026-06-21", None, "夏至"),
                 ("/jieqi?date=2026-02-03", None, "大寒")],
    "Truth tables": [("/table", {"formula": "(p -> q) & p"}, '"true_for":["11"]'),
                     ("/table", {"formula": "a or not a"}, "tautology")],
    "Parliament of owls": [("/v1/chat/completions", OWLS, "a murder of crows")],
    "Amp hours": [("/api/runtime?capacity_mah=2200&load_ma=150", None, '"14:40"')],
    "Thin lens": [("/image?f=50&distance=200", None, "66.67"),
                  ("/image?f=50&distance=25", None, "virtual")],
    "Convergents": [("/cf/355/113", None, '"22/7"'), ("/cf/0.75", None, '"3/4"')],
    "Boxed": [("/", None, "curl")],
    "Horner": [("/rpc", POLY, "29.0"), ("/openrpc.json", None, "poly.derivative")],
    "Rhyme for a dime": [("/rhymes?word=moon", None, "spoon"),
                         ("/rhymes?word=tree", None, "payTo")],
    "Square of letters": [("/vigenere?text=attack&key=lemon", None, "lxfopv"),
                          ("/vigenere?text=lxfopv&key=lemon&mode=decrypt", None, "attack")],
    "Long throw": [("/flight?speed=20&angle=45", None, "40.77"),
                   ("/flight?speed=20&angle=30", None, "base-sepolia")],
}  # fmt: skip
"""Pages of services: address, body if it is sent, and what the answer has to hold."""
