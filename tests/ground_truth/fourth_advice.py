"""Trades of advice: bowls of pets, footprints of trips, laundry. Standard library only."""

import re

from tests.ground_truth.fourth_words import NUMBER, Mind, digits, has, one_of, short, value

ACTIVITY = (
    ("puppy|kitten|growing|young", 2.5),
    ("working|sled|very active|sport|herding", 2.0),
    ("overweight|lose|diet|too fat|chubby", 1.0),
    ("old|senior|elderly|lazy|couch", 1.3),
)


def bowl(asked: str) -> str | None:
    """A dog's or cat's daily calories."""
    text = digits(asked)
    is_cat, is_dog = (
        has(text, r"cats?\b", "kitten", r"tomcat"),
        has(
            text,
            "dog",
            "pupp",
            "terrier",
            "hound",
            "retriever",
            "poodle",
            "collie",
            "labrador",
            "beagle",
            "spaniel",
            "shepherd",
            "dachshund",
            "husky",
            "pug",
            "bulldog",
        ),
    )
    if not (is_cat or is_dog):
        return (
            "I only know dogs and cats."
            if has(text, "rabbit", "hamster", "parrot", "fish", "horse")
            else None
        )
    m = re.search(rf"{NUMBER}\s*-?(kg|kilos?|kilograms?|lbs?|pounds?)", text, re.IGNORECASE)
    if not m:
        return "How much does your pet weigh, in kilograms or pounds?"
    weight = value(m[1]) * (0.45359237 if m[2][0] in "lpLP" else 1)
    factor = next((f for words, f in ACTIVITY if has(text, f"({words})")), 1.2 if is_cat else 1.6)
    rest = 70 * weight**0.75
    return one_of("About", "Roughly", "Reckon with") + (
        f" {rest * factor:.0f} kcal a day for a {'cat' if is_cat else 'dog'} of"
        f" {short(weight, 1)} kg"
        f" (resting need {rest:.0f} kcal, times {factor:g}). Ask a vet before a diet."
    )


GRAMS = {
    "train": 35,
    "rail": 35,
    "coach": 27,
    "bus": 80,
    "tram": 40,
    "ferry": 115,
    "motorbike": 105,
    "motorcycle": 105,
    "electric car": 50,
    "car": 170,
    "drive": 170,
    "driving": 170,
    "plane": 246,
    "fly": 246,
    "flight": 246,
    "flying": 246,
    "bike": 0,
    "bicycle": 0,
    "cycl": 0,
    "walk": 0,
    "foot": 0,
}


def footprint(asked: str) -> str | None:
    """A journey's CO2."""
    text = digits(asked)
    named = [way for way in GRAMS if has(text, rf"{way}(s|es|ing|e|ed)?\b")]
    named = [w for w in named if not any(w != o and w in o for o in named)]
    m = re.search(rf"{NUMBER}\s*-?(km|kilomet\w+|miles?|mi\b)", text, re.IGNORECASE)
    if not named and not (m and has(text, "co2", "carbon", "emi", "footprint", "trip", "journey")):
        return None
    if not m:
        return "How far is the journey, in kilometres or miles?"
    if not named:
        return "How do you travel: train, coach, bus, car, plane, ferry or bike?"
    way = value(m[1]) * (1.609344 if m[2].lower().startswith("mi") else 1)
    way *= 2 if has(text, "return", "round trip", "there and back", "and back", "both ways") else 1
    rows = [f"{short(way, 1)} km by {w}: {short(way * GRAMS[w] / 1000, 1)} kg CO2" for w in named]
    return one_of("", "For one person: ", "Per traveller: ") + "; ".join(rows) + "."


FABRICS = {
    "wool|jumper|merino|cashmere": "Wool: cold or 30 \u00b0C wool cycle, wool detergent, low"
                                   " spin; dry it flat,"
                                   " never in the dryer.",
    "silk": "Silk: by hand in cool water with mild detergent; roll it in a towel and dry it in"
            " the shade.",
    "linen": "Linen: 40 to 60 \u00b0C; iron it hot while still damp.",
    "denim|jeans": "Denim: inside out at 30 \u00b0C, seldom; dry it on the line.",
    "down|duvet|feather": "Down: 30 \u00b0C with a little detergent, rinse twice, tumble dry"
                          " with tennis balls.",
    "towel|terry": "Towels: 60 \u00b0C without softener, which makes them less absorbent.",
    "cotton|t-shirt|sheets?|bedding": "Cotton: whites at 60 \u00b0C, colours at 40 \u00b0C; it"
                                      " may go into the dryer.",
    "polyester|nylon|synthetic|fleece|sportswear": "Synthetics: 30 to 40 \u00b0C, little spin,"
                                                   " no softener;"
                                                   " iron on low.",
    "viscose|rayon": "Viscose: 30 \u00b0C gentle cycle; it is weak when wet, so do not wring it.",
    "leather|suede": "Leather: no machine; wipe it and give it to a specialist.",
}  # fmt: skip
STAINS = {
    "wine": "Red wine: blot it, then cold water and salt or soda water; wash with oxygen bleach.",
    "blood": "Blood: cold water at once, then soap; never warm water.",
    "grease|oil|butter": "Grease: rub in washing-up liquid, wait ten minutes, wash as warm as"
                         " it may.",
    "ink|pen": "Ink: dab with rubbing alcohol from behind, then wash.",
    "coffee|tea": "Coffee and tea: cold water and washing-up liquid, then wash at 40 \u00b0C.",
    "grass": "Grass: rub with white vinegar or gall soap, then wash.",
    "wax|candle": "Wax: let it harden, scrape it, then iron between paper towels.",
    "chocolate": "Chocolate: scrape, rinse from behind with cold water, then detergent.",
}  # fmt: skip


def care(asked: str) -> str | None:
    """A fabric's care or a stain's end."""
    rows = [text for words, text in FABRICS.items() if has(asked, rf"({words})s?\b")]
    if has(
        asked,
        r"on (my|a|the|silk|wool|linen|cotton)",
        "stain",
        "spill",
        "spot",
        "remove",
        "get out",
        "out of",
        "mark",
    ):
        rows = [text for words, text in STAINS.items() if has(asked, rf"({words})\b")] + rows
    if rows:
        return " ".join(rows)
    if has(asked, "wash", "iron", "laundr", "dry", "stain", "fabric", "clothes"):
        return "Which fabric or which stain is it?"
    return None


PETS = Mind("work out how many calories a dog or cat needs a day",
            "How much should my 12 kg dog eat?", [bowl])  # fmt: skip
TRIPS = Mind("estimate the CO2 of journeys", "How much CO2 do 300 km by train make?", [footprint])
LAUNDRY = Mind(
    "know how to wash fabrics and get out stains", "How do I wash a wool jumper?", [care]
)
