"""What the fifth set's agents for messages can do, in English."""

import math
import random
import re
from collections import deque
from itertools import product

# --- knights ----------------------------------------------------------------------------------

JUMPS = [(1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1), (-2, 1), (-1, 2)]


def hops(square: str) -> list[str]:
    """Where a knight may go from here."""
    col, row = ord(square[0]), int(square[1])
    there = [(chr(col + dx), row + dy) for dx, dy in JUMPS]
    return sorted(f"{c}{r}" for c, r in there if c in "abcdefgh" and 1 <= r <= 8)


def shortest(start: str, goal: str) -> list[str]:
    """A shortest path of a knight."""
    came: dict[str, str] = {start: ""}
    queue = deque([start])
    while goal not in came:
        here = queue.popleft()
        for there in hops(here):
            if there not in came:
                came[there] = here
                queue.append(there)
    path = [goal]
    while came[path[-1]]:
        path.append(came[path[-1]])
    return path[::-1]


def knight(text: str) -> str:
    squares = re.findall(r"(?<![a-mo-z0-9])([a-h][1-8])(?![a-z0-9])", text.lower())
    if not squares:
        return "Name one square or two, from a1 to h8, and I tell you how the knight gets about."
    if len(squares) == 1:
        there = hops(squares[0])
        shade = "dark" if (ord(squares[0][0]) + int(squares[0][1])) % 2 == 0 else "light"
        return f"{squares[0]} is {shade}. {len(there)} moves: {' '.join(there)}"
    path = shortest(squares[0], squares[1])
    jumps = len(path) - 1
    return f"{jumps} move{'s' * (jumps != 1)}: {'-'.join(path)}"


# --- heredity ---------------------------------------------------------------------------------


def gametes(parent: str) -> list[str]:
    """What a parent hands down, one letter of each pair."""
    pairs = [parent[n : n + 2] for n in range(0, len(parent), 2)]
    return ["".join(letters) for letters in product(*pairs)]


def cross(mother: str, father: str) -> dict[str, int]:
    """How often each genotype comes up among all combinations."""
    found: dict[str, int] = {}
    for one, two in product(gametes(mother), gametes(father)):
        child = "".join("".join(sorted(pair)) for pair in zip(one, two, strict=True))
        found[child] = found.get(child, 0) + 1
    return found


def _fits(one: str, two: str) -> bool:
    same = [a.lower() == b.lower() for a, b in zip(one, two, strict=False)]
    paired = all(one[n].lower() == one[n + 1].lower() for n in range(0, len(one), 2))
    return len(one) == len(two) and len(one) % 2 == 0 and all(same) and paired


CROSSED = re.compile(
    r"\b([A-Za-z]{2,6})(?:\s*\u00d7\s*|\s+(?:x|X|with|and|by)\s+)([A-Za-z]{2,6})\b"
)


def punnett(text: str) -> str:
    asked = next((m.groups() for m in CROSSED.finditer(text) if _fits(*m.groups())), None)
    if not asked:
        return "I cross two genotypes with the same genes, written like Aa x aa or RrYy x RrYy."
    found = cross(*asked)
    whole = sum(found.values())
    rows = [f"{kind} {times}/{whole} ({100 * times / whole:g} %)" for kind, times in found.items()]
    shown: dict[str, int] = {}
    for kind, times in found.items():
        look = "".join(kind[n] for n in range(0, len(kind), 2))
        shown[look] = shown.get(look, 0) + times
    looks = ", ".join(f"{look} {times}/{whole}" for look, times in shown.items())
    return "Genotypes: " + ", ".join(sorted(rows)) + f"\nPhenotypes: {looks}"


# --- codons -----------------------------------------------------------------------------------

BASES = "UCAG"
ACIDS = "FFLLSSSSYY**CC*WLLLLPPPPHHQQRRRRIIIMTTTTNNKKSSRRVVVVAAAADDEEGGGG"
CODE = dict(zip(("".join(c) for c in product(BASES, repeat=3)), ACIDS, strict=True))


def codons(text: str) -> str:
    strands = re.findall(r"\b[ACGTUacgtu]{3,}\b", text)
    if not strands:
        return "Please give a strand of DNA or RNA: letters A, C, G and T or U, three or more."
    strand = max(strands, key=len).upper().replace("U", "T")
    low = text.lower()
    if "complement" in low:
        other = strand.translate(str.maketrans("ACGT", "TGCA"))
        return other[::-1] if "reverse" in low else other
    if re.search(r"\bgc\b", low):
        return f"{100 * sum(b in 'GC' for b in strand) / len(strand):.1f} % GC"
    rna = strand.replace("T", "U")
    if re.search(r"transcri|to rna|mrna", low):
        return rna
    made = "".join(CODE[rna[n : n + 3]] for n in range(0, len(rna) - 2, 3))
    return f"{made.split('*')[0]}{' (stop)' if '*' in made else ' (no stop codon)'}"


