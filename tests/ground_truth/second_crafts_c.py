"""Trades of the second set: work on texts that are given, and small encyclopaedias in prose."""

import colorsys
import re
from collections import Counter

from tests.ground_truth.second_crafts_a import Craft
from tests.ground_truth.second_wit import LONGEST, divide, gist, keywords, sentences


def material(text: str) -> str:
    """What is to be worked on."""
    return divide(text)[1] or text[:LONGEST]


def _syllables(word: str) -> int:
    return max(1, len(re.findall(r"[aeiouy]+", word.lower())) - word.lower().endswith("e"))


def measured(text: str) -> str | None:
    """Figures about a text."""
    given = material(text)
    words = re.findall(r"[^\W\d_]+(?:'[a-z]+)?", given)
    if len(words) < 3:
        return None
    rows = len(sentences(given))
    syllables = sum(map(_syllables, words))
    ease = 206.835 - 1.015 * len(words) / rows - 84.6 * syllables / len(words)
    often = ", ".join(w for w, _ in Counter(w.lower() for w in words if len(w) > 3).most_common(3))
    return (
        f"{len(words)} words, {rows} sentences, {len(given)} characters, {syllables} syllables;"
        f" reading ease {ease:.0f}; most used: {often or 'none'}."
    )


STATISTICS = Craft(
    "Text statistics",
    "Counts words, sentences and syllables, and estimates how easily a text is read.",
    ("Analyse: 'The tide was out. Boats leaned on the mud and gulls argued over crabs.'",
     'Readability of "Notwithstanding the foregoing, the lessee shall indemnify the lessor."'),
    measured,
)  # fmt: skip

_MARKS = (
    (r"verify your (?:account|identity)|confirm your (?:details|password)", "asks for secrets"),
    (r"within \d+ hours|immediately|urgent|last chance", "presses for time"),
    (r"gift card|wire|bitcoin|wallet", "wants money that cannot be taken back"),
    (r"https?://\d|https?://\S*(?:-login|secure-|\.zip|\.top)", "has a link that looks wrong"),
    (r"(?:assistant|model|bot)\b.{0,40}\b(?:ignore|forward|reveal|send)", "speaks to a machine"),
)


def scanned(text: str) -> str | None:
    """What looks like fraud in a message, quoted line by line."""
    given = material(text)
    if len(given) < 12:
        return None
    rows = sentences(given)
    hits = [(s, why) for s in rows for form, why in _MARKS if re.search(form, s.lower())]
    if not hits:
        return f"Nothing dubious in {len(rows)} sentences, from {given[:30]!r} on."
    quoted = "; ".join(f"\u201c{s[:160]}\u201d {why}" for s, why in hits[:6])
    return f"Risk {min(len(hits), 5)} of 5: {quoted}."


SCANNER = Craft(
    "Message scanner",
    "Looks through an e-mail or chat message for marks of fraud and quotes the lines it found.",
    ("Scan: 'Dear client, verify your account within 24 hours at http://secure-bank.top now.'",
     "Is this safe? 'Lunch on Friday at the usual place? Bring the plans.'"),
    scanned,
)  # fmt: skip


def shortened(text: str) -> str | None:
    """The sentences that carry a text."""
    given = material(text)
    rows = sentences(given)
    if len(given) < 40:
        return None
    return f"{gist(given, 1 + len(rows) // 4)} ({len(rows)} sentences, {len(given.split())} words)"


DIGEST = Craft(
    "Digest",
    "Shortens reports, letters and articles to the sentences that carry them.",
    ("Shorten: 'The council met on Monday. It approved a new bridge over the Tarn.'",),
    shortened,
)  # fmt: skip

