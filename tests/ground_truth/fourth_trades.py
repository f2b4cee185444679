"""Trades of sums: recipes, bills, running, paint, parcels. No library beyond the standard one."""

import re

from tests.ground_truth.fourth_words import NUMBER, digits, has, material, one_of, short, value

UNITS = (r"kg|g|grams?|ml|litres?|liters?|l|tbsp|tablespoons?|tsp|teaspoons?|cups?|oz|lb"
         r"|pinch(?:es)?"
         r"|cloves?|slices?|cans?|tins?")  # fmt: skip
PEOPLE = r"(?:people|persons?|servings?|portions?|guests?|eaters?|diners?)"
TIMES = {"double": 2.0, "twice": 2.0, "triple": 3.0, "treble": 3.0, "quadruple": 4.0, "halve": 0.5,
         "half": 0.5}  # fmt: skip


def _factor(text: str) -> tuple[float, str, str]:
    """How many times the recipe, for whom, and the text without that."""
    need, is_for = (
        r"(?:for|need|want|feed|cook for|serve|make)",
        (r"(?:serves|is for|was for|written for|made for|meant for|feeds|makes)"),
    )
    both = rf" {NUMBER}(?: {PEOPLE})?"
    ways = (
        (rf"from{both}(?P<mid>) (?:to|up to|down to){both}", False),
        (rf"for{both}(?P<mid>) (?:instead of|rather than|not){both}", True),
        (rf"{is_for}{both}(?P<mid>.{{0,400}}?){need}{both}", False),
        (rf"{need}{both}(?P<mid>.{{0,400}}?){is_for}{both}", True),
    )
    for pattern, swapped in ways:
        m = re.search(pattern, text, re.IGNORECASE | re.DOTALL)
        if m and value(m[1]) and value(m[3]):
            old, new = (m[3], m[1]) if swapped else (m[1], m[3])
            rest = f"{text[: m.start()]} {m['mid']} {text[m.end() :]}"
            return value(new) / value(old), f" for {new}", rest
    factor, whom, rest = _counted(text)
    if factor:
        return factor, whom, rest
    m = re.search(rf"(?:by|times|x) {NUMBER}|{NUMBER} times", text, re.IGNORECASE)
    if m:
        return value(m[1] or m[2]), "", text.replace(m[0], " ")
    for word, times in TIMES.items():
        if has(text, word + r"\b"):
            return times, "", re.sub(rf"(?i)\b{word}\b", " ", text)
    return 0.0, "", text


def _counted(text: str) -> tuple[float, str, str]:
    """The same, where two numbers of people stand anywhere in it."""
    named = [
        *re.finditer(
            rf"(?:\b(?:for|to|serves|feeds|into one for) )?{NUMBER} {PEOPLE}"
            rf"|\b(?:for|serves|feeds) {NUMBER}\b(?! ?(?:{UNITS})\b)(?= |,|\.|:|\)|\?|$)",
            text,
            re.IGNORECASE,
        )
    ]
    if len(named) < 2:
        return 0.0, "", text
    numbers = [value(m[1] or m[2]) for m in named]
    words = r"(?i)(recipe|serves|is|if|takes?|original\w*|written|made|feeds)\W+(\w+ )?(for )?$"
    based = [bool(re.search(words, text[: m.start()] + m[0].split()[0] + " ")) for m in named]
    base = based.index(True) if True in based else 0
    other = next(n for n in range(len(named)) if n != base)
    for m in reversed(named):
        text = f"{text[: m.start()]} , {text[m.end() :]}"
    return numbers[other] / (numbers[base] or 1), f" for {short(numbers[other])}", text


def _listed(text: str) -> list[tuple[float, str, str]]:
    """Amount, unit and name of each ingredient."""
    found = re.findall(
        rf"{NUMBER}\s*((?:{UNITS})\b)?\s*(?:of )?([a-z]['a-z -]*?)(?=[,;:.?!\n'\"\u201d]|$| and )",
        text,
        re.IGNORECASE,
    )
    return [(value(n), unit, name.strip()) for n, unit, name in found if name.strip()]


def scale_recipe(asked: str) -> str | None:
    """A recipe for another number of people."""
    text = re.sub(r"\u00bd|\b1/2\b", "0.5", asked)
    text = re.sub(r"\u00bc|\b1/4\b", "0.25", re.sub(r"\u00be|\b3/4\b", "0.75", text))
    factor, whom, rest = _factor(digits(text))
    foods = max(_listed(material(rest)), _listed(rest), key=len)
    if not foods:
        if has(text, "recipe", "scale", "serv", "ingredient"):
            return "Gladly. Which ingredients, with their amounts, and for how many people?"
        return None
    if not factor:
        is_ours = has(text, "recipe", "scale", "serv", "ingredient", "cook", "bak")
        return "For how many people is that recipe, and for how many do you need it?" * is_ours
    made = [f"{short(n * factor)} {unit + ' ' if unit else ''}{name}" for n, unit, name in foods]
    head = one_of("Here it is", "Scaled", "That makes") + f"{whom} (x{short(factor)}): "
    return head + "; ".join(made) + "."


