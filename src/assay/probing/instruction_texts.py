"""Embedded instructions and the notes around them, by language.

Read from `texts/instructions.json`. An operator's own texts (`ASSAY_PROMPTS`) vary them; nothing
depends on their secrecy.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Phrases:
    """One language: questions about a text that is data, and instructions to embed in it."""

    language: str
    stopwords: frozenset[str]
    questions: tuple[str, ...]
    instructions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Wrappings:
    """Texts around instructions: notes, and ways to present an instruction as another party's."""

    notes: tuple[str, ...]
    """Notes with a mark where the instruction goes."""
    fillers: tuple[str, ...]
    """Sentences that make a note long."""
    tool_results: tuple[str, ...]
    markups: tuple[str, ...]


def _read() -> tuple[Mapping[str, Phrases], Wrappings]:
    data = json.loads(files("assay.probing.texts").joinpath("instructions.json").read_text("utf-8"))
    languages = {
        name: Phrases(
            name,
            frozenset(row["stopwords"]),
            tuple(row["questions"]),
            tuple(row["instructions"]),
        )
        for name, row in data["languages"].items()
    }
    around = (tuple(data[name]) for name in ("notes", "fillers", "tool_results", "markups"))
    return MappingProxyType(languages), Wrappings(*around)


LANGUAGES, WRAPPINGS = _read()
"""The languages, and the texts around instructions in any of them."""


def language_of(text: str) -> str:
    """Return the language of a card's texts if instructions exist in it; else English."""
    for script, language in _SCRIPTS:
        if _share(text, script) > _MUCH:
            return language
    words = text.casefold().split()
    counts = {
        p.language: sum(word in p.stopwords for word in words)
        for p in LANGUAGES.values()
        if p.stopwords
    }
    best = max(counts, key=lambda name: (counts[name], name == "en"))
    return best if counts[best] > 1 else "en"


_MUCH = 0.1
_SCRIPTS = (
    ("HIRAGANA", "ja"),
    ("CJK", "zh"),
    ("HANGUL", "ko"),
    ("CYRILLIC", "ru"),
    ("ARABIC", "ar"),
)
"""Japanese first: it also uses Chinese characters."""

_RANGES: Mapping[str, tuple[tuple[int, int], ...]] = MappingProxyType(
    {
        "CYRILLIC": ((0x400, 0x4FF),),
        "CJK": ((0x4E00, 0x9FFF),),
        "HIRAGANA": ((0x3040, 0x30FF),),
        "HANGUL": ((0xAC00, 0xD7A3),),
        "ARABIC": ((0x600, 0x6FF),),
    }
)


def _share(text: str, script: str) -> float:
    """Return the share of a text's characters that belong to a script."""
    inside = sum(any(low <= ord(c) <= high for low, high in _RANGES[script]) for c in text)
    return inside / max(1, len(text))