_FRENCH = """the le,a un,house maison,cat chat,dog chien,bread pain,water eau,boat bateau,sea mer,
red rouge,blue bleu,green vert,white blanc,black noir,big grand,small petit,good bon,
bad mauvais,and et,or ou,is est,are sont,on sur,in dans,with avec,without sans,
under sous,for pour,of de,to à,from de,at à,i je,you vous,he il,she elle,we nous,they ils,
my mon,your votre,his son,eats mange,drinks boit,sees voit,has a,goes va,comes vient,
sleeps dort,reads lit,writes écrit,buys achète,sells vend,morning matin,evening soir,
day jour,night nuit,today aujourd'hui,tomorrow demain,yesterday hier,man homme,
woman femme,child enfant,friend ami,book livre,letter lettre,table table,
chair chaise,door porte,window fenêtre,street rue,city ville,train train,
station gare,ticket billet,price prix,money argent,shop magasin,market marché,
apple pomme,cheese fromage,wine vin,milk lait,fish poisson,meat viande,where où,
when quand,why pourquoi,who qui,what quoi,not pas,yes oui,no non,
please s'il vous plaît,thanks merci,hello bonjour,one un,two deux,three trois,
four quatre,five cinq,ten dix,year année,month mois,week semaine,new nouveau,
old vieux,open ouvert,closed fermé,warm chaud,cold froid"""
FRENCH = dict(row.split(" ", 1) for row in _FRENCH.replace("\n", "").split(","))


def translated(text: str) -> str | None:
    """Word for word; what is not in the list stays as it is."""
    given = divide(text)[1] or re.sub(r"(?i)^.*?translate|(?:in)?to french|into|[?]", "", text)
    made = re.sub(r"[A-Za-z']+", lambda m: FRENCH.get(m[0].lower(), m[0]), given.strip())
    known = sum(w in FRENCH for w in re.findall(r"[a-z']+", given.lower()))
    return made if known else None


TRANSLATOR = Craft(
    "Word-for-word French",
    "A literal gloss of English sentences in French for learners; unknown words stay as they are.",
    ("Translate: 'The cat sleeps on the table'", "Gloss 'My friend buys bread at the market'"),
    translated,
)


def redacted(text: str) -> str | None:
    """A text without what identifies people."""
    given = material(text)
    forms = (("e-mail", r"[\w.+-]+@[\w-]+\.[\w.]*\w"), ("date", r"\d{4}-\d\d-\d\d"),
             ("phone", r"\+?\d[\d ()-]{7,}\d"), ("name", r"\b(?:Mr|Ms|Mrs|Dr)\.? [A-Z]\w+"),
             ("account", r"\b[A-Z]{2}\d{2}[A-Z0-9 ]{10,30}\b"))  # fmt: skip
    count = 0
    for what, form in forms:
        given, hits = re.subn(form, f"[{what}]", given)
        count += hits
    return f"{given}\n\n{count} replaced." if len(given) > 8 else None


REDACTOR = Craft(
    "Redactor",
    "Replaces e-mails, phone numbers, dates, titles with names and account numbers.",
    ("Redact: 'Dr. Amsel (amsel@clinic.test, +44 20 7946 0018) saw Ms Reyes on 2026-02-11.'",
     'Anonymise "Send the forms to Mr Okoro at records@ward.test by 2026-07-01."'),
    redacted,
)  # fmt: skip


def colour(text: str) -> str | None:
    """One colour in other notations, or the contrast of two."""
    found = re.findall(r"#([\da-fA-F]{6})\b", text)
    if not found:
        return None
    triples = [tuple(int(h[n : n + 2], 16) for n in (0, 2, 4)) for h in found[:2]]
    if len(triples) == 2:
        light = sorted((_luminance(t) for t in triples), reverse=True)
        ratio = (light[0] + 0.05) / (light[1] + 0.05)
        return f"#{found[0]} on #{found[1]} has a contrast of {ratio:.2f}:1."
    red, green, blue = triples[0]
    hue, lit, full = colorsys.rgb_to_hls(red / 255, green / 255, blue / 255)
    return (
        f"#{found[0]} is rgb({red}, {green}, {blue}), hsl({hue * 360:.0f}, {full:.0%}, {lit:.0%})."
    )


