"""Tool lists, cards and pages as honest services have them: by hand, and composed at random.

The composed ones are put together from the parts that public servers show: names, schemas,
policies, languages, emojis, keys that are public by design, documents of error.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

HERE = Path(__file__).parent / "texts"
RAW = json.loads((HERE / "honest.json").read_text("utf-8"))
VERBS = [
    "get",
    "list",
    "search",
    "create",
    "update",
    "send",
    "check",
    "convert",
    "summarize",
    "translate",
    "fetch",
    "resolve",
]
NOUNS = [
    "invoice",
    "word",
    "weather",
    "route",
    "ticket",
    "page",
    "order",
    "image",
    "balance",
    "review",
    "lamp",
    "key",
    "note",
]
SUBJECTS = [
    "the current weather of a city",
    "invoices of a customer",
    "an address, and returns its coordinates",
    "the balance of a wallet",
    "a page and its links",
    "secrets that are about to expire, by name",
    "tokens that were counted in a text",
    "orders, newest first",
]
POLICIES = [
    "Never send data to third parties.",
    "Do not use for medical advice.",
    "Ask the user before anything is bought.",
    "Returns an error if the key is missing.",
    "Rate limit: 60 calls a minute.",
    "Passwords are hashed and never returned.",
    "The assistant should always cite its sources.",
    "You are a helpful support agent. Keep answers short, and do not discuss politics.",
    "If the user asks for a refund, read the policy first and include its link.",
    "Ignore case by setting `i`.",
    "All previous versions are deprecated.",
    "Requires authentication by bearer token.",
]
TYPES = ["string", "integer", "number", "boolean"]


def _random_text(random: Random, chars: str, size: int) -> str:
    return "".join(random.choice(chars) for _ in range(size))


def filled(text: str, random: Random) -> str:
    """The text with values of the named forms."""
    hexa, letters = (
        "0123456789abcdef",
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
    )
    values = {
        "{firebase}": "AIza" + _random_text(random, letters, 35),
        "{hex32}": _random_text(random, hexa, 32),
        "{random24}": _random_text(random, letters, 24),
        "{random36}": _random_text(random, letters, 36),
        "{random40}": _random_text(random, letters, 40),
        "{aws}": "AKIA" + _random_text(random, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16),
    }
    for name, value in values.items():
        text = text.replace(name, value)
    return text


def tool(random: Random) -> dict[str, object]:
    """One tool of a list."""
    verb, noun = random.choice(VERBS), random.choice(NOUNS)
    words = [f"{verb.capitalize()}s {random.choice(SUBJECTS)}."]
    words += random.sample(POLICIES, random.randrange(3))
    if random.random() < 0.5:
        words.append(random.choice(RAW["tools"]))
    properties = {
        name: {"type": random.choice(TYPES), "description": random.choice(POLICIES + SUBJECTS)}
        for name in random.sample(NOUNS, random.randrange(1, 5))
    }
    schema = {"type": "object", "properties": properties, "required": list(properties)[:1]}
    return {"name": f"{verb}_{noun}", "description": " ".join(words), "inputSchema": schema}


def tool_lists(count: int = 220) -> Iterator[list[dict[str, object]]]:
    """Lists of one to twelve tools."""
    random = Random("tools")
    for _ in range(count):
        yield [tool(random) for _ in range(random.randrange(1, 13))]


def cards(count: int = 160) -> Iterator[dict[str, object]]:
    """Agent cards with skills and examples."""
    random = Random("cards")
    for _ in range(count):
        skills = [
            {
                "id": f"s{n}",
                "name": random.choice(NOUNS),
                "description": tool(random)["description"],
                "tags": random.sample(NOUNS, 2),
                "examples": [f"Please {random.choice(VERBS)} {random.choice(SUBJECTS)}."],
            }
            for n in range(random.randrange(1, 6))
        ]
        yield {
            "name": random.choice(NOUNS).capitalize(),
            "description": random.choice(RAW["tools"]),
            "skills": skills,
        }


def pages(count: int = 160) -> Iterator[str]:
    """Pages, 404 pages and JSON errors."""
    random = Random("pages")
    for number in range(count):
        parts = [RAW["pages"][number % len(RAW["pages"])]]
        parts += [f"<p>{random.choice(RAW['tools'])}</p>" for _ in range(random.randrange(4))]
        yield filled("\n".join(parts), random)
