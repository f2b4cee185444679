"""What a reader sees of a page, in one pass: no page makes it slow. Pure."""

import html
from typing import Final

_HIDDEN: Final = ("script", "style")


def visible_text(page: str) -> str:
    """The page without tags, comments, scripts and styles; an unfinished one ends it."""
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
        parts.append(" ")
        place = close + 1
    else:
        parts.append(page[place:])
    return html.unescape("".join(parts))
