"""Generates texts that match an untrusted regular expression, without running it. Pure.

It supports the common syntax of JSON Schema's `pattern`: characters, classes, groups, alternatives
and counts. For anything else it generates nothing.
"""

import string
from dataclasses import dataclass
from random import Random
from typing import Final

PATTERN_CHARS_MAX = 200
TEXT_CHARS_MAX = 80
DEPTH_MAX = 6
PIECES_MAX = 500
"""Characters, classes and groups generated from one pattern, repetitions counted."""

MORE_MAX = 6
"""Repetitions beyond the least, if the bound is missing or high."""

_ANY: Final = string.ascii_lowercase + string.digits
_ESCAPED: Final = {
    "d": string.digits,
    "w": string.ascii_lowercase + string.digits,
    "s": " ",
}
_UNREAD: Final = frozenset("DWSBpPkAZz123456789xuc")
_SPECIAL: Final = frozenset("|)*+?{")


class _Unreadable(Exception):
    """The pattern uses unsupported syntax."""


def text_for(pattern: str, random: Random) -> str | None:
    """Return a matching text; None if the pattern is too long or unsupported."""
    if len(pattern) > PATTERN_CHARS_MAX:
        return None
    reader = _Reader(pattern, random)
    try:
        text = reader.alternatives(0)
    except (_Unreadable, IndexError, ValueError):
        return None
    return text if reader.at == len(pattern) and len(text) <= TEXT_CHARS_MAX else None


@dataclass(slots=True)
class _Reader:
    pattern: str
    random: Random
    at: int = 0
    pieces: int = 0

    def alternatives(self, depth: int) -> str:
        """Generate one of the alternatives up to the end of a group."""
        if depth > DEPTH_MAX:
            raise _Unreadable
        made = [self._sequence(depth)]
        while self._peek() == "|":
            self.at += 1
            made.append(self._sequence(depth))
        return self.random.choice(made)

    def _peek(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def _sequence(self, depth: int) -> str:
        text = ""
        while (char := self._peek()) and char not in "|)":
            start = self.at
            piece = self._piece(depth)
            count = self._count()
            after = self.at
            for number in range(count):
                self.at = start
                text += self._piece(depth) if number else piece
                if len(text) > TEXT_CHARS_MAX:
                    raise _Unreadable
            self.at = after
        return text

    def _piece(self, depth: int) -> str:
        """Generate one character, class or group."""
        self.pieces += 1
        if self.pieces > PIECES_MAX:
            raise _Unreadable
        char = self.pattern[self.at]
        self.at += 1
        if char in "^$":
            return ""
        if char == "(":
            return self._group(depth)
        if char == "[":
            return self.random.choice(self._class())
        if char == "\\":
            return self.random.choice(self._escape() or [""])
        if char in _SPECIAL:
            raise _Unreadable
        return self.random.choice(_ANY) if char == "." else char

    def _group(self, depth: int) -> str:
        if self._peek() == "?":
            opening = self.pattern[self.at : self.at + 40]
            if opening.startswith("?:"):
                self.at += 2
            elif opening.startswith(("?P<", "?<")) and opening[2:3] not in {"=", "!"}:
                self.at += opening.index(">") + 1
            else:
                raise _Unreadable
        made = self.alternatives(depth + 1)
        if self._peek() != ")":
            raise _Unreadable
        self.at += 1
        return made

    def _escape(self) -> str:
        """Return the characters that an escape stands for."""
        char = self.pattern[self.at]
        self.at += 1
        if char in _UNREAD:
            raise _Unreadable
        return "" if char == "b" else _ESCAPED.get(char, char)

    def _class(self) -> str:
        """Return the characters of a class."""
        if self._peek() == "^":
            raise _Unreadable
        found = ""
        while self._peek() != "]":
            char = self.pattern[self.at]
            self.at += 1
            if char == "\\":
                found += self._escape()
            elif self._peek() == "-" and self.pattern[self.at + 1] != "]":
                last = self.pattern[self.at + 1]
                self.at += 2
                found += "".join(map(chr, range(ord(char), min(ord(last), ord(char) + 100) + 1)))
            else:
                found += char
        self.at += 1
        if not found:
            raise _Unreadable
        return found

    def _count(self) -> int:
        """Return how often to repeat the piece before."""
        char = self._peek()
        low, high = {"?": (0, 1), "*": (0, MORE_MAX), "+": (1, MORE_MAX)}.get(char, (1, 1))
        if char == "{":
            inside, closed, _ = self.pattern[self.at + 1 :].partition("}")
            least, comma, most = inside.partition(",")
            if not closed:
                raise _Unreadable
            low = int(least or 0)
            high = (int(most) if most else low + MORE_MAX) if comma else low
            self.at += len(inside) + 1
        elif char not in {"?", "*", "+"} or not char:
            return 1
        self.at += 1
        if self._peek() in {"?", "+"}:
            self.at += 1
        return self.random.randint(low, min(high, low + MORE_MAX, TEXT_CHARS_MAX + 1))
