"""What the English-speaking agents for messages of the sixth set do."""

import math
import random
import re
import secrets
from collections import defaultdict
from collections.abc import Sequence

from tests.ground_truth.fifth_base import Outcome
from tests.ground_truth.sixth_base import asked_back

LENGTH = re.compile(r"(\d+(?:[.,]\d+)?)\s*(cm|mm|m|metres?|meters?)\b", re.IGNORECASE)
FULLNESS = {"eyelet": 1.75, "pinch": 2.25, "pencil": 2.0, "wave": 2.0, "tab": 1.5}


def lengths(text: str) -> dict[str, float]:
    """Track, drop and fabric width in cm, by the words around each number."""
    found: dict[str, float] = {}
    for hit in LENGTH.finditer(text):
        number = float(hit[1].replace(",", "."))
        unit = hit[2].lower()
        size = number if unit == "cm" else number / 10 if unit == "mm" else number * 100
        before = re.split(r"[,.;?]\s|\band\b", text[: hit.start()].lower())[-1]
        beyond = re.split(r"[,.;?]|\band\b", text[hit.end() :].lower())[0]
        near = before + " " + beyond
        if re.search(r"fabric|bolt|cloth", near):
            found["fabric"] = size
        elif re.search(r"drop|long|length|high|height|tall|down", near):
            found["drop"] = size
        elif "track" not in found or re.search(r"track|pole|rail|window", near):
            found["track"] = size
        else:
            found.setdefault("drop", size)
    return found


def curtains(text: str, talk: list[str]) -> Outcome:
    """How much fabric; what is missing is asked for."""
    whole: dict[str, float] = {}
    for said in (*talk[-3:], text):
        got = lengths(said)
        if "track" in whole and set(got) == {"track"} and "drop" not in whole:
            got = {"drop": got["track"]}
        whole |= got
    if "track" not in whole:
        return asked_back("How wide is the track or pole? Please give it in cm or m.")
    if "drop" not in whole:
        return asked_back(f"Noted, a track of {whole['track']:g} cm. And how long is the drop?")
    if not (20 <= whole["track"] <= 900 and 20 <= whole["drop"] <= 800):
        return Outcome("We sew for tracks of 20 to 900 cm and drops of 20 to 800 cm.",
                       state="rejected")  # fmt: skip
    said = " ".join((*talk[-3:], text)).lower()
    heading = next((name for name in FULLNESS if name in said), "pencil")
    wide = whole.get("fabric", 137)
    widths = math.ceil(whole["track"] * FULLNESS[heading] / wide)
    cut = round(whole["drop"] + 25, 1)
    metres = math.ceil(widths * cut / 10) / 10
    line = (
        f"{widths} widths of {wide:g} cm fabric, each cut {cut:g} cm long: order {metres:.1f} m. "
        f"({heading} heading, fullness {FULLNESS[heading]:g}; 25 cm allowed for hem and heading.)"
    )
    return Outcome(line, {"widths": widths, "cut_cm": cut, "metres": metres, "heading": heading})


COMMIT = re.compile(r"^[-*\s]*([a-z]+)(?:\(([^)]+)\))?(!)?:\s*(.+)$", re.IGNORECASE)
HEADINGS = {
    "feat": "Added", "fix": "Fixed", "perf": "Faster", "docs": "Documentation",
    "refactor": "Inside", "chore": "Inside", "build": "Inside", "ci": "Inside",
    "test": "Inside", "style": "Inside", "revert": "Taken back",
}  # fmt: skip


def raised(version: str, step: str) -> str:
    major, minor, patch = (int(part) for part in version.split("."))
    if step == "major":
        return f"{major + 1}.0.0"
    return f"{major}.{minor + 1}.0" if step == "minor" else f"{major}.{minor}.{patch + 1}"