def split_bill(asked: str) -> str | None:
    """A bill shared out, with a tip."""
    text = digits(asked)
    if not has(text, "split", "shar", "divid", "each", "tip", "bill", "owe", "pay",
               "dinner", "lunch", "restaurant", "gratuity", "cost"):  # fmt: skip
        return None
    tip = re.search(rf"{NUMBER}\s*(?:%|percent|per cent)", text)
    text = text.replace(tip[0], " ") if tip else text
    who = re.search(
        rf"(?:between|among|amongst|by|for|we are|there are|were|party of|across|with)"
        rf"(?: the| us| all)* {NUMBER}\b(?!\.)|{NUMBER} (?:ways|people|persons|friends|of us|diners"
        rf"|guests|colleagues|flatmates|adults)",
        text,
        re.IGNORECASE,
    )
    text = text.replace(who[0], " ") if who else text
    money = re.search(NUMBER, text)
    names = re.search(r"(?:among|between|with) ((?:[A-Z]\w+(?:, and |, | and | & )?){2,})", text)
    if not money:
        return "How much is the bill, and how many of you share it?"
    rate = value(tip[1]) if tip else 0.0
    total = round(value(money[1]) * (1 + rate / 100), 2)
    with_tip = f" with the {short(rate)}% tip" if tip else ""
    if not who and not names:
        return f"The bill comes to {total:.2f}{with_tip}. Among how many should I split it?"
    people = (
        int(value(who[1] or who[2]))
        if who
        else len(re.findall(r"[A-Z]\w+", names[1] if names else ""))
    )
    if people < 1:
        return "I need at least one person to pay."
    share = int(total * 100 / people + 1e-6)
    left = round(total * 100) - share * people
    odd = f" {left} of you pay one cent more." if left else ""
    return one_of(
        f"Each of the {people} pays {share / 100:.2f}; the total{with_tip} is {total:.2f}.{odd}",
        (
            f"That is {share / 100:.2f} per person (total{with_tip}: {total:.2f}, {people}"
            f" people).{odd}"
        ),
    )


MILE = 1.609344
RACES = {"half marathon": 21.0975, "half-marathon": 21.0975, "marathon": 42.195, "parkrun": 5.0}


def _clock(seconds: float) -> str:
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"


def _seconds(said: str) -> float:
    parts = [int(p) for p in said.split(":")]
    return (
        parts[0] * 60 + parts[1] if len(parts) == 2 else parts[0] * 3600 + parts[1] * 60 + parts[2]
    )


def _pace(text: str) -> tuple[float, str]:
    """Seconds for a kilometre where one is named, and the text without it."""
    per = (
        r"\s*(?:min(?:utes?)?)?\s*(?:/|per |a |an |each |every )\s*(km|kilomet\w+|k\b|miles?|mi\b)"
    )
    speed = re.search(
        r"(\d+(?:\.\d+)?) ?(km/h|kmh|kph|mph|km an hour|miles an hour)", text, re.IGNORECASE
    )
    if speed and float(speed[1]):
        way = float(speed[1]) * (MILE if speed[2].lower().startswith("m") else 1)
        return 3600 / way, text.replace(speed[0], " ")
    m = re.search(rf"(\d+:\d\d|\d+(?:\.\d+)?){per}", text, re.IGNORECASE)
    if not m:
        return 0.0, text
    spent = _seconds(m[1]) if ":" in m[1] else float(m[1]) * 60
    return spent / (MILE if m[2].lower().startswith("mi") else 1), text.replace(m[0], " ")


def _way(text: str) -> float:
    m = re.search(r"(\d+(?:\.\d+)?)\s*(?:-\s*)?(kilomet\w+|km?\b|miles?|mi\b|met(?:er|re)s?\b|m\b)",
                  text, re.IGNORECASE)  # fmt: skip
    if m:
        unit = m[2].lower()
        return float(m[1]) * (MILE if unit.startswith("mi") else 1 if unit[0] == "k" else 0.001)
    return next((km for name, km in RACES.items() if name in text.lower()), 0.0)


def _time(text: str) -> float:
    m = re.search(r"\b\d+:\d\d(?::\d\d)?\b", text)
    if m:
        # Two parts are minutes and seconds, as runners write them.
        return _seconds(m[0])
    hours = re.search(r"(\d+(?:\.\d+)?)\s*(?:hours?|hrs?|h)\b", text, re.IGNORECASE)
    minutes = re.search(r"(\d+(?:\.\d+)?)\s*min", text, re.IGNORECASE)
    return (float(hours[1]) * 3600 if hours else 0) + (float(minutes[1]) * 60 if minutes else 0)


