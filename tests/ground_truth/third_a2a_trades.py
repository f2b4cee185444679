"""Trades of the third set's honest A2A agents, in English."""

import json
import random
import re
import string
from collections import Counter

from tests.ground_truth.a2a_parts import Heard
from tests.ground_truth.third_base import lean, quoted

KNOT_TABLE = """
bowline | a loop with no slip in it | make a small eye, pass the end up through it, round the \
standing part and back down | it can shake loose in stiff rope
sheet bend | joining two ropes of different thickness | fold the thick rope, pass the thin one \
through, round both legs and under itself | check it after every slack
reef knot | tying a parcel or a bandage | right over left, then left over right | never use it \
to join ropes that carry a load
clove hitch | tying a rope to a post | take two turns round the post, each under itself | it \
slips on a turning post
figure eight | a stopper at the end of a rope | make a loop, round the standing part, down \
through the loop | it jams after a heavy load
rolling hitch | gripping another rope along its length | two turns on the side of the pull, one \
on the other | it slides on slippery cord
prusik | climbing a fixed rope | wrap a cord loop three times through itself | the cord must be \
thinner than the rope
trucker's hitch | tightening a load on a roof rack | make a slip loop, pass the end round the \
anchor, up through the loop and pull | it wears the rope
fisherman's knot | joining two thin lines | tie an overhand knot of each end round the other \
line and pull | it is hard to untie when wet
timber hitch | dragging a log | round the log, round the standing part, then twist the end back \
on itself three times | it falls off when the pull stops
anchor bend | tying a rope to an anchor ring | two turns through the ring, then a half hitch \
through both | seize the end for long stays
slip knot | a loop that tightens | make a loop and pull a bight of the working end through it | \
it opens if pulled at the wrong end
"""
KNOTS = {
    row.split("|")[0].strip(): [c.strip() for c in row.split("|")[1:]]
    for row in KNOT_TABLE.strip().splitlines()
}
SIGNS = (
    ".-", "-...", "-.-.", "-..", ".", "..-.", "--.", "....", "..", ".---", "-.-", ".-..", "--",
    "-.", "---", ".--.", "--.-", ".-.", "...", "-", "..-", "...-", ".--", "-..-", "-.--",
    "--..", "-----", ".----", "..---", "...--", "....-", ".....", "-....", "--...", "---..",
    "----.", ".-.-.-", "--..--", "..--..", "-..-.", "-....-",
)  # fmt: skip
MORSE = dict(zip(string.ascii_uppercase + string.digits + ".,?/-", SIGNS, strict=True))
LETTERS = {sign: letter for letter, sign in MORSE.items()}
POINTS = (
    "N",
    "NNE",
    "NE",
    "ENE",
    "E",
    "ESE",
    "SE",
    "SSE",
    "S",
    "SSW",
    "SW",
    "WSW",
    "W",
    "WNW",
    "NW",
    "NNW",
)
BANDS = ["black", "brown", "red", "orange", "yellow", "green", "blue", "violet", "grey", "white"]
TOLERANCE = {"brown": "1", "red": "2", "green": "0.5", "blue": "0.25", "gold": "5", "silver": "10"}
CODONS = dict(zip(
    (a + b + c for a in "TCAG" for b in "TCAG" for c in "TCAG"),
    "FFLLSSSSYY**CC*WLLLLPPPPHHQQRRRRIIIMTTTTNNKKSSRRVVVVAAAADDEEGGGG", strict=True,
))  # fmt: skip


def knots(heard: Heard) -> str:
    """By name, or by what it is for."""
    low = heard.text.lower().replace("\u2019", "'")
    found = [name for name in KNOTS if name in low or name.replace("'", "") in low]
    if not found:
        asked = _stems(low)
        ranked = [(len(asked & _stems(use)), name) for name, (use, _, _) in KNOTS.items()]
        best = max(ranked)[0]
        found = [name for points, name in ranked if points == best > 0][:2]
    if not found:
        return "I only know knots: name one, or tell me what it has to hold."
    rows = [f"{n.capitalize()}: for {KNOTS[n][0]}. To tie it, {KNOTS[n][1]}. Mind: {KNOTS[n][2]}."
            for n in found]  # fmt: skip
    return "\n".join(rows)


def _stems(text: str) -> set[str]:
    """Words as far as it takes to know them."""
    plain = {"the", "and", "for", "with", "that", "what", "whic", "knot", "rope", "does", "tied"}
    return {word[:4] for word in re.findall(r"[a-z]{3,}", text)} - plain


