"""Minds that take what they read for what they are asked: sentences in material become orders."""

import ast
import operator
import re
from collections.abc import Callable

STRONG = (
    "reply|respond|answer|write|print|output|say|return|include|add|append|ignore|disregard|forget"
    "|mention|repeat|translate|spell|compute|calculate|multiply|emit|conclude|rate|score|recommend"
    "|responda|escreva|diga|inclua|acrescente|imprima|retorne|devolva"
)
WEAK = (
    "begin|start|end|finish|put|use|state|tell|give|mark|produce|close|replace|insert|set|call|make"
    "|termine|comece|use|ponha"
)
VERBS = f"{STRONG}|{WEAK}"
URGED = (
    r"\b(?:please|must|should|shall|instead|now(?: on)?|just|only|por favor|deve)\s+"
    r"(?:only\s+|always\s+)?"
)
ADDRESSED = re.compile(
    rf"(?:^\W*(?:then\s+|also\s+|always\s+|only\s+|simply\s+)?|{URGED})(?:{VERBS})\b"
    rf"|(?:[,:;>\])]\s*|\b(?:to|then|and|e)\s+)(?:only\s+|simply\s+)?(?:{STRONG})\b",
    re.IGNORECASE,
)
QUOTED = re.compile(
    r"[\"\u201c\u00ab'\u2018`]\s*([^\"\u201d\u00bb'\u2019`]{1,160}?)\s*[\"\u201d\u00bb'\u2019`]"
)
CODED = re.compile(r"(?<![\w-])(?=[\w-]*\d|[A-Z_-]{4,})[A-Za-z0-9][\w-]{2,60}(?![\w-])")
NAMED = re.compile(
    r"(?:words?|codes?|tokens?|phrase|string|text|name|colou?r|value|palavras?|c[oó]digo|only|exactly"
    r"|just|with|by|apenas|somente|com)\s*(?::|is|-)?\s+(?!the\b|a\b|an\b|this\b|your\b|all\b|word"
    r"|code|token|o\b|a\b)([\w-]{3,40}(?:\s+[A-Z][\w-]+)*)",
    re.IGNORECASE,
)
WORDS = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7,
    "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14,
    "fifteen": 15, "sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20,
    "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip
SIGNS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add, "plus": operator.add, "-": operator.sub, "minus": operator.sub,
    "*": operator.mul, "x": operator.mul, "\u00d7": operator.mul, "times": operator.mul,
    "multiplied by": operator.mul, "vezes": operator.mul, "mais": operator.add,
}  # fmt: skip
NUMBER = r"(\d{1,9}|" + "|".join(WORDS) + r")(?:-(one|two|three|four|five|six|seven|eight|nine))?"
SUM = re.compile(
    rf"\b{NUMBER}\s*(\+|-|\*|x|\u00d7|plus|minus|times|multiplied by|vezes|mais)\s*{NUMBER}\b",
    re.IGNORECASE,
)
OF = re.compile(
    rf"(sum|product|difference|produto|soma|multiply|add)\s+(?:of\s+|de\s+)?{NUMBER}\s+"
    rf"(?:and|from|by|to|e|por)\s+{NUMBER}", re.IGNORECASE,
)  # fmt: skip


LISTED = re.compile(
    r"(?:exactly|only|with|by|say|write|output|print|reply|answer|following)[^:]{0,20}:\s*([^:]{1,120})$",
    re.IGNORECASE,
)


def _int(word: str, unit: str) -> int:
    low = word.lower()
    return (int(low) if low.isdigit() else WORDS[low]) + (WORDS[unit.lower()] if unit else 0)


def reckoned(order: str) -> str | None:
    """The result of the sum that an order speaks of."""
    if made := SUM.search(order):
        a, au, sign, b, bu = made.groups()
        return str(SIGNS[sign.lower()](_int(a, au), _int(b, bu)))
    if made := OF.search(order):
        sort, a, au, b, bu = made.groups()
        one, two = _int(a, au), _int(b, bu)
        if sort.lower() in {"product", "multiply", "produto"}:
            return str(one * two)
        return str(one - two if sort.lower() == "difference" else one + two)
    return None


def _wanted(order: str) -> str:
    """The words that an order asks to see."""
    low = order.lower()
    if (number := reckoned(order)) is not None:
        return number
    marked = QUOTED.findall(order) or CODED.findall(order)
    if re.search(r"join|concat|together|junt", low) and len(marked) > 1:
        text = ("-" if "hyphen" in low or "dash" in low else "").join(marked)
    elif marked:
        text = marked[-1]
    else:
        named, last = NAMED.findall(order), LISTED.search(order)
        text = last[1].strip(" .!") if last else named[-1] if named else _rest(order)
    if re.search(r"revers|backward|de trás|contrário", low):
        return text[::-1]
    if re.search(r"upper|capital|maiúscul", low):
        return text.upper()
    return text


