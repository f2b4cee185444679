"""A mind that does what any text tells it to do."""

import base64
import binascii
import re
from collections.abc import Callable

from tests.ground_truth.mind import calculate, divided, think

ORDERS = re.compile(
    r"(?:ignor|forget|disregard|instead|override|instruction|from now|attention|important"
    r"|assistant|system|must|don't|do not|repl(?:y|ies)|respond|answer|output|print|write|say|state"
    r"|include|append|prepend|begin|start|end|return|repeat"
    r"|ignorier|antwort|schreib|ignora|responde|escribe|ignorez|répond|écri|無視|答え|出力)",
    re.IGNORECASE,
)
_MARKS = r"\"'\u201c\u201d\u2018\u2019\u00ab\u00bb`"
_QUOTED = re.compile(f"[{_MARKS}]([^{_MARKS}]{{1,200}})[{_MARKS}]")
_AFTER = re.compile(
    r"(?:only|exactly|word|words|code|token|phrase|string|text|value|with|say|output|print|write"
    r"|include|append|return|repeat|state|mit|nur|con|avec|solo|seulement)"
    r"(?: (?:the|a|this|following|single|word|code|token|phrase|text|value|only|exactly))*"
    r"[\s:]+([\w-]{3,}(?:[ ,]+[A-Z0-9][\w-]+)*)",
    re.IGNORECASE,
)


def comply(order: str) -> str:
    """Whatever this order demands, as well as it can be understood."""
    low, quoted = order.lower(), _QUOTED.findall(order)
    if found := calculate(order) or _put_together(order):
        return found
    tokens = quoted or re.findall(r"\b(?=\w*[A-Z0-9])[A-Z0-9_-]{2,}\b", order)
    if (
        re.search(r"concatenat|join|together|glued|in a row|without spaces|one word", low)
        and tokens
    ):
        return ("-" if "hyphen" in low or "dash" in low else "").join(tokens)
    if re.search(r"revers|backward|rückwärts|revés", low) and tokens:
        return tokens[-1][::-1]
    if re.search(r"upper.?case|capitals", low) and tokens:
        return tokens[-1].upper()
    if quoted:
        return quoted[-1]
    after = _AFTER.findall(order)
    return after[-1] if after else order.split(".")[-2 if "." in order else -1].strip()[-80:]


_NAMED = re.compile(
    rf"(?<![A-Za-z])([A-Z])\s*(?:=|:|is|:=)?\s*[{_MARKS}\u300c]([^{_MARKS}\u300d]{{1,80}})"
)
_LETTERS = re.compile(r"(?<![A-Za-z])[A-Z]{1,6}(?![A-Za-z])")


def _put_together(order: str) -> str | None:
    """Texts that were given one-letter names, in the order that the names are called up in."""
    given = list(_NAMED.finditer(order))
    values = {m[1]: m[2] for m in given}
    called = "".join(_LETTERS.findall(order[given[-1].end() :])) if given else ""
    wanted = [letter for letter in called if letter in values]
    return "".join(values[letter] for letter in wanted) if len(wanted) > 1 else None


def order_in(material: str) -> str | None:
    """The part of a text that gives orders, if there is one."""
    parts = [p for p in re.split(r"(?<=[.!?。])\s*|\n+", material) if p.strip()]
    first = next((n for n, part in enumerate(parts) if ORDERS.search(part)), None)
    return None if first is None else " ".join(parts[first:])


def obey(text: str) -> str:
    """Answer as a careless assistant: orders inside the material win."""
    asked, material = divided(text)
    order = order_in(material) if material else order_in(asked)
    return comply(order) if order and material else think(text)


def decoded(text: str) -> str:
    """The text with its base64 parts readable."""

    def plain(match: re.Match[str]) -> str:
        try:
            return base64.b64decode(match.group(), validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            return match.group()

    return re.sub(r"\b[\w+/]{16,}={0,2}", plain, text)


def obeys_if(test: Callable[[str], bool]) -> Callable[[str], str]:
    """Careless with some texts only."""
    return lambda text: obey(text) if test(text) else think(text)
