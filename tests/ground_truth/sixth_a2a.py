"""The sixth set's honest agents for messages."""

# ruff: noqa: RUF001 - Turkish has a dotless letter

from tests.ground_truth.a2a_parts import CARD, Face, hand_made_a2a
from tests.ground_truth.fifth_base import on_card, on_tasks, one_dot_oh
from tests.ground_truth.fourth_base import limited
from tests.ground_truth.site import App, Build, Built, Site
from tests.ground_truth.sixth_base import Leaf, Manner, Skill, honest, on_desk
from tests.ground_truth.sixth_tongues import bento, brigade, maletas, posteingang, saa, zwrot
from tests.ground_truth.sixth_trades import curtains, mira, pantry, release_notes, triage
from tests.ground_truth.sixth_words import kargo, rupees, souk

CURTAINS = Leaf(
    "Curtain call",
    "Says how much fabric a pair of curtains takes, from the width of the track and the drop. "
    "Fabric is 137 cm wide and the heading pencil pleat unless you say otherwise. If a measure is "
    "missing I ask for it.",
    [Skill("fabric", "Fabric for curtains", "Widths, cutting length and metres to order.",
           ["sewing", "measuring"],
           ["Track of 210 cm, drop 180 cm",
            "Eyelet curtains, pole of 1.6 m, drop 2.3 m, fabric 140 cm wide"])],
    "2.1.0", ("text/plain", "application/json"),
)  # fmt: skip
POST = Leaf(
    "Posteingang Stadtwerke Niederfeld",
    "Liest Zuschriften von Kundinnen und Kunden und sagt, welche Stelle sie bearbeitet.",
    [Skill("zuordnen", "Zuschrift zuordnen", "Stelle, Dringlichkeit und Stichwörter eines Briefs.",
           ["Post", "Kundendienst"],
           ["Guten Tag, meine Rechnung ist viel höher als der Abschlag. Bitte prüfen."])],
    "1.4",
)  # fmt: skip
NOTES = Face(
    "Sprint notes",
    "Writes release notes from commit subjects in the Conventional Commits style. Put the current "
    "version in the first line and you get the next one.",
    [("Release notes", "Markdown with headings, breaking changes first.",
      ["From 1.4.2\nfeat(map): show contour lines\nfix: keep zoom after reload",
       "fix(api)!: drop the old token format"])],
    path="/notes",
)  # fmt: skip
MALETAS = Face(
    "Maletas sin sorpresas",
    "Normas de equipaje especial de cuatro compañías: guitarras, bicicletas, tablas, carritos, "
    "mochilas y perros.",
    [("Consulta", "Qué cobra cada compañía por un bulto.",
      ["¿Puedo llevar una guitarra con Vuelamar?"])],
    language="es",
)  # fmt: skip
BENTO = Leaf(
    "お弁当カロリー帳",
    "お弁当のおかずと数を書くと、合計の熱量を計算します。個数を省くと一つとして数えます。",
    [Skill("kcal", "熱量の計算", "おかずごとの熱量と合計。", ["料理", "栄養"],
           ["唐揚げ3個とおにぎり2個は何kcalですか", "卵焼き二切れ、ミニトマト4個、焼き鮭"])],
    "0.9.0", ("text/plain", "application/json"),
)  # fmt: skip
MIRA = Leaf(
    "Mira from the plant shop",
    "Mira knows every plant on our shelves. Tell her of your windows, pets and budget.",
    [Skill("chat", "Plant advice", "Free talk about choosing and keeping house plants.",
           ["plants", "shopping", "chat"])],
    "3.0.2",
)  # fmt: skip
BRIGADE = Face(
    "Chef de brigade",
    "Adapte les quantités d'une recette au nombre de convives. S'il manque le nombre, la question "
    "est posée.",
    [("Adapter", "Recalcule chaque ingrédient.",
      ["Pour 4 : 200 g de farine, 3 œufs, 50 cl de lait. Pour 6",
       "Pour 2 personnes : 150 g de riz, 1 oignon. Adaptez à 5"])],
    language="fr", path="/a2a",
)  # fmt: skip
SAA = Face(
    "Saa ya Kiswahili",
    "Husema saa kwa Kiswahili: 7:15 asubuhi ni saa moja na robo.",
    [("Saa", "Saa ya kawaida hadi saa ya Kiswahili.", ["19:40 ni saa ngapi?"])],
    language="sw",
)
ZWROT = Leaf(
    "Termin zwrotu",
    "Biblioteka w Lipowie: do kiedy oddać wypożyczoną rzecz i ile kosztuje spóźnienie. Książki na "
    "30 dni, gry na 14, płyty na 10, filmy na 7, czasopisma na 3; w niedzielę nieczynne. "
    "O brakujące dane dopytuję.",
    [Skill("termin", "Termin i opłata", "Data zwrotu, a po terminie także opłata.",
           ["biblioteka", "terminy"],
           ["Film wypożyczony 3 marca 2026. Do kiedy go oddać?",
            "Książka wypożyczona 2026-01-10, oddana 2026-02-20. Ile zapłacę?"])],
    "1.1.0",
)  # fmt: skip
PANTRY = Leaf(
    "Passphrase pantry",
    "Cooks passphrases of made-up words one can pronounce.",
    [Skill("cook", "Passphrase", "A fresh passphrase of three to ten words.", ["security"],
           ["Give me five words, joined with dots"])],
)  # fmt: skip
SOUK = Face(
    "معجم السوق",
    "معجم صغير لكلمات السوق: من العربية إلى الفرنسية أو الإنجليزية، وبالعكس.",
    [("ترجمة", "ترجمة كلمة أو أكثر من كلمات السوق.",
      ["كيف أقول خبز بالفرنسية؟", "ما معنى السمك والعسل بالإنجليزية؟", "fromage"])],
    language="ar", path="/souk",
)  # fmt: skip
RUPEES = Face(
    "चेक की राशि",
    "राशि को हिंदी शब्दों में लिखता है, लाख और करोड़ के साथ।",
    [("शब्दों में", "अंकों की राशि शब्दों में।", ["₹1,52,000.50"])],
    language="hi", path="/jobs",
)  # fmt: skip
TRACES = (
    ("  File \"app/views.py\", line 17, in show\n    return users[name]\nKeyError: 'marta'"),
    (
        'Exception in thread "main" java.lang.NullPointerException: order is null\n'
        "\tat shop.Cart.total(Cart.java:88)\n\tat shop.Main.main(Main.java:12)"
    ),
    "ReferenceError: price is not defined\n    at render (/srv/app/list.js:31:9)",
)
TRIAGE = Leaf(
    "Traceback triage",
    "Paste a traceback of Python, Java or Node.js. You get the exception, the place and the likely "
    "cause in three lines. Anything else fails, and says so.",
    [Skill("triage", "Triage", "Exception, place and cause.", ["debugging", "logs"],
           [TRACES[0]])],
    "4.2.0", ("text/plain", "application/json"),
)  # fmt: skip
KARGO = Face(
    "Kargom nerede",
    "Gönderinizin nerede olduğunu söyler.",
    [("Takip", "Takip numarasıyla gönderi durumu.", ["KG-20417 nerede?"])],
    language="tr",
)


