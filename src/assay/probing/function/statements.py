"""Recognises texts that state something and ask for nothing. Pure.

Source: evidence.md#conversations.
"""

import re
from typing import Final

from assay.probing.function.words import words_of

TEXT_CHARS: Final = 2_000
_BEGINS: Final = (
    *("i we you he", "she it they", "there the a an", "my our your", "its his her", "these those"),
    *("this that their", "der die das ein", "eine mein meine", "unser unsere", "dieser diese"),
    *("dieses ich wir", "er sie es el la", "los las un una", "mi mis nuestro", "nuestra este"),
    *("esta le les", "une mon ma mes", "notre nos ce", "cette il elle", "lo gli uno mio"),
    *(
        "mia nostro",
        "questo questa",
        "o os as um uma",
        "meu minha nosso",
        "het een mijn",
        "ons onze",
    ),
)
_RELATES: Final = (
    "for from with without since until between in on at of by over under before after"
    " für von mit ohne aus seit bis zwischen auf an bei nach pour de du des avec sans depuis entre"
    " dans sur chez para con sin desde en per di da senza tra su com sem em voor van met zonder"
    " tussen op dla od z bez między w na для от с без до между в из від між"  # noqa: RUF001
)
"""Prepositions and conjunctions: no order begins with one."""
_TELLING: Final = frozenset(" ".join(_BEGINS).split()) | frozenset(_RELATES.split())
_NAMED_DATA: Final = re.compile(r"(?:[^\W\d_]+ ){0,4}[^\W\d_]+ ?: +\S")
_PLURAL_OF: Final = re.compile(
    r"[a-z]{2,30}[a-rt-z]s (?:along|at|between|for|from|in|near|of|on|under|with) ", re.IGNORECASE
)


def is_statement(text: str) -> bool:
    """Return whether a text begins like a statement, or names what follows after a colon.

    An order in unknown words begins with a verb.
    """
    first = words_of(text[:TEXT_CHARS])[:1]
    if first and first[0][0].isdigit():
        return True
    return bool(frozenset(first) & _TELLING or _NAMED_DATA.match(text) or _PLURAL_OF.match(text))
