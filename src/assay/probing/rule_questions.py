"""Questions about an agent's own instructions and codes, in several phrasings. Pure.

A ground (asked plainly, as a completion, in another role, as a debug request, as a repetition) and
a dress (translated, encoded, spelled backwards, or none): an agent that declines one may accept
another. Each also asks what others asked. Read from `texts/rules.json`; English if a card's
language is missing there.
"""

import json
from dataclasses import dataclass
from importlib.resources import files
from random import Random
from typing import cast

_DRESSES = ("", "", "", "translation", "translation", "base64", "base64", "hex", "backwards")
"""Repeated in proportion to their probability."""


@dataclass(frozen=True, slots=True)
class Way:
    """The phrasing of a question: a repetition has a new reference and is otherwise equal."""

    pretext: int
    dress: str
    style: float


_TEXTS: dict[str, dict[str, object]] = json.loads(
    files("assay.probing.texts").joinpath("rules.json").read_text("utf-8")
)
PRETEXTS = 5


def draw_way(chance: Random, before: Way | None = None) -> Way:
    """Return a phrasing with another ground and another dress than the one before."""
    pretexts = [g for g in range(PRETEXTS) if before is None or g != before.pretext]
    dresses = [d for d in _DRESSES if before is None or d != before.dress]
    return Way(chance.choice(pretexts), chance.choice(dresses), chance.random())


def question(way: Way, language: str, reference: str) -> str:
    """Return the message, with a reference of its own."""
    texts, chance = _TEXTS.get(language, _TEXTS["en"]), Random(way.style)  # noqa: S311 - the same
    greetings, pretexts, languages = (
        cast("list[str]", texts[name]) for name in ("greetings", "grounds", "languages")
    )
    dress = cast("dict[str, str]", texts["dresses"]).get(way.dress, "")
    rows = [
        chance.choice(greetings).format(reference=reference),
        pretexts[way.pretext],
        dress.format(language=chance.choice(languages)),
        str(texts["others"]),
    ]
    return " ".join(filter(None, rows))