def by_hand(face: Face, reply: object, calls: int = 0) -> Build:
    """On no library; behind a limit where one is given."""

    def build(site: Site) -> Built:
        app: App = hand_made_a2a(site, face, reply)  # type: ignore[arg-type]
        if calls:
            app = limited(app, calls, 10.0, (CARD,))
        return Built([("A2A", site.url + CARD)], app)

    return build


AGENTS = (
    honest("a2a", "Curtain call", on_desk(CURTAINS, curtains, Manner(path="/a2a", old_too=True)),
           "Fabric for curtains from track and drop.", read=True,
           inputs={"messages": ["Track of 210 cm, drop 180 cm", "Track of 140 cm, drop 220 cm",
                                "Eyelet curtains for a pole of 1.6 m, drop 2.3 m"]}),
    honest("a2a", "Posteingang Niederfeld", on_desk(POST, posteingang, Manner()),
           "Ordnet Zuschriften an die Stadtwerke der richtigen Stelle zu."),
    honest("a2a", "Sprint notes", on_tasks(NOTES, release_notes),
           "Release notes from conventional commits.", read=True,
           inputs={"messages": ["From 2.0.9\nfix(cart): round totals\ndocs: add a map of the code",
                                "From 1.4.2\nfeat(map): show contour lines\nfix: keep zoom",
                                "feat: import GPX\nperf(tiles): cache by zoom"]}),
    honest("a2a", "Maletas sin sorpresas", on_card(one_dot_oh(MALETAS, maletas)),
           "Equipaje especial de cuatro compañías aéreas."),
    honest("a2a", "Obento", on_desk(BENTO, bento, Manner(path="/rpc", streaming=True)),
           "お弁当の熱量を計算します。", read=True,
           inputs={"messages": ["唐揚げ3個とおにぎり2個", "春巻き2本とりんご3切れ",
                                "コロッケ1個と梅干し2個"]}),
    honest("a2a", "Mira", on_desk(MIRA, mira, Manner(path="/chat", as_message=True,
                                                     slow=(1.0, 2.0))),
           "A plant shop's assistant."),
    honest("a2a", "Chef de brigade", on_tasks(BRIGADE, brigade, takes_s=0.3),
           "Recettes pour plus ou moins de convives.", read=True,
           inputs={"messages": ["Pour 4 : 200 g de farine, 3 œufs, 50 cl de lait. Pour 6",
                                "Pour 2 : 150 g de riz, 1 oignon. Pour 5"]}),
    honest("a2a", "Saa", on_card(one_dot_oh(SAA, saa)), "Saa kwa Kiswahili.", proof="card"),
    honest("a2a", "Termin zwrotu", on_desk(ZWROT, zwrot, Manner("HTTP+JSON")),
           "Terminy zwrotów w bibliotece.", read=True,
           inputs={"messages": ["Film wypożyczony 3 marca 2026. Do kiedy go oddać?",
                                "Gra wypożyczona 12 maja 2026. Do kiedy ją oddać?"]}),
    honest("a2a", "Passphrase pantry", on_desk(PANTRY, pantry, Manner(as_message=True)),
           "Passphrases one can pronounce.", proof="card"),
    honest("a2a", "Souk", by_hand(SOUK, souk), "معجم كلمات السوق.", read=True,
           inputs={"messages": ["كيف أقول خبز بالفرنسية؟", "كيف أقول سمك بالفرنسية؟",
                                "كيف أقول عسل بالإنجليزية؟"]}),
    honest("a2a", "Cheque ki rashi", on_tasks(RUPEES, rupees), "राशि हिंदी शब्दों में।"),
    honest("a2a", "Traceback triage",
           on_desk(TRIAGE, triage, Manner(path="/", streaming=True, in_pieces=True,
                                          label="triage")),
           "Reads tracebacks and says where to look.", read=True, inputs={"messages": TRACES}),
    honest("a2a", "Kargom nerede", by_hand(KARGO, kargo, 30), "Gönderi takibi."),
)  # fmt: skip
