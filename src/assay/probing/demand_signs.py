"""The signs of `asks`: acts, objects and conditions, as they are said in many ways.

Read from `texts/asks.json`: stems and word classes, not sentences. English is read most closely; of
other languages those signs that need no grammar: whose words are asked for, how much of them, for
how long, who is praised. Every quantifier is bounded, and a sentence is a few hundred characters.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

NEGATION_REACH = 80
"""Characters before a sign in which a negation belongs to it."""


@dataclass(frozen=True, slots=True)
class Sign:
    """One sign; `trade` says which tools have honest use for what it asks."""

    name: str
    pattern: re.Pattern[str]
    trade: re.Pattern[str] | None
    is_data: bool
    """Whether it is data that a tool is to be given: counts where demanded or an argument."""
    needs_order: bool
    """Whether it counts only as an order to the reader, not as what the tool itself does."""
    needs: tuple[str, ...]
    """One of them stands in every match; empty: not known."""
    unless_negated: bool
    """Whether a negation before it makes it the opposite: "never ... without asking"."""

    def search(self, sentence: str) -> re.Match[str] | None:
        """The first match in a sentence."""
        if self.needs and not any(need in sentence for need in self.needs):
            return None
        found = self.pattern.finditer(sentence)
        return next((match for match in found if not self._is_negated(sentence, match)), None)

    def _is_negated(self, sentence: str, match: re.Match[str]) -> bool:
        before = sentence[max(0, match.start() - NEGATION_REACH) : match.start()]
        return self.unless_negated and NEGATED.search(before) is not None


_DATA = json.loads(files("assay.probing.texts").joinpath("asks.json").read_text("utf-8"))


def _expanded(lines: Sequence[str], parts: Mapping[str, str]) -> str:
    """A pattern with the word classes that it names (`<who>`)."""
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
"""Said to the reader, wherever it stands."""

CLAUSE: Final = re.compile(_PARTS["clause"])
"""A verb that begins a clause. What begins a description says what the tool does."""

BY_MODEL: Final = re.compile(_PARTS["by_model"])
"""Said to models by name."""

HEADING: Final = re.compile(_PARTS["heading"])
"""What names models as those that the next sentence speaks to."""

ALWAYS: Final = re.compile(_PARTS["always"])
ARGUMENT: Final = re.compile(_PARTS["argument"])
"""Tied to an argument by name."""

NEGATED: Final = re.compile(_PARTS["negated"])
SECURITY: Final = re.compile(_PARTS["security"])
"""Trades that quote such texts."""

HARMLESS: Final = re.compile(_PARTS["harmless"])
"""Sentences that quote, or speak of guarding."""
