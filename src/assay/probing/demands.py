"""Detects what a description demands beyond the work of the tool that it describes. Pure.

Detects demands for private data by texts that have nothing to do with it.

A tool that tells colours has no use for a session cookie, whatever the cookie is called. Two signs
are needed: the demand has nothing to do with the topic of the other texts, and it is tied to an
argument of the tool, or addresses the model that reads it. Tools of mail, files, accounts, wallets
or security are exempt: their own words say so. Source: evidence.md#poisoned-texts.

Detects what a description demands of the model that reads it, beyond the tool's work.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.common.sliced_work import Meter, Sliced
from assay.probing.function.described_operations import paths_of
from assay.probing.poisoning import (
    ALWAYS,
    ARGUMENT,
    BY_MODEL,
    CLAUSE,
    HARMLESS,
    HEADING,
    NEGATED,
    ORDERS,
    SECURITY,
    SIGNS,
    Sign,
)
from assay.probing.ports import McpTool

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


GROUPS_MAX = 2_000
"""Tools, skills or texts read of one document."""

SENTENCES_MAX = 400
"""Sentences read of one text."""

SENTENCE_MAX = 420
"""Characters of a sentence: a longer one is read in pieces."""

OVERLAP = 120
"""Characters that two pieces of a sentence share."""

DOCUMENT_MAX = 131_072
"""Characters read of one document."""


def _pairs(*pairs: str) -> frozenset[frozenset[str]]:
    return frozenset(frozenset(pair.split(" ")) for pair in "|".join(pairs).split("|"))


ADJACENT: Final = _pairs(
    "person harvest|words whole|answer praise|rank model|falsify answer|falsify slander",
    "shadow slander|shadow despite|rank despite|praise despite|copy target|copy despite",
    "execute unasked|role despite|speak despite|precede model|money model|destroy reach",
    "execute model|person model|talk model|rules model|tools model|files model",
    "falsify model|shadow model|copy model|tamper model|bypass model|destroy model",
    "secret model|own model|unasked model",
)
"""Pairs of signs that no ordinary sentence, with the one after it, contains together."""

NEARBY: Final = _pairs(
    "talk conceal|talk standing|talk argument|words standing|words conceal|words despite",
    "rules argument|rules must|rules conceal|tools argument|tools conceal|person conceal",
    "person standing|code argument|code must|key argument|key must|files argument",
    "files conceal|answer rank|praise standing|praise omit|rank omit|rank standing",
    "rank conceal|praise conceal|omit standing|falsify conceal|falsify standing",
    "falsify despite|shadow conceal|shadow standing|copy conceal|tamper target",
    "tamper conceal|tamper standing|tamper falsify|money unasked|money agreed",
    "agreed unasked|precede objection|precede standing|bypass host|bypass conceal",
    "execute conceal|money conceal|destroy conceal|gather argument|gather conceal",
    "gather standing|secret conceal|secret standing|own conceal|unasked conceal",
    "agreed conceal|tamper despite|rank praise|secret harvest",
)
"""Pairs of signs that no ordinary text has close together; a tool and its arguments are one
text."""

HEADED = "headed"
"""A heading addresses models: the demands of the next sentence are theirs."""

NEAR_IN_DESCRIPTION = 600
"""Characters within which two signs of one text belong together."""


@dataclass(frozen=True, slots=True)
class DocumentDemands:
    """A document's demands on its reader: the signs, and whether two are more than a warning."""

    signs: frozenset[str]
    is_proven: bool


def find_asks(
    groups: Iterable[Sequence[TextInContext]], meter: Meter | None = None
) -> Sliced[DocumentDemands]:
    """Return the texts' demands; those of a group (a tool and its arguments) count together."""
    meter, left = meter or Meter(), DOCUMENT_MAX
    signs, is_proven = frozenset[str](), False
    for _, group in zip(range(GROUPS_MAX), groups, strict=False):
        last = dict[str, int]()
        for said in group:
            found = yield from _signs_of(said, meter)
            is_proven = is_proven or _are_near(found, last)
            signs = signs.union(*(one for _, _, one in found))
            left -= len(said.text)
        if left <= 0:
            break
    return DocumentDemands(signs, is_proven)


_Found = Sequence[tuple[int, int, frozenset[str]]]
"""Sentences with signs: their number, their start, and the signs."""


def _are_near(found: _Found, elsewhere: dict[str, int]) -> bool:
    """Return whether two signs belong together.

    `elsewhere` are those of the group's other texts.
    """
    before, places = (-2, frozenset[str]()), dict.fromkeys(elsewhere, -1)
    for number, at, signs in found:
        near = signs | {
            sign for sign, place in places.items() if place < 0 or at - place <= NEAR_IN_DESCRIPTION
        }
        adjacent = signs | (before[1] if number == before[0] + 1 else frozenset[str]())
        if "model" not in signs and HEADED not in before[1]:
            adjacent -= {"model"}
        if any(p <= near and p & signs for p in NEARBY) or any(p <= adjacent for p in ADJACENT):
            return True
        before = number, signs
        places |= dict.fromkeys(signs, at)
    elsewhere |= dict.fromkeys(places, -1)
    return False