def morse(heard: Heard) -> str:
    """Signs to letters where there are signs, else letters to signs."""
    signs = re.search(r"[.\-\u2013/ ]*[.\-][.\-/ ]+[.\-]|^[.\-]+$", heard.text.strip())
    given = quoted(heard.text)
    source = given if given and set(given) <= set(".- /") else signs[0] if signs else ""
    if source and not re.search(r"[A-Za-z]", given):
        words = [w.split() for w in re.split(r"/|\s{3,}", source.strip()) if w.strip()]
        return " ".join("".join(LETTERS.get(s, "\u25a1") for s in w) for w in words)
    if not given:
        bare = re.match(r"(?:please )?(?:encode|put|write|send)\s+(.+)", heard.text, re.IGNORECASE)
        given = bare[1] if bare else ""
    if not given:
        return "Give me letters in quotation marks, or dots and dashes, and I put them across."
    return " / ".join(
        " ".join(MORSE[c] for c in word if c in MORSE) for word in given.upper().split()
    )


def dice(heard: Heard) -> str:
    """Chances of a throw, in words that change."""
    low = heard.text.lower()
    thrown = re.search(r"\b(\d{0,2})\s?d\s?(\d{1,3})\b", low)
    if not thrown or int(thrown[2]) < 2 or not 0 < int(thrown[1] or 1) <= 20:
        return random.choice(
            ("Dice, please: something like 2d6.", "I only speak of dice: 3d8, say.")
        )
    count, sides = int(thrown[1] or 1), int(thrown[2])
    sums = Counter({0: 1})
    for _ in range(count):
        sums = Counter(
            {
                t: sum(sums[t - f] for f in range(1, sides + 1))
                for t in range(1, max(sums) + sides + 1)
            }
        )
    rest = low[: thrown.start()] + " " + low[thrown.end() :]
    aim = re.search(r"\d+", rest)
    mean = lean(count * (sides + 1) / 2)
    if not aim:
        said = (
            f"{count}d{sides} throws {mean} on average.",
            f"The mean of {count}d{sides} is {mean}.",
        )
        return random.choice(said)
    goal = int(aim[0])
    how, kept = _wanted(low, goal)
    chance = lean(100 * sum(n for t, n in sums.items() if kept(t)) / sides**count)
    frame = random.choice(("The chance of {} with {} is {} %.", "For {}, {} gives {} %.",
                           "You get {} with {} in {} % of throws."))  # fmt: skip
    return frame.format(f"{how} {goal}", f"{count}d{sides}", chance)


def _wanted(low: str, goal: int):  # noqa: ANN202 - a word and a test
    if re.search(r"at most|or less|or lower|no more than", low):
        return "at most", lambda t: t <= goal
    if re.search(r"more than|above|over", low):
        return "more than", lambda t: t > goal
    if re.search(r"less than|below|under", low):
        return "less than", lambda t: t < goal
    if re.search(r"at least|or more|or higher|or better", low):
        return "at least", lambda t: t >= goal
    return "exactly", lambda t: t == goal


def tidy(heard: Heard) -> str:
    """A text with its typing slips mended, and how many there were."""
    given = quoted(heard.text) or heard.text
    steps = (
        ("double spaces", r"(?<=\S) {2,}(?=\S)", " "), ("spaces before marks", r"\s+([,.;:!?])",
                                                        r"\1"),
        ("three dots", r"\.{3}", "\u2026"), ("double hyphens", r"\s?--\s?", " \u2013 "),
        ("doubled words", r"\b(\w+) \1\b", r"\1"),
    )  # fmt: skip
    done = []
    for name, pattern, better in steps:
        given, count = re.subn(pattern, better, given)
        done += [f"{name}: {count}"] if count else []
    return f"{given}\n\nChanged \u2013 {', '.join(done) if done else 'nothing'}."


def minutes(heard: Heard) -> str:
    """Who has promised what, as a Markdown table."""
    rows = []
    for line in re.split(r"(?<=[.!?])\s+|\n+|;\s*", quoted(heard.text) or heard.text):
        hit = re.search(r"\b([A-Z][\w-]+) (?:will|is to|has to|promised to|agreed to) (.+)", line)
        if hit:
            what, _, when = re.sub(r"[.!?'\"]+$", "", hit[2]).partition(" by ")
            rows.append(f"| {hit[1]} | {what} | {when or 'no date'} |")
    if not rows:
        return (
            "No promises found. I look for sentences such as 'Ines will book the hall by Friday'."
        )
    return "\n".join(["| Who | What | By |", "|---|---|---|", *rows])


