"""Decides whether a message orders an act, or is a question. Pure.

Source: evidence.md#no-acts: no request of a visit asks for an act.
"""

import re
from itertools import pairwise
from typing import Final

from assay.probing.function.acts import (
    ACT_PARTS,
    ACTS,
    JOINED_WORDS,
    LEADS_TO_ORDER,
    TEXT_CHARS_MAX,
    names_act,
)
from assay.probing.function.words import has_part, words_of

_SENTENCE_END = re.compile(r"[.!?;\n]+(?:\s|$)")
_ADDRESS = re.compile(r"[^\d,:]{2,30},\s*")
_COURTESY_TEXT: Final = (
    "please kindly now then and so also hi hello hey dear can would could will you i we want need"
    " to like just go let us me must should ok okay bitte und dann jetzt kannst können könnten"
    " würden du sie ich will möchte mir hallo por favor y luego ahora puede puedes podría quiero"
    " hola plaît vous il s te plait et puis maintenant pouvez peux tu je veux voudrais bonjour e"
    " poi adesso ora puoi può vorrei ciao per favore agora então pode quero olá en dan nu kun kunt"
    " je ik wil i teraz proszę możesz chcę lütfen şimdi ve и затем теперь пожалуйста можешь можете"
    " хочу та потім тепер будь ласка можете"
)
_COURTESY: Final = frozenset(_COURTESY_TEXT.split())
_LEADS_TEXT: Final = (
    "bitte und dann y luego et puis poi agora então en dan lütfen ve и затем та потім"
)
_LEADS: Final = LEADS_TO_ORDER | frozenset(_LEADS_TEXT.split())
_ASKS_POLITELY = re.compile(
    r"\W*(?:(?:can|could|would|will|won't|may) (?:you|i|we)|(?:kannst|könntest|würdest|willst) du"
    r"|(?:können|könnten|würden|wollen) sie|puedes?|podrías?|quieres?|(?:peux|pourrais|veux)-tu"
    r"|(?:pouvez|pourriez|voulez)-vous|tu peux|vous pouvez|puoi|può|potresti|potrebbe|vuoi|pode"
    r"|podes|poderia|(?:kun|kunt|wil|wilt) (?:je|u)|(?:czy )?możesz|może pan|можешь|можете"
    r"|могли бы|можна|ти можеш|ви можете)\b",
    re.IGNORECASE,
)


def orders(message: str) -> bool:
    """Return whether a sentence of a message orders its reader to act, as far as words tell.

    It does if it begins with a word of an act, after words of courtesy or an addressed name, or has
    one after a word that leads to it (`and send it`). In `a track of 2 m, drop 180 cm` nothing is
    to be dropped. In scripts without such words any word of an act counts.
    """
    cut = message[:TEXT_CHARS_MAX]
    if has_part(cut, ACT_PARTS):
        return True
    return any(map(_is_order, _SENTENCE_END.split(cut)))


def _is_order(sentence: str) -> bool:
    plain = sentence.strip()
    both = (plain, _ADDRESS.sub("", plain, count=1) if _ADDRESS.match(plain) else plain)
    for text in both:
        words = words_of(JOINED_WORDS.sub(" ", text))
        while words and words[0] in _COURTESY and words[0] not in ACTS:
            words = words[1:]
        if words and words[0] in ACTS:
            return True
    words = words_of(JOINED_WORDS.sub(" ", plain))
    return any(a in _LEADS and b in ACTS for a, b in pairwise(words))


def is_question(text: str) -> bool:
    """Return whether a text is a question that names no act: `Can you ...?` may ask for one."""
    plain = text.strip()
    return (
        plain.endswith(("?", "\uff1f", "\u061f"))
        and not names_act(plain)
        and not _ASKS_POLITELY.match(plain)
    )
