"""Numbers with check digits, whose correctness we know. Pure.

A random number is almost never valid: a service that checks would give the same answer to all. So
another number is made from a valid one, valid or invalid as wanted. Sources: ISO 13616 (IBAN),
ISO/IEC 7812 (Luhn), GS1 General Specifications (GTIN, ISBN-13), ISO 2108 (ISBN-10), ISO 3297
(ISSN).
"""

import re
import string
from collections.abc import Callable
from random import Random
from typing import Final

_LETTERED: Final = re.compile(r"(?<![\w-])[A-Z][A-Z]\d\d(?:[- ]?[\dA-Z]{2,4}){3,9}(?![\w-])")
_DIGITS: Final = re.compile(r"(?<![\w.,/:-])\d(?:[- ]?\d){6,18}[- ]?[\dXx](?![\w/:-]|[.,]\d)")
_NO_ISSN: Final = re.compile(r"\d+(?:-\d+){2,}|\d+ .*|\d{7}-.")
"""Dates and telephone numbers have eight digits too."""
_CHECKING: Final = re.compile(
    r"valid|check|verif|whether|correct|\bright\b|genuine|gültig|richtig|prüf|válid|correct|vérif"
    r"|controll|geldig|ważn|popraw|sprawdz|geçerli|doğru|действ|провер|верн|правильн|перевір|дійсн"
    r"|校验|有效|正しい|有効|検証|صحيح|صالح|유효",
    re.IGNORECASE,
)


def checks_numbers(text: str) -> bool:
    """Return whether a request or description is about validity, and not a look-up."""
    return bool(_CHECKING.search(text))


def checked_number(text: str) -> str | None:
    """Return the first number in a text whose check digits are valid; None without one."""
    cut = text[:600]
    found = _LETTERED.findall(cut) or _DIGITS.findall(cut)
    return next((number for number in found if is_right(number)), None)


def another(number: str, random: Random, *, right: bool) -> str:
    """Return another number of the same form, with valid or invalid check digits as wanted.

    `number` must be valid itself.
    """
    rule = _rule_of(number)
    if rule is None:
        return number
    for _ in range(4):
        made = _other_body(number, random)
        fixed = _fixed(made, rule)
        if fixed is not None and fixed != number:
            return fixed if right else _spoilt(fixed, random)
    return number if right else _spoilt(number, random)


def is_right(number: str) -> bool:
    """Return whether check digits of a known kind are valid."""
    return _rule_of(number) is not None


def _plain(number: str) -> str:
    return re.sub(r"[ -]", "", number).upper()


def _values(plain: str) -> str:
    """Convert letters to numbers from 10 on."""
    return "".join(str(int(char, 36)) for char in plain)


def _iban(plain: str) -> bool:
    return plain[:2].isalpha() and int(_values(plain[4:] + plain[:4])) % 97 == 1


def _luhn(plain: str) -> bool:
    digits = [int(char) for char in reversed(plain)]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[1::2]]
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0


def _gtin(plain: str) -> bool:
    digits = [int(char) for char in reversed(plain)]
    return (sum(digits[::2]) + 3 * sum(digits[1::2])) % 10 == 0


def _mod_11(plain: str) -> bool:
    digits = [10 if char == "X" else int(char) for char in reversed(plain)]
    return sum(place * digit for place, digit in enumerate(digits, 1)) % 11 == 0


_Rule = Callable[[str], bool]
_BY_LENGTH: Final[dict[int, tuple[_Rule, ...]]] = {
    8: (_mod_11, _gtin),
    10: (_mod_11,),
    12: (_gtin,),
    13: (_gtin,),
    14: (_gtin,),
    15: (_luhn,),
    16: (_luhn,),
}


def _rule_of(number: str) -> _Rule | None:
    """Return the rule that a number satisfies; the first of those for its length."""
    plain = _plain(number)
    if not plain.isascii() or not plain.isalnum():
        return None
    if plain[:2].isalpha():
        return _iban if _iban(plain) else None
    if not (plain[:-1].isdigit() and plain[-1] in string.digits + "X"):
        return None
    rules = _BY_LENGTH.get(len(plain), ())
    if len(plain) == 8 and _NO_ISSN.fullmatch(number):  # noqa: PLR2004 - of an ISSN
        return None
    is_lettered = plain[-1] == "X"
    return next((r for r in rules if (not is_lettered or r is _mod_11) and r(plain)), None)


def _other_body(number: str, random: Random) -> str:
    """Return the number with other digits in the middle: its beginning is the origin."""
    places = [place for place, char in enumerate(number) if char.isdigit()]
    kept = set(places[:4]) | set(places[-1:])
    return "".join(
        str(random.randint(0, 9)) if place in places and place not in kept else char
        for place, char in enumerate(number)
    )


def _fixed(number: str, rule: _Rule) -> str | None:
    """Return the number with valid check digits, if digits alone allow that."""
    if rule is _iban:
        tries = (number[:2] + f"{check:02}" + number[4:] for check in range(2, 99))
    else:
        tries = (number[:-1] + char for char in string.digits)
    return next((one for one in tries if rule(_plain(one))), None)


def _spoilt(number: str, random: Random) -> str:
    """Return the number with another last digit, so that it is invalid."""
    others = [number[:-1] + char for char in string.digits if char != number[-1]]
    return random.choice([one for one in others if not is_right(one)] or [number])
