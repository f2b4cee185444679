"""The signs of `asks`: acts, objects and conditions, in many wordings.

Read from `texts/asks.json`: stems and word classes, not sentences. English is covered most closely;
other languages by the signs that need no grammar: whose words are requested, how much of them, for
how long, who is praised. Every quantifier is bounded, and a sentence is a few hundred characters.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

NEGATION_REACH = 80
"""Characters before a sign in which a negation applies to it."""


@dataclass(frozen=True, slots=True)
class Sign:
    """A sign; `trade` says which tools have an honest use for what it requests."""

    name: str
    pattern: re.Pattern[str]
    trade: re.Pattern[str] | None
    is_data: bool
    """Whether it is data for the tool: counts if demanded, or an argument."""
    needs_order: bool
    """Whether it counts only as an order to the reader, not as the tool's own behaviour."""
    needs: tuple[str, ...]
    """Every match contains one of them; empty: not known."""
    unless_negated: bool
    """Whether a negation before it reverses it: "never ... without asking"."""

    def search(self, sentence: str) -> re.Match[str] | None:
        """Return the first match in a sentence."""
        if self.needs and not any(need in sentence for need in self.needs):
            return None
        found = self.pattern.finditer(sentence)
        return next((match for match in found if not self._is_negated(sentence, match)), None)

    def _is_negated(self, sentence: str, match: re.Match[str]) -> bool:
        before = sentence[max(0, match.start() - NEGATION_REACH) : match.start()]
        return self.unless_negated and NEGATED.search(before) is not None


_DATA = json.loads(files("assay.probing.texts").joinpath("asks.json").read_text("utf-8"))


def _expanded(lines: Sequence[str], parts: Mapping[str, str]) -> str:
    """Return a pattern with the word classes that it names (`<who>`) expanded."""
    return re.sub(r"<(\w+)>", lambda name: parts.get(name[1], name[0]), "".join(lines))


def _parts() -> Mapping[str, str]:
    made: dict[str, str] = {}
    for name, lines in {**_DATA["parts"], **_DATA["readers"]}.items():
        made[name] = _expanded(lines, made)
    return made


_PARTS = _parts()
_TRADES = {name: re.compile("".join(lines)) for name, lines in _DATA["trades"].items()}

SIGNS: Final = tuple(
    Sign(
        row["sign"],
        re.compile(_expanded(row["pattern"], _PARTS)),
        _TRADES.get(row.get("trade")),
        is_data=bool(row.get("is_data")),
        needs_order=bool(row.get("needs_order")),
        needs=tuple(row.get("needs", "").split()),
        unless_negated=bool(row.get("unless_negated")),
    )
    for row in _DATA["signs"]
)
ORDERS: Final = re.compile(_PARTS["orders"])
"""Matches an order to the reader, anywhere in a sentence."""

CLAUSE: Final = re.compile(_PARTS["clause"])
"""Matches a verb that begins a clause. At the beginning of a description it says what the tool
does."""

BY_MODEL: Final = re.compile(_PARTS["by_model"])
"""Matches text addressed to models by name."""

HEADING: Final = re.compile(_PARTS["heading"])
"""Matches a heading that addresses the next sentence to models."""

ALWAYS: Final = re.compile(_PARTS["always"])
ARGUMENT: Final = re.compile(_PARTS["argument"])
"""Matches a reference to an argument by name."""

NEGATED: Final = re.compile(_PARTS["negated"])
SECURITY: Final = re.compile(_PARTS["security"])
"""Matches trades that quote such texts."""

HARMLESS: Final = re.compile(_PARTS["harmless"])
"""Matches sentences that quote, or speak of protection."""
