"""What the seventh set's A2A agents make of a message."""

import random
import re
from datetime import date

from tests.ground_truth import (
    seventh_goods,
    seventh_guard,
    seventh_home,
    seventh_outdoors,
    seventh_play,
)
from tests.ground_truth.fifth_base import Outcome
from tests.ground_truth.seventh_base import today


def tide(text: str, earlier: list[str]) -> Outcome:
    marks = seventh_outdoors.tide_marks("\n".join([*earlier, text]))
    if len(marks) < 2:
        asked = "the times and heights of high and low water" if not marks else "the other tide"
        ask = f"I still need {asked}, like this: HW 04:12 5.6 m, LW 10:30 1.1 m."
        return Outcome(ask, state="input-required")
    if found := re.search(r"(?:above|below|over|reach\w*|to)\s+(\d+(?:\.\d+)?)\s*m\b", text):
        when = seventh_outdoors.tide_time(marks, float(found[1]))
        known = when is not None
        return Outcome(
            f"The water stands at {found[1]} m at {seventh_outdoors.clock(when or 0)}."
            if known else f"It never stands at {found[1]} m in that time."
        )  # fmt: skip
    rest = seventh_outdoors.MARK.sub(" ", text)
    found = re.search(rf"\b{seventh_outdoors.CLOCK}", rest)
    if not found:
        return Outcome("For what time do you want the height?", state="input-required")
    height = seventh_outdoors.tide_height(marks, seventh_outdoors.minutes(*found.groups()))
    if height is None:
        return Outcome(f"{found[0]} is outside your two tides, give me the pair around it.")
    return Outcome(f"Height of tide at {found[0]}: {height:.2f} m above chart datum.")


STEPS = re.compile(r"\b(up|down|capo|higher|lower)\s*(?:by\s*|on\s*)?(\d{1,2})\b", re.IGNORECASE)
KEYS = re.compile(r"\bfrom ([A-G][#b]?)m? (?:in)?to ([A-G][#b]?)m?\b")


def capo(text: str, _earlier: list[str]) -> Outcome:
    keys, steps = KEYS.search(text), STEPS.search(text)
    if keys:
        count, mark = (seventh_play.pitch(keys[2]) - seventh_play.pitch(keys[1])) % 12, keys
    elif steps:
        lower = steps[1].lower() in {"down", "lower", "capo"}
        count, mark = int(steps[2]) * (-1 if lower else 1), steps
    else:
        return Outcome("Say how far: 'up 2', 'capo 3', or 'from G to Bb', and paste the chords.")
    body = text[: mark.start()] + text[mark.end() :]
    body = re.sub(r"(?i)\b(transpose|please|move|these|this|chords?|semitones?|song)\b:?", "", body)
    lines = [line.strip(" :,.?") for line in body.splitlines() if line.strip(" :,.?")]
    flat = bool(keys and (keys[2].endswith("b") or keys[2] == "F"))
    made = seventh_play.transposed([line.replace(",", " ") for line in lines], count, flats=flat)
    if made == lines and count % 12:
        return Outcome("I see no chords in that. I only do chords, not melodies or lyrics.")
    return Outcome("\n".join(re.sub(r" {3,}", "  ", line) for line in made))


def shaping(text: str, _earlier: list[str]) -> Outcome:
    numbers = [float(n) for n in re.findall(r"\d+(?:\.\d+)?", text)]
    low = text.lower()
    if "gauge" in low or "cast on" in low or "tension" in low:
        if len(numbers) < 3:
            return Outcome("Tell me stitches, over how many cm, and the width.",
                           state="input-required")  # fmt: skip
        repeat = int(numbers[3]) if len(numbers) > 3 else 1
        count = seventh_home.cast_on(*numbers[:3], repeat)
        return Outcome(f"Cast on {count} stitches.\nThat fits a repeat of {repeat}.")
    if len(numbers) < 2 or not re.search(r"decreas|increas|k2tog|m1|lose|add", low):
        return Outcome("Hello! Give me your stitch count and how many to lose or add in the row.",
                       state="input-required")  # fmt: skip
    change, stitches = sorted(int(n) for n in numbers[:2])
    less = re.search(r"decreas|k2tog|lose", low)
    try:
        lines = seventh_home.worked_evenly(stitches, -change if less else change)
    except ValueError as error:
        return Outcome(f"That can't be knitted: {error}.", state="rejected")
    return Outcome("\n".join(lines))


