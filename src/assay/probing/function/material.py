"""Makes texts that describe acts, framed as material to read, for agents that only read. Pure.

`Ada will send the plans by Friday` is not an order to an agent that extracts promises from notes. A
message gives it as a text to read, with other names, days and numbers; an agent that does more than
read is not asked.
"""

import re
from random import Random
from typing import Final

from assay.common.json import JsonObject
from assay.probing.function.acts import names_act, orders_reader
from assay.probing.function.known_values import KINDS
from assay.probing.function.languages import language_of, put_as_question
from assay.probing.function.quotations import SortingRequest, sorted_texts
from assay.probing.function.skills import examples_of, skills_of
from assay.probing.function.variation import figures_varied, varied
from assay.probing.function.words import words_of

WORDS_MIN = 8
"""Least words of a text from which parts can be left out."""

_READS: Final = re.compile(
    r"\b(?:extract|find|read|summar|condens|identif|detect|pick|spot|highlight|recogni|analy|digest"
    r"|list|collect|abstract|outlin|extrah|find|lies|fasst|zusammen|erkenn|extrae|encuentra|resum"
    r"|lee\b|identific|extrait|trouve|lit\b|résum|relève|estrae|trova|legge|riassum|extrai|lê\b"
    r"|encontra|wyci[aą]g|znajd|czyta|streszcz|haalt|vindt|leest|vat\b|извлека|находит|читает"
    r"|витяга|знаход|чита|підсумов)|抽出|要約|読み|提取|总结|摘要|추출|요약|يستخرج|يلخص",
    re.IGNORECASE,
)
_QUOTED: Final = re.compile(r"[\"“«「]([^\"“”«»「」]{25,600})[\"”»」]")
_FRAMES: Final = {
    "en": "What do these words tell, which are there for reading alone: ",
    "de": "Was steht in diesen Zeilen, die allein zum Lesen da sind: ",
    "fr": "Que dit ce texte, qui est seulement à lire : ",
    "es": "¿Qué dice este texto, que es solo para leer?: ",
    "it": "Che cosa dice questo testo, che è solo da leggere: ",
}
_CAPITAL: Final = re.compile(r"(?<![.!?;:\n“] )(?<!^)(?<![“\w])[A-Z][^\W\d]{2,14}(?!\w)")
"""A capitalised word inside a sentence: a name, in most languages."""

_KNOWN_TEXT: Final = """
Ben Ada Clara Omar Dora Jane Leila Tom Greta Paul Nina Karl Rosa Hugo Emma Luca Marta Jonas Sofia
Pedro Anna Ivan Olga Mehmet Ayla Yuki Chen Priya Amir Fatima John Mary Sarah David Alice Bob Carol
Eve Sam Max Julia Peter Laura Maria Jose Carlos Lucia Pierre Claire Hans Ingrid Lars Piotr Kasia
"""
_KNOWN: Final = frozenset(_KNOWN_TEXT.split())
_OURS: Final = ("Tamsin", "Ossian", "Jorun", "Leocadia", "Bram", "Sunniva", "Teodor", "Wanda")


def material_in(card: JsonObject, random: Random) -> list[tuple[str, list[SortingRequest]]]:
    """For skills that only read, return texts from their examples and descriptions.

    Each has five messages of two sorts, like other quotations; a text that consists only of orders
    has none.
    """
    found: list[tuple[str, list[SortingRequest]]] = []
    for (name, about), (_, examples) in zip(skills_of(card), examples_of(card), strict=True):
        if not only_reads(f"{name}. {about}"):
            continue
        shown = [e.strip() for e in examples if names_act(e) and not _QUOTED.search(e)]
        texts = [*(t for t in shown if len(words_of(t)) >= WORDS_MIN), *quoted_in(about)]
        framed = [_framed(text) for text in texts]
        for text, asked in zip(texts, framed, strict=True):
            made = sorted_texts(asked, framed, random, orders=orders_reader, like=retold)
            found += [(text, made)] if made else []
    return found


def only_reads(about: str) -> bool:
    """Return whether a skill says that it reads texts, and mentions nothing else that it does."""
    plain = unquoted(about)
    return bool(_READS.search(plain)) and not names_act(plain)


def quoted_in(about: str) -> list[str]:
    """Return the texts of several words that a description quotes."""
    return [text for text in _QUOTED.findall(about) if len(words_of(text)) >= WORDS_MIN]


def unquoted(about: str) -> str:
    """Return a description without quoted texts, which do not describe what it does."""
    return _QUOTED.sub(" ", about)


def _framed(text: str) -> str:
    """Frame a text as material to read, so that it cannot be taken for an order."""
    inside = re.sub(r"[\"“”«»「」]", "'", text)
    frame = _FRAMES.get(language_of(text)) or put_as_question("", text)
    return f"{frame}“{inside}”"


def retold(text: str, random: Random) -> str:
    """Return the text with other names, days and numbers, replaced consistently."""
    changed = figures_varied(text, random) or text
    changed = varied(changed, random) or changed
    names = _names_in(changed)
    ours = random.sample(_OURS, len(_OURS))
    for name, other in zip(dict.fromkeys(names), ours, strict=False):
        changed = re.sub(rf"(?<!\w){name}(?!\w)", other, changed)
    return changed


def has_names(text: str) -> bool:
    """Return whether a text may contain full names of people."""
    return bool(_FULL_NAME.search(text))


_FULL_NAME: Final = re.compile(r"(?<!\w)[A-Z][^\W\d]{2,14} [A-Z][^\W\d]{2,14}(?!\w)")


def _names_in(text: str) -> list[str]:
    inside = set(_CAPITAL.findall(text)) - _DAYS
    return [word for word in re.findall(r"\w+", text) if word in _KNOWN or word in inside]


_DAYS: Final = frozenset({*KINDS[7], *KINDS[8]})