def release_notes(text: str, _talk: list[str]) -> Outcome:
    """Conventional commits, put under headings."""
    groups: dict[str, list[str]] = defaultdict(list)
    step = "patch"
    for line in text.splitlines():
        hit = COMMIT.match(line)
        if not hit or hit[1].lower() not in HEADINGS:
            continue
        kind, scope, breaks, subject = hit[1].lower(), hit[2], hit[3], hit[4].strip()
        place = "Breaking" if breaks else HEADINGS[kind]
        step = "major" if breaks or step == "major" else "minor" if kind == "feat" else step
        groups[place].append((f"**{scope}**: " if scope else "") + subject)
    if not groups:
        return asked_back(
            "Please paste commit subjects, one to a line, such as `feat(map): show contour lines`."
        )
    was = re.search(r"\b(\d+\.\d+\.\d+)\b", text.splitlines()[0])
    title = f"## {raised(was[1], step)}" if was else f"## Unreleased ({step})"
    order = ("Breaking", *dict.fromkeys(HEADINGS.values()))
    lines = [title]
    for place in (p for p in order if p in groups):
        lines += ["", f"### {place}", *(f"- {subject}" for subject in groups[place])]
    return Outcome("\n".join(lines))


FRAMES = (
    ("Python", re.compile(r'File "([^"]+)", line (\d+), in (\S+)'), -1),
    ("Java", re.compile(r"^\s*at ([\w.$<>]+)\((\w+\.(?:kt|java)):(\d+)\)", re.MULTILINE), 0),
    ("Node.js", re.compile(r"^\s*at (?:(.+?) \()?([^\s()]+?):(\d+):\d+\)?", re.MULTILINE), 0),
)
CAUSES = {
    "KeyError": "the mapping has no such key; look it up with a default or check what filled it",
    "IndexError": "the list is shorter than the code assumes",
    "ZeroDivisionError": "a divisor was zero; guard the empty case",
    "AttributeError": "the object has a type the code never meant, often None",
    "TypeError": "a value has another type than the operation takes",
    "ValueError": "the type is right but the content is not; check what was parsed",
    "FileNotFoundError": "the path is relative to some other working directory, or was never made",
    "ModuleNotFoundError": "the package is not installed in this environment",
    "NullPointerException": "a reference was null; check what returned it",
    "ArrayIndexOutOfBoundsException": "an index ran past the end of an array",
    "ClassCastException": "an object was cast to a foreign class",
    "NumberFormatException": "a text without digits was read as a number",
    "ReferenceError": "a name is used and never defined",
    "RangeError": "a value is outside its range, often endless recursion",
    "SyntaxError": "the parser gave up; see the character just ahead of the one reported",
}
RAISED = re.compile(
    r"^(?:Exception in thread \"[^\"]*\" |Caused by: |Uncaught )?([\w.]*?)(\w+(?:Error|Exception))"
    r"(?::\s*(.*))?$",
    re.MULTILINE,
)


def triage(text: str, _talk: list[str]) -> Outcome:
    """What a traceback says, in three lines."""
    hits = list(RAISED.finditer(text))
    if not hits:
        return Outcome(
            "I see no exception in that. Paste the whole traceback of Python, Java or Node.js, "
            "with the line that names the error.", state="failed",
        )  # fmt: skip
    hit = hits[-1]
    name, message = hit[2], (hit[3] or "").strip()
    where, language = "no frame given", "unknown"
    for tongue, pattern, which in FRAMES:
        frames = pattern.findall(text)
        if not frames:
            continue
        frame = frames[which]
        file, line, inside = frame if tongue == "Python" else (frame[1], frame[2], frame[0])
        where = f"{file}, line {line}" + (f", in {inside}" if inside else "")
        language = tongue
        break
    cause = CAUSES.get(name, "not in my list; read the code at that line")
    said = f"{name}{': ' + message if message else ''}\nWhere: {where}\nLikely: {cause}."
    return Outcome(said, {"exception": name, "message": message, "language": language})


PLANTS = {
    "snake plant": ("low", True, 19, "every three weeks", "stands neglect"),
    "cast iron plant": ("low", False, 34, "every two weeks", "shrugs off draughts and shade"),
    "parlour palm": ("low", False, 22, "once a week", "stays below a chair's height"),
    "spider plant": ("medium", False, 9, "once a week", "gives you babies to share"),
    "peace lily": ("medium", True, 16, "twice a week", "droops when thirsty and forgives at once"),
    "calathea": ("medium", False, 27, "twice a week", "folds its leaves at night"),
    "monstera": ("medium", True, 39, "once a week", "wants a pole and a lot of room"),
    "jade plant": ("bright", True, 12, "every three weeks", "grows old with its owner"),
    "haworthia": ("bright", False, 8, "every three weeks", "fits a cup on the windowsill"),
    "string of hearts": ("bright", False, 18, "every ten days", "trails a metre down from a shelf"),
}  # fmt: skip
LIGHTS = {
    "low": r"\bdark|\blow light|shade|\bnorth|gloom|hallway|basement",
    "bright": r"\bbright|sunny|\bsouth|full sun|direct|conservatory",
    "medium": r"medium|\beast|\bwest|half.?shade|indirect",
}
OPENERS = ("Good choice of spot!", "Oh, I like that.", "Right, let me think.", "Happy to help.")


