"""What the honest agents of the sixth set say when they are asked, by name."""

from typing import Any

from tests.ground_truth.sixth_a2a import TRACES
from tests.ground_truth.sixth_mcp import BILLS, TEAMS

SAID: dict[str, list[tuple[str, str]]] = {
    "Curtain call": [
        ("Track of 210 cm, drop 180 cm", "order 8.2 m"),
        ("Eyelet curtains, pole of 1.6 m, drop 2.3 m, fabric 140 cm wide", "order 5.1 m"),
        ("Curtains, please", "How wide is the track"),
        ("Track of 90 m, drop 2 m", "tracks of 20 to 900 cm"),
    ],
    "Posteingang Niederfeld": [
        ("Meine Rechnung ist höher als der Abschlag.", "Stelle: Abrechnung\nDringlichkeit: normal"),
        ("Seit heute kein Strom, bitte sofort kommen!", "Störungsdienst\nDringlichkeit: hoch"),
        ("Wir planen unseren Umzug, welcher Tarif gilt dann?", "Umzug und Verträge"),
        ("Schöne Grüße aus dem Garten", "Allgemeine Post"),
    ],
    "Sprint notes": [
        ("From 1.4.2\nfeat(map): show contour lines", "## 1.5.0\n\n### Added\n- **map**: show"),
        ("fix(api)!: drop the old token", "## Unreleased (major)\n\n### Breaking"),
        ("From 0.9.9\nfix: a\nchore: b", "## 0.9.10"),
        ("good morning", "Please paste commit subjects"),
    ],
    "Maletas sin sorpresas": [
        ("¿Puedo llevar una guitarra con Vuelamar?", "la guitarra se factura por 45 €"),
        ("¿Y la bicicleta con Cóndor Sur?", "se factura por 40 € avisando"),
        ("¿Puede volar mi perro con Nubelia?", "No conozco esa compañía"),
    ],
    "Obento": [
        ("唐揚げ3個とおにぎり2個は何kcalですか", "合計 630 kcal"),
        ("卵焼き二切れ、ミニトマト４個、焼き鮭", "合計 300 kcal"),
        ("寿司", "料理名が見つかりません"),
    ],
    "Mira": [
        ("I have a dark hallway and a cat", "cast iron plant (34 euros)"),
        ("How much is the monstera?", "39 euros"),
        ("Something under 10 euros for a bright window", "haworthia (8 euros)"),
        ("What is the tallest mountain?", "light"),
    ],
    "Chef de brigade": [
        ("Pour 4 : 200 g de farine, 3 œufs, 50 cl de lait. Pour 6", "farine\n- 4,5 œufs"),
        ("Pour 2 personnes : 150 g de riz, 1 oignon. Adaptez à 5", "- 375 g de riz"),
        ("Pour 4 : 100 g de beurre", "Et pour combien"),
    ],
    "Saa": [
        ("19:40 ni saa ngapi?", "saa moja na dakika arobaini usiku"),
        ("7:15", "saa moja na robo asubuhi"),
        ("6:45 pm", "saa moja kasorobo jioni"),
        ("habari", "Niandikie saa"),
    ],
    "Termin zwrotu": [
        ("Film wypożyczony 3 marca 2026. Do kiedy go oddać?", "do 10 marca 2026 (wtorek)"),
        ("Książka wypożyczona 2026-01-10, oddana 2026-02-20.", "11 dni, opłata 2,20 zł"),
        ("Gra z 12.05.2026", "do 26 maja 2026"),
        ("Rower", "Co zostało wypożyczone"),
    ],
    "Passphrase pantry": [
        ("Give me five words, joined with dots", "(about 81 bits)"),
        ("12 words", "Between 3 and 10"),
        ("Sing a song", "I only cook passphrases"),
    ],
    "Souk": [
        ("كيف أقول خبز بالفرنسية؟", "خبز: pain"),
        ("ما معنى السمك والعسل بالإنجليزية؟", "سمك: fish\nعسل: honey"),
        ("fromage", "جبن"),
        ("سيارة", "ليست في معجمي"),
    ],
    "Cheque ki rashi": [
        ("₹1,52,000.50", "एक लाख बावन हज़ार रुपये और पचास पैसे मात्र"),
        ("₹ १२३४५६७८", "एक करोड़ तेईस लाख पैंतालीस हज़ार छह सौ अठहत्तर रुपये"),
        ("नमस्ते", "राशि अंकों में"),
    ],
    "Traceback triage": [
        (TRACES[0], "KeyError: 'marta'\nWhere: app/views.py, line 17, in show"),
        (TRACES[1], "Where: Cart.java, line 88, in shop.Cart.total"),
        (TRACES[2], "Where: /srv/app/list.js, line 31, in render"),
        ("it broke", "I see no exception"),
    ],
    "Kargom nerede": [
        ("KG-20417 nerede?", "Ankara aktarma merkezinden"),
        ("kg 20433 ve KG-99999", "KG-99999: Bu numarayla"),
        ("merhaba", "Takip numaran"),
    ],
}  # fmt: skip

