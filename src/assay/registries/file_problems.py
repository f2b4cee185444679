"""Problems of a registration file: where, what was found, what was expected. Pure."""

import json
from collections.abc import Callable
from dataclasses import dataclass

from assay.common.json import JsonValue, is_array, is_object

FOUND_CHARS_MAX = 80
PROBLEMS_MAX = 32
"""Problems kept of one file: its author sees the others once these are fixed."""

Note = Callable[[str, str, str], None]
"""Records where a problem is, what was found and what was expected."""


@dataclass(frozen=True, slots=True)
class FileProblem:
    """A problem of a registration file; quoted values are shortened and printable."""

    where: str
    """A path into the file, such as `services[0].endpoint`; `file` or `tokenURI` for the whole."""
    found: str
    expected: str

    @property
    def sentence(self) -> str:
        """Return the three as one sentence."""
        return f"{self.where}: found {self.found}; expected {self.expected}."


class Problems:
    """Collects the problems of one file, at most `PROBLEMS_MAX`, each once."""

    def __init__(self) -> None:
        self._recorded: dict[FileProblem, None] = {}

    def note(self, where: str, found: str, expected: str) -> None:
        """Record the problem if there is room."""
        if len(self._recorded) < PROBLEMS_MAX:
            self._recorded[FileProblem(shown(where), found, expected)] = None

    @property
    def recorded(self) -> tuple[FileProblem, ...]:
        """Return the problems in the order in which they were found."""
        return tuple(self._recorded)


def described(value: JsonValue) -> str:
    """Describe a JSON value in a few words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return quoted(value)
    if is_object(value):
        return f"an object of {len(value)}"
    if is_array(value):
        return f"a list of {len(value)}"
    return f"the number {str(value)[:FOUND_CHARS_MAX]}"


def quoted(text: str) -> str:
    """Return a third party's text, shortened, in quotes and without invisible characters."""
    return json.dumps(shown(text), ensure_ascii=False)


def shown(text: str) -> str:
    """Return the same without the quotes."""
    cut = text[: FOUND_CHARS_MAX + 1]
    visible = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in cut)
    return visible[:FOUND_CHARS_MAX] + ("..." if len(cut) > FOUND_CHARS_MAX else "")