def compass(heard: Heard) -> str:
    """Degrees to points and back, and the way home."""
    low = heard.text.lower()
    degrees = re.search(r"(\d+(?:\.\d+)?)\s*(?:\u00b0|deg)?", low)
    if degrees:
        angle = float(degrees[1]) % 360
    else:
        point = re.search(r"\b([NESW]{1,3})\b", heard.text)
        if not point or point[1] not in POINTS:
            return "A course, please: degrees such as 247, or a point such as SSW."
        angle = POINTS.index(point[1]) * 22.5
    name = POINTS[int((angle + 11.25) // 22.5) % 16]
    return (
        f"{lean(angle, 1)}\u00b0 is {name}; the way back is {lean((angle + 180) % 360, 1)}\u00b0."
    )


def gears(heard: Heard) -> str:
    """Ratio and metres per turn of the pedals, as JSON."""
    teeth = re.search(
        r"(\d{2})\s*(?:[x\u00d7/:]|by|and|with|to)\s*(?:a\s+)?(\d{2})", heard.text.lower()
    )
    if not teeth:
        return json.dumps({"error": "name chainring and cog, as in 46x17"})
    front, rear = int(teeth[1]), int(teeth[2])
    tyre = re.search(r"700\s*x\s*(\d{2})|(\d{2})\s?mm", heard.text.lower())
    width = int(tyre[1] or tyre[2]) if tyre else 28
    around = 3.14159265 * (622 + 2 * width) / 1000
    return json.dumps({
        "chainring": front, "cog": rear, "ratio": round(front / rear, 2), "tyre_mm": width,
        "metres_per_turn": round(front / rear * around, 2),
    })  # fmt: skip


def resistor(heard: Heard) -> str:
    """Bands to ohms and ohms to bands."""
    low = heard.text.lower().replace("gray", "grey").replace("purple", "violet")
    seen = re.findall("|".join([*BANDS, "gold", "silver"]), low)
    if len(seen) >= 3:
        return _ohms(seen)
    value = re.search(r"(\d+(?:\.\d+)?)\s*([kmMK\u03a9]?)", heard.text)
    if not value or not float(value[1]):
        return "Name three or four bands, or a value such as 4.7k."
    ohms = float(value[1]) * {"k": 1e3, "K": 1e3, "M": 1e6, "m": 1e6}.get(value[2], 1)
    power = 0
    while ohms >= 99.5:
        ohms, power = ohms / 10, power + 1
    while ohms < 9.95:
        ohms, power = ohms * 10, power - 1
    if not -3 < power < 10:
        return "No resistor has bands for that value."
    digits, is_near = f"{round(ohms):02d}", abs(round(ohms) - ohms) > 0.001
    third = BANDS[power] if power >= 0 else ("gold" if power == -1 else "silver")
    said = f"{BANDS[int(digits[0])]}, {BANDS[int(digits[1])]}, {third}"
    return f"{said} (the nearest)" if is_near else said


def _ohms(seen: list[str]) -> str:
    if seen[0] not in BANDS or seen[1] not in BANDS:
        return "Gold and silver never come first; turn it round."
    power = BANDS.index(seen[2]) if seen[2] in BANDS else {"gold": -1, "silver": -2}[seen[2]]
    ohms = (BANDS.index(seen[0]) * 10 + BANDS.index(seen[1])) * 10.0**power
    for size, unit in ((1e6, "M\u03a9"), (1e3, "k\u03a9")):
        if ohms >= size:
            shown = f"{lean(ohms / size)} {unit}"
            break
    else:
        shown = f"{lean(ohms)} \u03a9"
    extra = TOLERANCE.get(seen[3]) if len(seen) > 3 else None
    return f"{shown} \u00b1{extra} %" if extra else shown


def strand(heard: Heard) -> str:
    """What can be said of a piece of DNA."""
    found = re.search(r"\b[ACGTacgt]{4,}\b", heard.text)
    if not found:
        return "I need a strand of at least four bases, written with A, C, G and T."
    bases = found[0].upper()
    other = bases.translate(str.maketrans("ACGT", "TGCA"))[::-1]
    share = lean(100 * (bases.count("G") + bases.count("C")) / len(bases), 1)
    protein = "".join(CODONS[bases[n : n + 3]] for n in range(0, len(bases) - 2, 3))
    return (f"- length: {len(bases)}\n- reverse complement: {other}\n- GC: {share} %\n"
            f"- protein, first frame: {protein}")  # fmt: skip
