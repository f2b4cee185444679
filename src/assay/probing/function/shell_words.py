"""Splits a command line in a text into words. Pure; linear in its characters.

Source: POSIX.1-2024, Shell Command Language, section 2.2 (quoting), as far as pages use it.
"""

from typing import Final

LINE_CHARS_MAX: Final = 2_000
_ENDS: Final = ("\n", "|", ";", "`", "&&", "<<", "$(", " >", " #")
_ESCAPED: Final = {"n": "\n", "t": "\t"}


def words_of_line(text: str, start: int) -> tuple[list[str], int]:
    """Return the words from here to the end of the line, and the position of that end.

    None for a line with an unterminated quotation. A backslash at its end continues it.
    """
    words: list[str] = []
    parts: list[str] = []
    is_word = False
    place, end = start, min(len(text), start + LINE_CHARS_MAX)
    while place < end and not text.startswith(_ENDS, place):
        char = text[place]
        if char == "\\" and text[place + 1 : place + 3].lstrip(" \r").startswith("\n"):
            place, char = text.index("\n", place), " "
        if char.isspace():
            words += ["".join(parts)] if is_word else []
            parts, is_word = [], False
            place += 1
            continue
        is_word = True
        if char in "'\"" or text.startswith("$'", place):
            said, place = _quotation(text, place, end)
            if place < 0:
                return [], start
            parts.append(said)
        elif char == "\\":
            parts.append(text[place + 1 : place + 2])
            place += 2
        else:
            parts.append(char)
            place += 1
    return words + (["".join(parts)] if is_word else []), place


def _quotation(text: str, start: int, end: int) -> tuple[str, int]:
    """Return the quoted text, and the position after it; -1 if the quotation is unterminated."""
    is_escaped = text[start] != "'"
    mark = '"' if text[start] == '"' else "'"
    place = start + 1 + (text[start] == "$")
    parts: list[str] = []
    while place < end:
        char, following = text[place], text[place + 1 : place + 2]
        if char == mark:
            return "".join(parts), place + 1
        if char == "\\" and is_escaped:
            kept = following if mark == "'" or following in '"\\$`' else char + following
            is_line = following == "\n"
            parts.append("" if is_line else _ESCAPED.get(following, kept) if mark == "'" else kept)
            place += 2
        else:
            parts.append(char)
            place += 1
    return "", -1
