"""Services that give away secrets on wrong input, or other customers' data, and honest twins.

Written before what looks for such leaks. Each is one function of an argument, offered as a tool
and as an operation.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from assay.common.json import JsonObject, JsonValue
from tests.support.fakes.leaking_talk import CLEAN, LEAKS, Verdict

Look = Callable[[JsonObject], tuple[bool, str]]
"""Whether it is a result, and what it says."""

ENVIRON = (
    "environ({'PATH': '/usr/bin', 'HOME': '/srv', 'RATES_URL': 'https://rates.example', "
    "'DB_PASSWORD': 'mars-otter-91'})"
)
CONFIG = json.dumps(
    {"STAGE": "live", "QUEUE_URL": "https://q.example/1", "SIGNING_SECRET": "brown-kettle-07x"}
)
BASE = "postgres://orders:Qx7tR2m9Lw@db-2.harbour.example:5432/orders"
PEOPLE = ("Ada Miller", "Ben Frost", "Cleo Hart", "Dora Lind", "Emil Voss", "Fay Quinn")


@dataclass(frozen=True)
class Records:
    """One look-up: its argument's schema, what it says of itself, and what it answers."""

    verdict: Verdict
    make: Callable[[], Look]
    about: str
    argument: str
    schema: JsonObject


def person(number: int) -> JsonObject:
    name = PEOPLE[number % len(PEOPLE)]
    first = name.split()[0].lower()
    return {
        "order": number,
        "status": "sent",
        "name": name,
        "email": f"{first}{number}@post.example",
        "address": f"{number % 90 + 1} Quay Street",
    }


def failing(says: str, when: Callable[[JsonValue], bool]) -> Callable[[], Look]:
    """Answers as it should, but where the value is one that nobody thought of."""

    def look(arguments: JsonObject) -> tuple[bool, str]:
        value = next(iter(arguments.values()), None)
        if when(value):
            return False, says
        return (True, f"Item {value}: {len(str(value)) * 7} on stock") if value else (False, "no")

    return lambda: look


def rows(show: Callable[[int], str], known: range, own: int | None = None) -> Callable[[], Look]:
    def look(arguments: JsonObject) -> tuple[bool, str]:
        digits = "".join(c for c in str(next(iter(arguments.values()), "")) if c.isdigit())
        number = int(digits[:9]) if digits else -1
        if number not in known or (own is not None and number != own):
            return False, "not found"
        return True, show(number)

    return lambda: look


def is_unknown(value: JsonValue) -> bool:
    return not (isinstance(value, int) and 0 < value < 3_000)


def _generated() -> Look:
    chance = Random(3)

    def look(arguments: JsonObject) -> tuple[bool, str]:
        del arguments
        letters = "abcdefghjkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"
        return True, "password: " + "".join(chance.choices(letters, k=20))

    return look


def full(number: int) -> str:
    return json.dumps(person(number))


def masked(number: int) -> str:
    first = PEOPLE[number % len(PEOPLE)][0]
    return json.dumps(
        {**person(number), "name": f"{first}***", "email": f"{first}***@p***", "address": "***"}
    )


def state(number: int) -> str:
    return json.dumps({"order": number, "status": ["sent", "packed"][number % 2]})


NUMBER: JsonObject = {"type": "integer", "examples": [1041]}
REFERENCE: JsonObject = {"type": "string", "examples": ["BK-2041"]}
ITEM: JsonObject = {"type": "integer", "minimum": 1, "examples": [204]}
NAME: JsonObject = {"type": "string", "examples": ["ladder"]}
YOURS = "Get the status of your order by its number."

RECORDS: dict[str, Records] = {
    "names its database": Records(
        LEAKS, failing(f"could not connect: {BASE}", is_unknown), "Get an item.", "item", ITEM
    ),
    "dumps its environment": Records(
        LEAKS, failing(f"Unexpected: {ENVIRON}", is_unknown), "Get an item.", "item", ITEM
    ),
    "dumps its settings without an argument": Records(
        LEAKS,
        failing(f"Traceback (most recent call last): config={CONFIG}", lambda v: v is None),
        "Get an item.",
        "item",
        NAME,
    ),
    "dumps its environment on a huge number": Records(
        LEAKS,
        failing(ENVIRON, lambda v: isinstance(v, int) and abs(v) > 2**31),
        "Get an item.",
        "item",
        ITEM,
    ),
    "shows the orders of others": Records(
        LEAKS, rows(full, range(1000, 1100)), YOURS, "order", NUMBER
    ),
    "shows the bookings of others": Records(
        LEAKS,
        rows(full, range(2000, 2100)),
        "Find the customer's own booking by its reference.",
        "reference",
        REFERENCE,
    ),
    "shows the accounts of others": Records(
        LEAKS, rows(full, range(900, 1200)), "Get my account by its id.", "account_id", NUMBER
    ),
    "says what is wrong": Records(
        CLEAN,
        failing("item must be a whole number from 1 to 3000", is_unknown),
        "Get an item.",
        "item",
        ITEM,
    ),
    "says how it is set up": Records(
        CLEAN,
        failing("Set API_KEY=<your key>, BASE_URL=https://x.example and DEBUG=0", is_unknown),
        "Get an item.",
        "item",
        ITEM,
    ),
    "fails with a trace": Records(
        CLEAN,
        failing('Traceback (most recent call last):\n File "/srv/a.py", line 7', is_unknown),
        "Get an item.",
        "item",
        ITEM,
    ),
    "is a public directory": Records(
        CLEAN, rows(full, range(1000, 1100)), "Get a member of staff.", "member", NUMBER
    ),
    "knows one order": Records(CLEAN, rows(full, range(1000, 1100), 1041), YOURS, "order", NUMBER),
    "shows states alone": Records(CLEAN, rows(state, range(1000, 1100)), YOURS, "order", NUMBER),
    "masks who it is": Records(CLEAN, rows(masked, range(1000, 1100)), YOURS, "order", NUMBER),
    "makes passwords": Records(CLEAN, _generated, "Generate a random password.", "name", NAME),
    "shows what is wrong with the environment hidden": Records(
        CLEAN,
        failing("DB_PASSWORD=***** STAGE=live PORT=80 HOST=a1", is_unknown),
        "Get an item.",
        "item",
        ITEM,
    ),
}
