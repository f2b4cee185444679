"""Extracts the visible text of a page, in one pass whatever the page. Pure."""

import html
from typing import Final

_HIDDEN: Final = ("script", "style")
_BLOCKS_TEXT: Final = "p br li ul ol div tr pre h1 h2 h3 h4 h5 h6 dt dd section"
_BLOCKS: Final = frozenset(_BLOCKS_TEXT.split())
"""Tags that begin or end a line."""

_NAME_MAX: Final = 12


def visible_text(page: str) -> str:
    """Return the page without tags, comments, scripts and styles; an unfinished one ends it."""
    low, parts, place = page.lower(), list[str](), 0
    while (start := page.find("<", place)) >= 0:
        parts.append(page[place:start])
        following = page[start + 1 : start + 2]
        if not (following.isalpha() or following in {"/", "!"}):
            parts.append("<")
            place = start + 1
            continue
        hidden = next((name for name in _HIDDEN if low.startswith(name, start + 1)), None)
        ends = start if hidden is None else low.find(f"</{hidden}", start)
        close = -1 if ends < 0 else page.find(">", ends)
        if close < 0:
            break
        name = low[start + 1 : start + 1 + _NAME_MAX].lstrip("/").split(">")[0].split()
        parts.append("\n" if name and name[0].rstrip("/") in _BLOCKS else " ")
        place = close + 1
    else:
        parts.append(page[place:])
    return html.unescape("".join(parts))