def _luminance(rgb: tuple[int, ...]) -> float:
    linear = [c / 3294.6 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in rgb]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


COLOURS = Craft(
    "Colour converter",
    "Converts hex colours to RGB and HSL, and gives the contrast of a pair.",
    ("What is #2f6f8f in HSL?", "Contrast of #1b1b1b on #fafae0"),
    colour,
)


def _prose(table: str) -> dict[str, str]:
    return {r.split(": ", 1)[0]: r.split(": ", 1)[1] for r in table.strip().split("\n")}


SAILING = _prose("""
halyard: A halyard is the rope that hoists a sail, from \u201chaul yard\u201d.
sheet: A sheet is the rope that sets how far a sail swings out; never the sail itself.
luff: The luff is the front edge of a sail; to luff up is to steer towards the wind.
leech: The leech is the back edge of a sail, where the battens sit.
jibe: A jibe turns the stern through the wind, so the boom crosses with force.
tack: A tack turns the bow through the wind; it is also the front lower corner of a sail.
boom: The boom is the spar along the foot of the mainsail.
cleat: A cleat is a fitting on which a rope is made fast.
keel: The keel is the fin below the hull that keeps a boat upright and off the lee shore.
lee: The lee is the side away from the wind, where the water is calmer.
bilge: The bilge is the lowest part inside the hull, where water collects.
fender: A fender hangs over the side and keeps the hull off the quay.
spinnaker: A spinnaker is a light, round sail for courses with the wind from behind.
reef: To reef is to make a sail smaller when the wind gets up.
painter: The painter is the rope at the bow of a dinghy.
windlass: A windlass is the winch that raises the anchor.
thwart: A thwart is a seat across an open boat.
scupper: A scupper is a hole in the side that lets water run off the deck.
""")
GARDEN = _prose("""
tomato: Sow tomatoes indoors in March, plant them out after the last frost and take out side shoots.
carrot: Sow carrots thinly from April to June in loose soil and cover them with fleece.
garlic: Plant garlic cloves in October, pointed end up, fifteen centimetres apart.
rose: Prune roses in March above a bud that looks outwards, and feed them in June.
lawn: Mow a lawn weekly in May, never by more than a third, and leave it longer in drought.
aphid: Aphids give way to a jet of water, to ladybirds, or to soft soap in the evening.
slug: Slugs come at night: water in the morning, lay boards, and collect them from below.
compost: Compost wants layers of green and brown, some air, and the dampness of a wrung sponge.
apple: Prune apple trees in winter, taking out what crosses, and thin the fruit in June.
basil: Basil wants warmth, a sunny sill, and water from below; pinch out the tops.
potato: Chit potatoes in March, plant them in April, earth them up twice, and lift by August.
bean: Runner beans go in after mid-May, two to a pole, and want plenty of water when in flower.
hedge: Cut hedges in late June, after birds have left their nests, and again in September.
lavender: Cut lavender after flowering, but never into old wood.
mint: Keep mint in a pot: its roots wander.
strawberry: Plant strawberries in August; give them straw in May, and cut the runners.
""")


def encyclopaedia(table: dict[str, str], text: str) -> str | None:
    """Everything the table has on the words of a question."""
    words = {w.rstrip("s") for w in keywords(text)} | {w.removesuffix("es") for w in keywords(text)}
    return (
        " ".join(said for key, said in table.items() if key in words or key + "e" in words) or None
    )


GLOSSARY = Craft(
    "Sailing glossary",
    "Explains words that sailors use, for those who are new on board.",
    ("What is a halyard?", "Explain jibe and tack", "What does scupper mean?"),
    lambda text: encyclopaedia(SAILING, text),
)
GARDENER = Craft(
    "Garden advice",
    "Advice on vegetables, fruit, hedges and pests in a cool climate.",
    ("When should I sow tomatoes?", "What helps against slugs?", "How do I prune an apple tree?"),
    lambda text: encyclopaedia(GARDEN, text),
)