def _signs_of(said: TextInContext, meter: Meter) -> Sliced[_Found]:
    trade, found, at = said.about[:TEXT_MAX].casefold(), list[tuple[int, int, frozenset[str]]](), 0
    for number, sentence in enumerate(_sentences(said.text[:TEXT_MAX])):
        if meter.spend(32 + 8 * len(sentence)):
            yield
        signs = frozenset(_read(sentence, trade, said, number))
        if signs:
            found.append((number, at, signs))
        at += len(sentence)
    return found


def _sentences(text: str) -> Iterator[str]:
    """Yield the sentences in lower case; a long one in overlapping pieces."""
    parts = (part for part in _END_OF_SENTENCE.split(text) if part.strip())
    pieces = (part[at : at + SENTENCE_MAX] for part in parts for at in _starts(len(part)))
    for _, piece in zip(range(SENTENCES_MAX), pieces, strict=False):
        folded = unicodedata.normalize("NFKC", piece)[: 2 * SENTENCE_MAX]
        yield " ".join(folded.split()).casefold()[:SENTENCE_MAX].replace("\u2019", "'")


def _starts(length: int) -> range:
    return range(0, max(1, length - OVERLAP), SENTENCE_MAX - OVERLAP)


_END_OF_SENTENCE = re.compile(r"[\n\r\u3002\uff01\uff1f]|(?<=[;.!?])\s")


def _read(sentence: str, trade: str, said: TextInContext, number: int) -> Iterator[str]:
    if SECURITY.search(trade) or HARMLESS.search(sentence):
        return
    found = [sign for sign in SIGNS if _is_said(sign, sentence, trade, said, number)]
    yield from (sign.name for sign in found)
    names = {sign.name for sign in found}
    if "talk" in names and "whole" in names and (said.is_argument or said.says_purpose):
        yield "argument"
    elif any(sign.is_data for sign in found):
        if (said.is_argument and "talk" not in names) or ARGUMENT.search(sentence):
            yield "argument"
        if ALWAYS.search(sentence):
            yield "must"
    if BY_MODEL.search(sentence) or HEADING.search(sentence):
        yield "model"
    if HEADING.search(sentence):
        yield HEADED


def _is_said(sign: Sign, sentence: str, trade: str, said: TextInContext, number: int) -> bool:
    match = sign.search(sentence)
    if match is None or _is_quoted(sentence, match.start()):
        return False
    if sign.trade is not None and sign.trade.search(trade):
        return False
    if sign.is_data:
        if NEGATED.search(sentence):
            return False
        return said.is_argument or _is_directed(
            sentence, says_purpose=said.says_purpose and not number
        )
    return (
        not sign.needs_order
        or said.is_argument
        or _is_directed(sentence, says_purpose=said.says_purpose and not number)
    )


def _is_directed(sentence: str, *, says_purpose: bool) -> bool:
    """Return whether it is an order to the reader; a text's beginning says what the tool does."""
    if ORDERS.search(sentence) or BY_MODEL.search(sentence):
        return True
    return any(not says_purpose or match.start() > 0 for match in CLAUSE.finditer(sentence))


def _is_quoted(sentence: str, place: int) -> bool:
    return sentence[:place].endswith(("'", '"', "`", "\u201c", "\u2018", "\u00ab", "\u300c"))


DEPTH_MAX = 24
ROWS_MAX = 200
"""Skills of a card, operations of a document."""

PURPOSE_MAX = 300
"""Characters of a tool's purpose: a longer text would cover everything."""

Group = Sequence[TextInContext]


def strings(value: JsonValue, depth: int = DEPTH_MAX) -> Sequence[str]:
    """Return every string of a JSON value, including the names of members."""
    if isinstance(value, str):
        return [value]
    if depth and is_object(value):
        return [text for name, one in value.items() for text in (name, *strings(one, depth - 1))]
    if depth and is_array(value):
        return [text for item in value for text in strings(item, depth - 1)]
    return []


def purpose(name: str, description: str) -> str:
    """Return the name in words, and the first sentence."""
    first = _END.split(description.strip()[: 2 * PURPOSE_MAX], maxsplit=1)[0]
    return f"{_WORDS.sub(' ', name)} {first}"[:PURPOSE_MAX]


_END = re.compile(
    r"(?<=[?!.])(?:\s|(?=[<\x1b\x9b]|[A-Z][a-z]{1,12}\s))|[\n\x1b\x9b\u3002\uff01\uff1f]"
)
_WORDS = re.compile(r"[_\-./]|(?<=[a-z])(?=[A-Z])")