CALLED: dict[str, list[tuple[str, dict[str, Any], str]]] = {
    "Needle case": [
        ("convert_needle", {"size": "4.0", "system": "metric"}, '"US": "6"'),
        ("convert_needle", {"size": "3", "system": "UK"}, "6.5"),
        ("convert_needle", {"size": "99", "system": "US"}, "no needle of size 99"),
        ("estimate_yarn", {"garment": "hat", "weight": "dk"}, '"metres": 161'),
    ],
    "Weekday": [
        ("make_event", {"title": "Choir, altos", "start": "2026-04-02T19:30:00",
                        "repeat": "weekly"}, "SUMMARY:Choir\\, altos\r\nRRULE:FREQ=WEEKLY"),
        ("weekday_of", {"date": "2026-04-02"}, "Thursday, week 14"),
    ],
    "Crontab reader": [
        ("next_times", {"expression": "30 8 * * 1-5", "after": "2026-04-03T12:00:00"},
         "2026-04-06 08:30"),
        ("next_times", {"expression": "0 0 31 2 *", "after": "2026-04-03T12:00:00"}, "never"),
        ("check_expression", {"expression": "61 * * * *"}, "invalid: minute"),
        ("check_expression", {"expression": "*/5 0-6 1,15 * *"}, "valid"),
    ],
    "Bookkeeper": [
        ("check_invoice", {"invoice": BILLS[0]}, '"ok": true'),
        ("check_invoice", {"invoice": BILLS[1]}, "gross: 91.40 should be 81.40"),
    ],
    "Fair rota": [
        ("plan_rota", {"days": ["Mon", "Tue", "Wed"], "staff": TEAMS[0]}, '"Ines": 2'),
        ("plan_rota", {"days": ["Tue"], "staff": TEAMS[0], "per_day": 2}, "only 1 can come"),
    ],
    "Swatches": [
        ("name_colour", {"colour": "#127070"}, "teal (18, 112, 112)"),
        ("contrast_ratio", {"foreground": "#000", "background": "#fff"}, "21.0:1 (AAA)"),
        ("name_colour", {"colour": "zz"}, "neither #rrggbb"),
    ],
    "Pörssivahti": [
        ("halvin_jakso", {"hinnat": [4.1, 3.2, 2.8, 9.4], "tunnit": 2}, "01-03, keskihinta 3.00"),
        ("saunan_hinta", {"kiuas_kw": 9, "minuutit": 60, "hinta": 12}, "1,08 euroa"),
        ("halvin_jakso", {"hinnat": [4.1, 3.2], "tunnit": 5}, "Hintoja on 2"),
    ],
    "Plain words": [
        ("text_stats", {"text": "The cat sat on the mat. It was a happy cat."}, '"syllables": 12'),
        ("text_stats", {"text": "123"}, "no words"),
    ],
    "Names in a hat": [
        ("draw_names", {"names": ["Ada", "Bo", "Cy"], "couples": []}, "Ada -> "),
        ("draw_names", {"names": ["Ada", "Bo"]}, "3 to 60"),
    ],
    "Rucksack": [
        ("packing_list", {"days": 3, "climate": "cold", "activities": ["hiking"]}, "3 x socks"),
        ("packing_list", {"days": 4, "climate": "wet", "activities": []}, "rain jacket (hire: 12"),
    ],
    "Müll Wiesental": [
        ("wohin_damit", {"gegenstand": "Teebeutel"}, "Biotonne"),
        ("wohin_damit", {"gegenstand": "Klavier"}, "steht nichts in unserer Liste"),
        ("naechste_abholung", {"strasse": "Ahornweg", "ab": "2026-04-01"}, "13.04.2026"),
    ],
    "Grey marker": [
        ("redact", {"text": "ada@choir.example, +44 20 7946 0958"}, "[EMAIL], [PHONE]"),
        ("redact", {"text": "IBAN DE89 3704 0044 0532 0130 00 at 10.0.0.7", "keep": ["IP"]},
         "IBAN [IBAN] at 10.0.0.7"),
    ],
}  # fmt: skip