def run_pace(asked: str) -> str | None:
    """Two of distance, time and pace give the third."""
    pace, text = _pace(digits(asked))
    way, spent = _way(text), _time(text)
    if way and spent:
        pace = spent / way
        return one_of("That is", "You would run", "It works out at") + (
            f" {_clock(pace)} min/km, or {_clock(pace * MILE)} min/mile ({3600 / pace:.1f} km/h)."
        )
    if way and pace:
        return f"At {_clock(pace)} min/km, {short(way, 3)} km takes {_clock(way * pace)}."
    if spent and pace:
        return f"In {_clock(spent)} at {_clock(pace)} min/km you cover {spent / pace:.2f} km."
    if pace:
        return (f"{_clock(pace)} min/km is {_clock(pace * MILE)} min/mile,"
                f" or {3600 / pace:.1f} km/h.")  # fmt: skip
    if has(text, "pace", "run", "race", "marathon", "jog"):
        return "I need two of the three: the distance, the time, or the pace."
    return None


def paint_needed(asked: str) -> str | None:
    """Litres for walls."""
    text = digits(asked)
    if not has(text, "paint", "coat", "litre", "liter", "wall", "emulsion", "primer"):
        return None
    coats = re.search(r"(\d+) ?coats?", text)
    number = int(coats[1]) if coats else 2 if has(text, "twice", "double coat") else 1
    doors = sum(
        int(n)
        for n in re.findall(r"(\d+|\ba\b) doors?", text.replace(" a door", " 1 door"))
        if n.isdigit()
    )
    panes = sum(
        int(n) for n in re.findall(r"(\d+) windows?", text.replace(" a window", " 1 window"))
    )
    area = re.search(rf"{NUMBER}\s*(?:m2|m\u00b2|square met\w+|sqm|sq m)", text, re.IGNORECASE)
    sides = re.search(
        rf"{NUMBER}\s*(?:m|met\w+)?\s*(?:by|x|\u00d7|\*)\s*{NUMBER}", text, re.IGNORECASE
    )
    high = re.search(
        rf"{NUMBER}\s*(?:m|met\w+)?\s*(?:high|tall|in height|ceiling)"
        rf"|(?:height|ceiling\w*)(?: of| is|:)*(?: at)? {NUMBER}",
        text,
        re.IGNORECASE,
    )
    one = re.search(rf"{NUMBER}\s*(?:m|met\w+)?\s*(?:long|wide)", text, re.IGNORECASE)
    whole = re.search(
        rf"{NUMBER} ?m? ?[x\u00d7*] ?{NUMBER} ?m? ?[x\u00d7*] ?{NUMBER}", text, re.IGNORECASE
    )
    if area:
        walls = value(area[1])
    elif whole:
        walls = 2 * (value(whole[1]) + value(whole[2])) * value(whole[3])
    elif one and high and not sides:
        walls = value(one[1]) * value(high[1] or high[2])
    elif sides and high:
        walls = 2 * (value(sides[1]) + value(sides[2])) * value(high[1] or high[2])
    elif sides:
        return "How high is the room, so that I can work out the walls?"
    else:
        return "What size is the room (length, width, height), or how many square metres of wall?"
    walls = max(0.0, walls - 1.9 * doors - 1.4 * panes)
    litres = walls * number / 10
    return (f"{short(walls, 1)} m\u00b2 of wall, {number} coat{'s' * (number > 1)}, at 10 m\u00b2 a"
            f" litre: {short(litres, 1)} litres.")  # fmt: skip


def parcel_weight(asked: str) -> str | None:
    """What a parcel counts for."""
    text = re.sub(r"(?i) (long|wide|high|deep|tall)\b(,? and|,)", " x", digits(asked))
    m = re.search(rf"{NUMBER}\s*(?:cm|in)?\s*(?:x|by|\u00d7|\*)\s*{NUMBER}\s*(?:cm|in)?\s*(?:x"
                  rf"|by|\u00d7|\*)"
                  rf"\s*{NUMBER}\s*(cm|in(?:ch(?:es)?)?|mm|m\b)?", text, re.IGNORECASE)  # fmt: skip
    if not m:
        asks = has(text, "parcel", "box", "package", "volumetric", "dimensional", "carton")
        return (
            "Please give length, width and height, for example 40 x 30 x 20 cm." if asks else None
        )
    unit = (m[4] or "cm").lower()
    each = 2.54 if unit.startswith("in") else {"mm": 0.1, "m": 100.0}.get(unit, 1.0)
    divisor = re.search(r"(?:divisor|factor|divided by)(?: of)? (\d{4})", text)
    by = int(divisor[1]) if divisor else 5 * 1000
    volume = value(m[1]) * value(m[2]) * value(m[3]) * each**3 / by
    scale = re.search(rf"{NUMBER}\s*(kg|kilos?|kilograms?|lbs?|pounds?)\b", text, re.IGNORECASE)
    said = f"Volumetric weight {short(volume)} kg (cm\u00b3 / {by})"
    if not scale:
        return said + ". Tell me the actual weight and I say which one counts."
    real = value(scale[1]) * (0.45359237 if scale[2][0] in "lpLP" else 1)
    return f"{said}, actual {short(real)} kg: the carrier charges {short(max(volume, real))} kg."