OPENERS = ("Right then, here's the list.", "Drawn and done:", "Fixtures, fresh out of the hat.",
           "Here you go, everybody plays everybody once.")  # fmt: skip


def league(text: str, _earlier: list[str]) -> Outcome:
    found = re.sub(r"^[^:]*:", "", text, count=1)
    teams = [t.strip(" .!?") for t in re.split(r",|;|\n| and ", found) if t.strip(" .!?")]
    if not 3 <= len(teams) <= 20:
        return Outcome("Send me 3 to 20 team names, a comma after each, and that is all I need.")
    rounds = seventh_play.fixtures(teams)
    lines = [random.choice(OPENERS)]
    for n, pairs in enumerate(rounds, 1):
        lines.append(f"Week {n}: " + "; ".join(f"{home} v {away}" for home, away in pairs))
    return Outcome("\n".join(lines))


def second_look(text: str, _earlier: list[str]) -> Outcome:
    if len(text) < 40:
        return Outcome("Paste the whole mail or text message, with the links, and I look at it.")
    found = seventh_guard.letter(text)
    if not found:
        return Outcome("I know none of this from scams. That's no guarantee.")
    level = "Leave it alone." if len(found) > 1 else "Be careful with this one."
    return Outcome("\n".join([level, *(f"- {row}" for row in found)]),
                   {"signs": len(found), "verdict": level})  # fmt: skip


def bins(text: str) -> str:
    """Kerbside collections of one parish."""
    street = next((s for s in seventh_home.STREETS if s in text.lower()), "")
    if not street:
        known = ", ".join(s.title() for s in seventh_home.STREETS)
        return f"I only do bin days in Netherby: {known}. Anything else, ring the parish office."
    found = re.search(r"\d{4}-\d\d-\d\d", text)
    count = 4 if re.search(r"month|weeks|four", text.lower()) else 1
    try:
        day = date.fromisoformat(found[0]) if found else today()
        rows = seventh_home.collections(street, day, count)
    except (ValueError, OverflowError):
        return "That date doesn't exist. Write it like 2026-03-02."
    return "; ".join(f"{d:%A} {d.isoformat()}: {what}" for d, what in rows)


def freight(text: str) -> str:
    """Volume, chargeable weight and girth of boxes."""
    boxes = seventh_goods.parcels(text)
    if not boxes:
        return "No box found. Sizes in cm please: 3 x 40x30x20, 12 kg, air"
    weight = re.search(r"(\d+(?:\.\d+)?)\s*kg", text)
    way = next((w for w in seventh_goods.DIVISORS if w in text.lower()), "road")
    cubic = sum(box.cubic_m for box in boxes)
    by_size = cubic * 1000 / seventh_goods.DIVISORS[way]
    rows = [f"{sum(b.count for b in boxes)} pcs, {cubic:.3f} m3",
            f"volumetric weight by {way}: {by_size:.1f} kg"]  # fmt: skip
    if weight:
        rows.append(f"chargeable: {max(by_size, float(weight[1])):.1f} kg")
    rows += [f"oversize: girth {b.girth:g} cm is above 300" for b in boxes if b.girth > 300]
    return "\n".join(rows)


def wind(text: str) -> str:
    """What is felt on deck."""
    numbers = [float(n) for n in re.findall(r"\d+(?:\.\d+)?", text)]
    if len(numbers) < 3:
        return "I need three numbers in this order: boat speed, true wind speed, true wind angle."
    speed, angle = seventh_outdoors.apparent(*numbers[:3])
    force = seventh_outdoors.beaufort(numbers[1])
    return f"Apparent wind {speed:.1f} kn at {angle:.0f} degrees off the bow (true: Bft {force})."


SIZES = re.compile(r"(\d+(?:\.\d+)?)\s*x\s*(\d+(?:\.\d+)?)\s*x\s*(\d+(?:\.\d+)?)")


def tank(text: str) -> tuple[str, bool]:
    """Advice, and whether something is still missing."""
    size = SIZES.search(text)
    if not size:
        return "How big is the tank? Length x width x water height in cm.", True
    water = seventh_home.litres(*(float(n) for n in size.groups()))
    warm = re.search(r"room\D{0,12}(\d+)\D+(\d+)", text[: size.start()] + text[size.end() :])
    rows = f"{water:.0f} litres net, change {water / 4:.0f} litres a week."
    if warm:
        return f"{rows} Heater: {seventh_home.heater(water, *map(float, warm.groups()))}.", False
    return f"{rows} For a heater I need room and tank temperature.", False