def rpc(method: str, params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}


CRATE = {"length_cm": 40, "width_cm": 30, "height_cm": 25, "weight_kg": 3.4, "zone": "islands"}
PAGES: dict[str, list[tuple[str, Any, str]]] = {
    "Heron Parcels": [
        ("/v2/quotes", CRATE, '"price":"25.00"'),
        ("/v2/quotes", CRATE | {"weight_kg": 12, "zone": "local"}, '"price":"10.80"'),
        ("/v2/quotes", {"length_cm": 40}, "width_cm"),
        ("/openapi.json", None, "/v2/quotes"),
    ],
    "Loan sums": [
        ("/monthly?principal=12000&rate=6&years=2", None, '"monthly":531.85'),
        ("/monthly?principal=1200&rate=0&years=1", None, '"monthly":100.0'),
        ("/schedule?principal=1200&rate=6&years=1&first=2026-11-01", None, '"due":"2027-10"'),
        ("/openapi.json", None, "agentRegistry"),
        ("/monthly?principal=-1&rate=6&years=2", None, "must be positive"),
    ],
    "Orari dei musei": [
        ("/api/musei/vetro/orario?data=2026-04-14", None, '"aperto":true'),
        ("/api/musei/vetro/orario?data=2026-05-01", None, '"aperto":false'),
        ("/api/musei/seta/orario?data=2026-04-11", None, "14:00-19:00"),
        ("/api/musei/oro/orario?data=2026-05-01", None, "museo sconosciuto"),
    ],
    "De Spaak": [
        ("/reparaties/RS-1043", None, '"bedrag":"64.50"'),
        ("/reparaties/RS-1051", None, "in behandeling"),
        ("/reparaties/RS-9999", None, "kennen wij niet"),
        ("/tarief?werk=rem", None, "22.00"),
    ],
    "Liked, disliked": [
        ("/v1/highlights", {"review": "The fan is quiet but the cable is flimsy."}, "mixed"),
        ("/v1/highlights", {"review": "Sturdy chair and the seat is not hard."}, '"cons":[]'),
        ("/v1/highlights", {"review": "Rude staff, bland soup, late."}, "negative"),
        ("/v1/highlights", {"text": "x"}, "review"),
    ],
    "Slugs": [("/", None, "creme-brulee-chez-oystein")],
    "Barcode desk": [
        ("/rpc", rpc("gtin.check", {"code": "4006381333931"}), '"valid":true'),
        ("/rpc", rpc("gtin.check", ["4006381333930"]), '"valid":false'),
        ("/rpc", rpc("gtin.complete", ["9638507"]), "96385074"),
        ("/rpc", rpc("gtin.check", {"code": "12"}), "-32602"),
        ("/rpc", rpc("gtin.sell", {}), "-32601"),
    ],
    "Choir library": [
        ("/graphql", {"query": '{ scores(voices: "SSA", longest: 5) { title } }'}, "Lullaby"),
        ("/graphql", {"query": '{ scores(composer: "brandt") { minutes } voices }'}, "unison"),
        ("/graphql", {"query": "{ price }"}, "errors"),
    ],
    "Jours ouvrés": [
        ("/", None, "/feries/2026"),
        ("/feries/2026", None, '"2026-05-14":"Ascension"'),
        ("/ouvres?du=2026-05-01&au=2026-05-31", None, '"jours_ouvres":17'),
        ("/ouvres", None, "deux dates"),
    ],
    "Padaria Aurora": [
        ("/v1/chat/completions",
         {"messages": [{"role": "user", "content": "Quanto custa a broa?"}]}, "broa, a 3.20 €"),
        ("/v1/chat/completions",
         {"messages": [{"role": "user", "content": "A que horas abrem?"}]}, "6h30"),
        ("/v1/chat/completions", {}, "falta uma mensagem"),
    ],
    "Moon in a terminal": [
        ("/2026-03-03", None, "full moon, 100 % lit"),
        ("/2026-03-25", None, "first quarter"),
        ("/soon", None, "dates look like"),
    ],
    "Floor plan for tilers": [("/sample?tile=20", None, '"uncut":126')],
    "RF references": [
        ("/check?reference=RF18%205390%200754%207034", None, '"valid":true'),
        ("/check?reference=RF19%205390%200754%207034", None, '"valid":false'),
    ],
    "Seven across": [("/", None, "/fill?pattern="), ("/count?pattern=c..ud", None, '"count":1')],
}  # fmt: skip