# --- tea --------------------------------------------------------------------------------------

TEAS = {
    "green": (75, 120), "black": (96, 210), "sencha": (70, 60), "gyokuro": (55, 120),
    "matcha": (80, 0), "assam": (96, 240), "darjeeling": (92, 180), "oolong": (88, 180),
    "white": (78, 240), "pu-erh": (98, 150), "rooibos": (100, 360), "peppermint": (100, 420),
    "earl grey": (95, 210), "jasmine": (80, 150), "ceylon": (96, 200), "chamomile": (98, 300),
    "lapsang": (95, 220), "hojicha": (90, 45),
}  # fmt: skip
NOT_TEA = (
    "Sorry, the pot is all I know about. Ask me for a tea.",
    "That one is not on my shelf. I keep to teas: sencha, assam, oolong and a dozen others.",
    "I only brew. Which tea would you like to make?",
)


def tea(text: str) -> str:
    low = text.lower()
    found = [name for name in TEAS if name in low]
    if not found:
        return random.choice(NOT_TEA)
    lines = []
    for name in found:
        heat, rest = TEAS[name]
        american = "°f" in low or "fahrenheit" in low
        warm = f"{heat * 9 / 5 + 32:.0f} °F" if american else f"{heat} °C"
        how = f"let it draw {rest // 60}:{rest % 60:02d} min" if rest else "whisk it, no steeping"
        lead = random.choice(("", "For a good cup: ", "Easy. "))
        lines.append(f"{lead}{name.title()} wants water of {warm}; {how}.")
    return "\n".join(lines)


# --- dice -------------------------------------------------------------------------------------

THROW = re.compile(r"(?<![\w])(\d{0,2})[dDwW](\d{1,4})(?:\s*([+-])\s*(\d{1,4}))?")


def dice(text: str) -> str:
    asked = THROW.search(text)
    if not asked or int(asked[2]) < 2 or asked[1] == "0":
        return "I throw dice. Write how many and which, such as 2d6, d20 or 4d8+3."
    count, sides, plus = (
        int(asked[1] or 1),
        int(asked[2]),
        int((asked[3] or "+") + (asked[4] or "0")),
    )
    if re.search(r"average|mean|expect|range|least|most|minimum|maximum", text.lower()):
        mean = count * (sides + 1) / 2 + plus
        return f"from {count + plus} to {count * sides + plus}, {mean:g} on average"
    thrown = [random.randint(1, sides) for _ in range(count)]
    tail = f" {'+' if plus > 0 else '-'} {abs(plus)}" if plus else ""
    return f"{' + '.join(map(str, thrown))}{tail} = {sum(thrown) + plus}"


# --- pizzas -----------------------------------------------------------------------------------

COUNTS = {"a": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
OFFER = re.compile(
    r"(?:\b(\d{1,2}|a|one|two|three|four|five|six)\s+(?:of\s+|x\s+)?)?(?<![\d.])(\d+(?:\.\d+)?)"
    r"[\s-]*(cm|inch(?:es)?|in\b|\")[^\d€$£]*[€$£]?\s*(\d+(?:\.\d+)?)",
    re.IGNORECASE,
)  # fmt: skip


def pizzas(text: str) -> tuple[str, list[dict[str, float]]]:
    rows: list[dict[str, float]] = []
    for count, across, unit, price in OFFER.findall(re.sub(r"(?<=[0-9]),(?=[0-9])", ".", text)):
        many = int(count) if count.isdigit() else COUNTS.get(count.lower(), 1)
        size = float(across) * (1 if unit.lower() == "cm" else 2.54)
        area = many * math.pi * size**2 / 4
        cents = round(100 * float(price) / area, 3)
        rows.append({"count": many, "area_cm2": round(area, 1), "cents_per_cm2": cents})
    if not rows:
        return "Write each offer with its diameter and price, as in: a 30 cm for 9.50", rows
    best = min(range(len(rows)), key=lambda n: rows[n]["cents_per_cm2"])
    row = rows[best]
    return f"Offer {best + 1} is the best: {row['cents_per_cm2']:g} cents per cm2.", rows


# --- fences -----------------------------------------------------------------------------------

SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(m|cm|metres?|meters?)\b", re.IGNORECASE)


def fence(text: str, panel_m: float = 1.8) -> str | None:
    """Panels and posts; None without a length."""
    spans = [float(n) / (100 if unit.lower() == "cm" else 1) for n, unit in SPAN.findall(text)]
    if not spans or max(spans) <= 0:
        return None
    length = max(spans)
    wide = min(spans) if len(spans) > 1 and min(spans) > 0 else panel_m
    panels = math.ceil(round(length / wide, 6))
    cut = round(panels * wide - length, 2)
    last = f"; saw {cut:g} m off the last one" if cut else ""
    return f"{length:g} m take {panels} panels of {wide:g} m and {panels + 1} posts{last}."