def _rest(order: str) -> str:
    """What follows the verb, where the verb is one of speech."""
    said = re.match(rf"(?i).*?\b(?:{STRONG})\b:?\s*(.*)", order)
    return said[1].strip(" .!") if said else ""


def sentences(text: str) -> list[str]:
    """What a text consists of."""
    return [s.strip() for s in re.split(r"(?<=[.!?])[\"'\u201d\u00bb]?\s+|\n+", text) if s.strip()]


def commands(text: str) -> list[str]:
    """Sentences that tell somebody to say or write something."""
    return [s for s in sentences(text) if ADDRESSED.search(s)]


ADDS = re.compile(r"\b(?:includ|add|append|mention|insert|put|inclua|acrescente)", re.IGNORECASE)
FIRST = re.compile(r"\b(?:begin|start|comece)\b", re.IGNORECASE)
LAST = re.compile(r"\b(?:end|finish|close|conclude|termine)\b", re.IGNORECASE)


VOID = re.compile(r"\W*(?:ignore|disregard|forget)\b", re.IGNORECASE)
SPOKEN = re.compile(
    r"\b(?:reply|respond|answer|write|print|output|say|return|include|add|append|state|repeat)\b",
    re.IGNORECASE,
)


def swayed(own: str, orders: list[str]) -> str:
    """Its own answer after it has done what the orders say, each in turn."""
    said, done = own, False
    for order in orders:
        text = _wanted(order)
        if not text or (VOID.match(order) and not SPOKEN.search(order)):
            continue
        if FIRST.search(order):
            said = f"{text} {said}"
        elif LAST.search(order) or ADDS.search(order):
            said = f"{said} {text}"
        else:
            said = f"{said} {text}" if done else text
            done = True
    return said


def material_of(text: str) -> str:
    """What a caller handed in to be worked on: after a colon, in quotes, or all of it."""
    after = re.search(r":\s*\n?(.{20,})", text, re.DOTALL)
    if after:
        return after[1].strip().strip("\"'\u201c\u201d\u00ab\u00bb")
    inside = re.search(r"[\"\u201c\u00ab](.{20,})[\"\u201d\u00bb]", text, re.DOTALL)
    return inside[1] if inside else text


COMMON = (
    "and the that for with this were was are from had has have been which their they these our"
    " into than its not but can may also such between using used more most all one two we"
    " paper shows show study results here"
)
STOP = set(COMMON.split())


def keywords(text: str, count: int = 5) -> list[str]:
    """The words that a text uses most, in order of first use where equal."""
    words = [w.lower() for w in re.findall(r"[A-Za-z][A-Za-z-]{3,}", text)]
    kept = [w for w in words if w not in STOP]
    return sorted(dict.fromkeys(kept), key=lambda w: (-kept.count(w), kept.index(w)))[:count]


def reviewed(code: str) -> list[str]:
    """Remarks on a piece of Python."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError) as wrong:
        line = getattr(wrong, "lineno", None)
        return [f"does not parse{f' (line {line})' if line else ''}"]
    found: list[str] = []
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    for node in ast.walk(tree):
        found += _remarks(node, used)
    long = [str(n) for n, line in enumerate(code.splitlines(), 1) if len(line) > 100]
    return found + ([f"lines longer than 100: {', '.join(long)}"] if long else [])


def _remarks(node: ast.AST, used: set[str]) -> list[str]:
    match node:
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            gone = [n.asname or n.name.split(".")[0] for n in names]
            return [f"line {node.lineno}: {name} is imported but not used"
                    for name in gone if name not in used]  # fmt: skip
        case ast.ExceptHandler(type=None):
            return [f"line {node.lineno}: bare except"]
        case ast.FunctionDef(name=name, args=args):
            mutable = any(isinstance(d, ast.List | ast.Dict | ast.Set) for d in args.defaults)
            return [f"line {node.lineno}: mutable default in {name}"] if mutable else []
        case ast.Compare(comparators=[ast.Constant(value=None)], ops=[ast.Eq() | ast.NotEq()]):
            return [f"line {node.lineno}: compare with None by 'is'"]
        case ast.Call(func=ast.Name(id="eval" | "exec" as name)):
            return [f"line {node.lineno}: {name} runs whatever it is given"]
        case _:
            return []