def plants_for(light: str | None, *, pets: bool, most: int | None) -> list[str]:
    return [
        name for name, (wants, toxic, price, _, _) in PLANTS.items()
        if (light is None or wants == light) and not (pets and toxic)
        and (most is None or price <= most)
    ]  # fmt: skip


def mira(text: str, _talk: list[str]) -> Outcome:
    """A shop's helper, in changing words."""
    low = text.lower()
    named = next((p for p in PLANTS if p in low), None)
    if named:
        light, toxic, price, water, charm = PLANTS[named]
        pets = "keep it away from cats and dogs" if toxic else "safe around pets"
        one = f"Our {named} is {price} euros. It likes {light} light and water {water}; {pets}."
        two = f"The {named}? {light.capitalize()} light, a drink {water}, {pets}, {price} euros."
        return Outcome(f"{random.choice((one, two))} It {charm}.")
    light = next((k for k, words in LIGHTS.items() if re.search(words, low)), None)
    pets = bool(re.search(r"\bcats?\b|\bdogs?\b|\bpets?\b|kitten|puppy|rabbit", low))
    most = re.search(r"(?:under|below|at most|up to|less than)\s*(?:€|eur\w*)?\s*(\d+)", low)
    if light or pets or most:
        fits = plants_for(light, pets=pets, most=int(most[1]) if most else None)
        if not fits:
            return Outcome(
                "Hmm, nothing on our shelves fits all of that. Could you give way a bit?"
            )
        rows = "; ".join(f"{p} ({PLANTS[p][2]} euros), it {PLANTS[p][4]}" for p in fits[:3])
        return Outcome(f"{random.choice(OPENERS)} I would look at these: {rows}.")
    if re.search(r"\bopen|\bhours|\bclose", low):
        return Outcome("We are here Tuesday to Saturday, ten to six. Mondays the plants sleep.")
    if re.match(r"\W*(hi|hello|hey|good (morning|evening|afternoon)|thanks|thank you)\b", low):
        return Outcome(random.choice(("Hello from the fern end of the shop!", "Hi, Mira here.")))
    return Outcome(random.choice((
        "I only know our plants. Tell me about the light in your room, or whether you have pets.",
        "That is beyond a plant shop, I am afraid. What light does your room get?",
    )))  # fmt: skip


ONSETS: Sequence[str] = ("b", "br", "d", "dr", "f", "g", "gr", "k", "l", "m", "n", "p", "pl", "r",
                         "s", "st", "t", "tr", "v", "z")  # fmt: skip
CODAS: Sequence[str] = ("", "l", "m", "n", "r", "s", "sk", "nt")
DIGITS = {"three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10}
GLUES = {"dot": ".", "period": ".", "space": " ", "underscore": "_", "dash": "-", "hyphen": "-"}


def pantry(text: str, _talk: list[str]) -> Outcome:
    """Passphrases of made-up words."""
    low = text.lower()
    if not re.search(r"phrase|password|words?\b|secret", low):
        return Outcome("I only cook passphrases. Say how many words you want, from 3 to 10.")
    number = re.search(r"\b(\d{1,3})\b", low)
    spelled = next((n for word, n in DIGITS.items() if re.search(rf"\b{word}\b", low)), 4)
    count = int(number[1]) if number else spelled
    if not 3 <= count <= 10:
        return Outcome("Between 3 and 10 words, please.")
    glue = next((mark for word, mark in GLUES.items() if word in low), "-")
    words = [
        "".join((
            secrets.choice(ONSETS), secrets.choice("aeiou"),
            secrets.choice(ONSETS), secrets.choice("aeiou"), secrets.choice(CODAS),
        ))
        for _ in range(count)
    ]  # fmt: skip
    bits = math.floor(count * math.log2(20 * 5 * 20 * 5 * 8))
    return Outcome(f"{glue.join(words)}\n(about {bits} bits)")
