"""Evaluates one answer of a conversation against its own request. Pure."""

import re
from typing import Final

from assay.common.json import JsonObject
from assay.probing.function.arranged import initials_in
from assay.probing.function.grammar import Checkable, is_right
from assay.probing.function.rows import text, texts
from assay.probing.function.words import replaced, words_of

DENIES: Final = re.compile(
    r"\b(?:not?|n[’']t|isn.t|invalid|false|wrong|incorrect|fail\w*|bad|mismatch|nicht|nein|falsch"  # noqa: RUF001
    r"|ungültig|kein\w*|non?|faux|invalide|incorrecte?|inválid[oa]|incorrect[oa]|não|errad[oa]|nie"
    r"|niepoprawn\w+|nieprawid\w+|błędn\w+|ongeldig|niet|geçersiz|yanlış|değil|non valido|errato"  # noqa: RUF001 - Turkish
    r"|sbagliato|не|нет|ні|неверн\w*|неправильн\w*|недейств\w*|недійсн\w*|хибн\w*)\b"
    r"|无效|不正确|错误|不|無効|正しくない|誤り|ません|غير|خطأ|ليس|유효하지|잘못|अमान्य|नहीं|ไม่",
    re.IGNORECASE,
)

PICKED_MIN = 2
"""Least words picked from a text, and least answers that pick some."""

KIN_SHARE = 0.6
"""Least share of an example's words that a similar request keeps."""


def replaced_in(row: JsonObject) -> frozenset[str]:
    """Return what an answer replaced in its input; marked, because it is not literal."""
    given = str(row.get("asked"))
    words = frozenset(f"-{word}" for word in replaced(text(row), given))
    return words | initials_in(text(row), given)


def keeps_most(row: JsonObject) -> bool:
    """Return whether a request keeps most words of the example that it is made of."""
    example = frozenset(words_of(str(row.get("family"))))
    return len(example.intersection(words_of(str(row["asked"])))) >= KIN_SHARE * len(example)


def picks_own(row: JsonObject) -> bool:
    """Return whether it has words of the agent's own text, and none of ours beside it."""
    own, ours = frozenset(words_of(str(row["own"]))), frozenset(words_of(str(row["ours"])))
    said = frozenset(words_of(text(row)))
    return len(said & (own - ours)) >= PICKED_MIN and not said & (ours - own)


def is_right_row(row: JsonObject) -> bool:
    """Return whether the right answer is known and was given."""
    expected, excluded = texts(row.get("expected")), texts(row.get("excluded"))
    if not expected:
        return False
    request = Checkable(str(row.get("sort")), "", tuple(expected), tuple(excluded))
    return is_right(request, text(row))
