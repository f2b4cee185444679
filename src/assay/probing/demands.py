"""Detects demands for private data by texts that have nothing to do with it. Pure.

A tool that tells colours has no use for a session cookie, whatever the cookie is called and whoever
is asked. Two signs are needed: the demand has nothing to do with the topic of the other texts, and
it is tied to an argument of the tool, or addresses the model that reads it. Tools of mail, files,
accounts, wallets or security are exempt: their own words say so.
Source: evidence.md#poisoned-texts.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from assay.common.sliced_work import Meter, Sliced

TEXT_MAX = 16_384
"""Characters read of one text, and of the texts about its topic."""

DEMANDS_MAX = 2_000
"""Texts read of one document."""

HITS_MAX = 20

NEAR = 300
"""Characters around a demand that may show whom it addresses."""


@dataclass(frozen=True, slots=True)
class TextInContext:
    """A text, the other texts about its topic, and whether it describes an argument."""

    text: str
    about: str
    is_argument: bool = False
    says_purpose: bool = False
    """Whether it begins with the purpose of the tool or skill, and not with an order."""
    name: str = ""
    """Name of an argument."""
    is_answer: bool = False
    """Whether it is the answer to a call, which does not describe the tool's purpose."""


def is_beyond(said: Iterable[TextInContext], meter: Meter | None = None) -> Sliced[bool]:
    """Return whether one of the texts demands private data unrelated to it."""
    meter = meter or Meter()
    for _, one in zip(range(DEMANDS_MAX), said, strict=False):
        if meter.spend(len(one.text) + len(one.about) + 32):
            yield
        if _demands(one):
            return True
    return False


def _demands(said: TextInContext) -> bool:
    text = " ".join(said.text[:TEXT_MAX].split()).casefold()
    for _, hit in zip(range(HITS_MAX), _PRIVATE.finditer(text), strict=False):
        begin, end = _sentence(text, hit)
        sentence = text[begin:end]
        if _HONEST.search(_CONCEALED.sub("", sentence)) or not (
            _ACTS.search(sentence) or said.is_argument
        ):
            continue
        rest = f"{text[:begin]} {text[end:]} {said.about[:TEXT_MAX].casefold()}"
        around = text[max(0, begin - NEAR) : end + NEAR]
        is_instruction = _TO_MODEL.search(around) or _CONCEALED.search(around)
        is_tied = hit["key"] and _USERS.search(sentence) and _is_tied(sentence, around, said)
        if (is_instruction or is_tied) and not _RELATED.search(rest):
            return True
    return False


def _is_tied(sentence: str, around: str, said: TextInContext) -> bool:
    return bool(_ARGUMENT.search(sentence) or (said.is_argument and _ALWAYS.search(around)))


def _sentence(text: str, hit: re.Match[str]) -> tuple[int, int]:
    before = [m.end() for m in _STOP.finditer(text, max(0, hit.start() - 240), hit.start())]
    after = _STOP.search(text, hit.end(), hit.end() + 240)
    begin = before[-1] if before else max(0, hit.start() - 240)
    return begin, after.start() if after else min(len(text), hit.end() + 240)


_STOP = re.compile(r"[.!?;\]]\s|[\u3002\uff01\uff1f]")
_PRIVATE = re.compile(
    r"(?P<key>(?:session|auth\w{0,12}|browser|login) cookies?|(?:private|signing|ssh) keys?\b"
    r"|(?:wallet|recovery|seed) (?:seed|phrase|words)|\bmnemonic|\bid_(?:rsa|ed25519)\b|\.ssh\b"
    r"|\.aws\b|(?<!\w)\.env\b|\bmcp\.json|\.npmrc|\bkeychain\b|/etc/(?:passwd|shadow)"
    r"|\benvironment variables)"
    r"|(?:mailbox|inbox|address book|browser history|home directory|chat history)\b"
)
_ACTS = re.compile(
    r"\b(?:send|forward|upload|post|pass|include|put|read|open|attach|submit|transmit|copy|append"
    r"|hand|give|fetch|supply|provide|print|paste|export|dump|fill in|look into|add)\b"
)
_USERS = re.compile(
    r"\b(?:user|customer|human|caller|operator|owner|person|client)(?:'|\u2019)?s\b"
)
_ALWAYS = re.compile(r"\b(?:always|must|never omit|every call|fill (?:it |this )?in|each time)\b")
_ARGUMENT = re.compile(
    r"\b(?:as|in|into|under|through|via) (?:the )?(?:(?:argument|parameter|field|input|value)"
    r"(?: of| named| called)? )?[`'\"\u2018\u201c]\w{1,40}[`'\"\u2019\u201d]"
    r"|\bas (?:an? |the )?(?:argument|parameter|field)"
)
_TO_MODEL = re.compile(
    r"\b(?:instruc\w+|note|message|memo|notice|reminder|directive) (?:to|for) (?:\w{1,12} ){0,3}"
    r"(?:models?|assistants?|agents?|llms?|ai)\b"
    r"|\b(?:orchest\w{2,8}|models?|assistants?|llms?|(?:calling )?agents?|ai)(?: that reads? this)?"
    r"(?::|,) (?:always|now|first|please|you must|before)"
    r"|\b(?:models?|assistants?|llms?|agents?|orchest\w{2,8}) (?:must|shall|has to|have to) (?:also"
    r"|first|always|now)"
)
_CONCEALED = re.compile(
    r"\b(?:do not|don't|without|never) (?:tell|mention|inform|show|telling|mentioning|asking|ask)"
)
_HONEST = re.compile(
    r"\b(?:(?:never|not|no|cannot|without|avoid|don't|doesn't|won't|nothing)\b|detect|prevent|block"
    r"|scan|flag|warn|protect|redact|strip|refuse|example|e\.g\.|such as|phish|scam|attack)"
)
_RELATED = re.compile(
    r"mail|inbox|messag|letter|file|folder|path|director|config|setting|environ|\benv\b|secret|\bkey"
    r"|credent|passw|token|auth|log ?in|sign|account|session|cookie|browser|brows|scrap|crawl"
    r"|\bweb|http|wallet|crypt|transact|payment|blockchain|vault|ssh|deploy|server|host|shell|command"
    r"|terminal|system|backup|calendar|contact|chat|convers|histor|context|memor|prompt|secur|scan"
    r"|phish|malware|leak|privacy|identit|clipboard|database|\bmcp\b|develop|code|git|devops|cloud"
)
"""Topics of tools that may have an honest use for such data."""