def tool_group(tool: McpTool) -> Group:
    """Return a tool's description, its arguments' texts, and all else a model reads of it."""
    about = purpose(tool.name, tool.description)
    properties = tool.input_schema.get("properties")
    rows: JsonObject = properties if is_object(properties) else {}
    rest = {name: one for name, one in tool.input_schema.items() if name != "properties"}
    return [
        TextInContext(tool.description, about, says_purpose=True),
        *_arguments(rows, about),
        TextInContext(_joined([*strings(rest), *strings(tool.more)]), about),
    ]


def card_groups(card: JsonValue) -> Sequence[Group]:
    """Return a card's description, and each of its skills with tags and examples."""
    if not is_object(card):
        return []
    name, description = str(card.get("name", "")), str(card.get("description", ""))
    about = purpose(name, description)
    rest = {key: one for key, one in card.items() if key not in {"name", "description", "skills"}}
    general = TextInContext(description, about, says_purpose=True)
    groups: list[Group] = [[general, TextInContext(_joined(strings(rest)), about)]]
    for row in _rows(card.get("skills")):
        said = str(row.get("description", ""))
        own = f"{about} {purpose(str(row.get('name', '')), said)}"
        more = {key: one for key, one in row.items() if key not in {"id", "description"}}
        more_said = TextInContext(_joined(strings(more)), own)
        groups.append([TextInContext(said, own, says_purpose=True), more_said])
    return groups


def registration_groups(raw: JsonValue) -> Sequence[Group]:
    """Return the registration: its description, then the rest of it."""
    if not is_object(raw):
        return []
    description = str(raw.get("description", ""))
    about = purpose(str(raw.get("name", "")), description)
    rest = {key: one for key, one in raw.items() if key != "description"}
    return [
        [
            TextInContext(description, about, says_purpose=True),
            TextInContext(_joined(strings(rest)), about),
        ]
    ]


def openapi_groups(document: JsonObject) -> Sequence[Group]:
    """Return an OpenAPI document's general description, and operations with their parameters."""
    info = document.get("info")
    title = str(info.get("title", "")) if is_object(info) else ""
    general = str(info.get("description", "")) if is_object(info) else ""
    about = purpose(title, general)
    groups: list[Group] = [[TextInContext(general, about, says_purpose=True)]]
    for path, item in list(paths_of(document).items())[:ROWS_MAX]:
        rows = [one for one in item.values() if is_object(one)] if is_object(item) else []
        groups += [_operation(path, row, about) for row in rows]
    return groups[:ROWS_MAX]


def _operation(path: str, row: JsonObject, about: str) -> Group:
    texts = [str(row.get(key) or "") for key in ("summary", "description")]
    name = str(row.get("operationId") or path)
    own = f"{about} {purpose(name, texts[0] or texts[1])}"
    named = {str(p.get("name")): p for p in _rows(row.get("parameters"))}
    body = row.get("requestBody")
    return [
        *(TextInContext(text, own, says_purpose=True) for text in texts if text),
        *_arguments(named, own),
        TextInContext(_joined(strings(body)), own, is_argument=True),
        TextInContext(_joined(strings(row.get("responses"))), own),
    ]


def _arguments(rows: Mapping[str, JsonValue], about: str) -> list[TextInContext]:
    """Return the texts of each argument, with its defaults, choices and examples."""
    return [
        TextInContext(_joined(strings(row)), about, is_argument=True, name=name)
        for name, row in rows.items()
    ]


def _rows(value: JsonValue) -> Sequence[JsonObject]:
    return [row for row in value[:ROWS_MAX] if is_object(row)] if is_array(value) else []


def _joined(texts: Sequence[str]) -> str:
    return "\n".join(texts)


def own_words(card: JsonValue) -> Sequence[tuple[str, str]]:
    """Return the description of a card and of each of its skills, each with its parent."""
    if not is_object(card):
        return []
    rows = card.get("skills")
    skills = [row for row in rows[:ROWS_MAX] if is_object(row)] if is_array(rows) else []
    names = " ".join([str(card.get("name")), *(str(row.get("name")) for row in skills)])
    whole = str(card.get("description", ""))
    return [(whole, names), *((str(row.get("description", "")), names + whole) for row in skills)]


def demanded(tool: McpTool) -> Sequence[TextInContext]:
    """Return a tool's description, and the texts of its arguments."""
    about = f"{tool.name} {tool.description}"
    properties = tool.input_schema.get("properties")
    rows = [r for r in properties.values() if is_object(r)] if is_object(properties) else []
    texts = ("\n".join(strings(row)) for row in rows)
    return [
        TextInContext(tool.description, tool.name),
        *(TextInContext(t, about, is_argument=True) for t in texts),
    ]


def described(tool: McpTool) -> Sequence[str]:
    """Return every text of a tool."""
    return [
        tool.name,
        tool.description,
        *strings(tool.input_schema),
        *strings(tool.more),
    ]
