"""Reads words of answers and pages without understanding them. Pure; texts are cut before reading.

Compares words of answers without understanding them. Pure; texts are cut before reading.

Source: evidence.md#conversations: an answer counts for what it says beyond the words of the request
and of the agent's own card.

Recognises texts that state something and ask for nothing.

Source: evidence.md#conversations.

Extracts the visible text of a page, in one pass whatever the page.

Detects answers that say that a request is unreadable, or how to write it.

Services refuse in results that look like success: such an answer is not a result, whatever it
quotes.
"""

import html
import re
import unicodedata
from collections.abc import Iterable
from difflib import SequenceMatcher
from itertools import groupby, pairwise
from typing import Final

from assay.common.json import JsonValue, is_array, is_object

TEXT_CHARS_MAX = 4_000
"""Characters read of one answer: a few pages, and less than one slice of the event loop."""

CARD_WORDS_MAX = 2_000
"""Different words kept of a card or a list of tools."""

COUNTING: Final = frozenset({"count", "counts", "counter", "counting", "statistics"})
"""Words of a service that counts: for other services, counts of the input prove nothing."""

COUNT_MIN = 20

REORDERED_MIN = 4
"""Below this many words of the input, their order proves nothing."""

KEPT_WORDS_MIN = 8
"""Least input words that an answer keeps if it is to have replaced others."""

LEFT_OUT_MIN = 3
"""Least words in a row that a selection leaves out."""

KEPT_AROUND = 3
"""Least words that it keeps before them, and after."""

_COMPARED_MAX = 100
_LEAVES_MAX = 2_000
_WORD = re.compile(r"[^\W_]+")
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]+")
"""Thai, Lao, Burmese, Khmer, Japanese and Chinese are written without spaces between words."""

_MIXED = re.compile(r"(?=.*\d)(?=.*[^\W\d_])")
"""Identifiers and hashes: letters and digits in one word say nothing about a topic."""

_EMPTY_WORDS_TEXT: Final = (
    "the and for are was were has have had not but you your our its this that these those"
    " with from into what which who how can could will would may please thank thanks here"
    " there about any all que los las por para con una uno del est les des une pour dans sur"
    " avec der die das und ist ein eine mit von den dem auf nicht per con che una sono para"
    " com uma não het een van voor ok yes sure hello sorry request processed received result"
    " answer response message input task id status success done completed time date"
    " timestamp at hope course else let know anything helps certainly gladly"
    " need more"
)
_EMPTY_WORDS: Final = frozenset(_EMPTY_WORDS_TEXT.split())
"""Words that any sentence may contain, whatever its topic."""


SHORT_CHARS = 2
SHORT_NEEDED = 2
"""Least short words of an answer that has no other meaningful words."""

_SHORT_EMPTY_TEXT: Final = (
    "we us up to so or on of no my me it is in if he go do by be at as an am a s t i ok"
    " zu um un se ne le la lo ja im il et es er en em el du de au"
)
_SHORT_EMPTY: Final = frozenset(_SHORT_EMPTY_TEXT.split())


def words_of(text: str) -> list[str]:
    """Return the words in order, case-folded; in scripts without spaces, pairs of characters."""
    plain = unicodedata.normalize("NFKC", text[:TEXT_CHARS_MAX]).casefold()
    if plain.isascii():
        return _WORD.findall(plain)
    found: list[str] = []
    for run in _WORD.findall(plain):
        if _UNSPACED.search(run):
            found += [run[i : i + 2] for i in range(max(1, len(run) - 1))]
        else:
            found.append(run)
    return found


def has_part(text: str, parts: Iterable[str]) -> bool:
    """Return whether a text contains one of these parts, all of them of non-Latin scripts."""
    return not text.isascii() and any(part in text for part in parts)


def substance(answer: str, known: frozenset[str]) -> frozenset[str]:
    """Return what an answer says beyond `known` words: numbers, and meaningful words.

    In an answer without a letter or digit (Morse code, braille, emoji) its signs are the words; in
    one of single letters (notes, moves, grades), all that stand together with a new one.
    """
    joined = "".join(sorted(known))
    said = words_of(answer)
    if not said:
        return frozenset(answer[:TEXT_CHARS_MAX].split())
    new = [word for word in said if word not in known and word not in _EMPTY_WORDS]
    found = frozenset(
        word
        for word in new
        if (word.isdigit() or not _MIXED.match(word))
        and (len(word) > SHORT_CHARS or word.isdigit() or not word.isascii())
        and not (len(word) > SHORT_CHARS + 1 and not word.isdigit() and word in joined)
    )
    short = frozenset(word for word in new if len(word) <= SHORT_CHARS) - _SHORT_EMPTY
    if found or len(short) < SHORT_NEEDED:
        return found
    runs = [_between(run, short) for run in _short_runs(said)]
    return frozenset({" ".join(word for run in runs for word in run)})


def _short_runs(said: list[str]) -> list[list[str]]:
    return [[*run] for is_short, run in groupby(said, _is_short) if is_short]


def _is_short(word: str) -> bool:
    return len(word) <= SHORT_CHARS


def _between(run: list[str], new: frozenset[str]) -> list[str]:
    """Return the run from its first to its last new word."""
    places = [place for place, word in enumerate(run) if word in new]
    return run[places[0] : places[-1] + 1] if places else []


def counts_in(text: str) -> frozenset[str]:
    """Return how many characters, bytes and words a text has, as written numbers.

    Small numbers are left out: an answer may be one by chance.
    """
    lengths = len(text), len(text.encode("utf-8", "replace")), len(text.split())
    return frozenset(str(length) for length in lengths if length >= COUNT_MIN)


def replaced(answer: str, given: str) -> frozenset[str]:
    """Return input words that an answer replaced by others while keeping those around them.

    Redaction, correction and word-by-word translation do that; quoting and extending do not.
    """
    had, said = words_of(given)[:_COMPARED_MAX], words_of(answer)[:_COMPARED_MAX]
    if len(set(had) & set(said)) < KEPT_WORDS_MIN:
        return frozenset()
    steps = SequenceMatcher(None, had, said, autojunk=False).get_opcodes()
    kept = sum(step[2] - step[1] for step in steps if step[0] == "equal")
    inside = [
        had[step[1] : step[2]]
        for before, step, after in zip(steps, steps[1:], steps[2:], strict=False)
        if step[0] == "replace" and before[0] == after[0] == "equal"
    ]
    found = frozenset(word for words in inside for word in words)
    return found if len(found) < kept else frozenset()


def selected(answer: str, given: str) -> frozenset[str]:
    """Return input words of an answer that leaves out some between them.

    Extraction and shortening do that; repeating a text, its beginning or its end does not.
    """
    given_words = words_of(given)
    had = [w for w in given_words if given_words.count(w) == 1 and len(w) > SHORT_CHARS]
    said = frozenset(words_of(answer))
    places = [place for place, word in enumerate(had) if word in said]
    gaps = (at for at, (a, b) in enumerate(pairwise(places), 1) if b - a > LEFT_OUT_MIN)
    is_inside = any(KEPT_AROUND <= at <= len(places) - KEPT_AROUND for at in gaps)
    return frozenset(had[place] for place in places) if is_inside else frozenset()


def identifiers(text: str) -> frozenset[str]:
    """Return the words of letters and digits: codes, hashes, numbers of another base."""
    return frozenset(word for word in words_of(text) if _MIXED.match(word))


def reorders(answer: str, given: str) -> bool:
    """Return whether an answer has input words in another order, or some of several places.

    Repeating a text, its beginning or a part of it does not count.
    """
    places: dict[str, int] = {}
    for word in words_of(given):
        places.setdefault(word, len(places))
    found = list(dict.fromkeys(places[word] for word in words_of(answer) if word in places))
    if len(found) < REORDERED_MIN:
        return False
    gaps = sum(b - a > 1 for a, b in pairwise(sorted(found)))
    return found != sorted(found) or gaps > 1


def leaves(value: JsonValue, *, with_keys: bool = False) -> list[str]:
    """Return every text, number and boolean of a JSON value, in order, up to a bound.

    `with_keys`: also names with a digit in them, which are not member names: data of each day is
    keyed by its date.
    """
    found: list[str] = []
    waiting: list[JsonValue] = [value]
    while waiting and len(found) < _LEAVES_MAX:
        item = waiting.pop()
        if is_object(item):
            pairs = list(item.items())[: _LEAVES_MAX // 2]
            for key, member in reversed(pairs):
                is_data = with_keys and any(char.isdigit() for char in key)
                waiting += [member, key] if is_data else [member]
        elif is_array(item) and not isinstance(item, str):
            waiting += reversed(item)
        elif item is not None:
            found.append(str(item))
    return found


def known_words(texts: Iterable[str]) -> list[str]:
    """Return a document's different words, sorted and bounded, which do not count in answers."""
    found: set[str] = set()
    for text in texts:
        found.update(words_of(text))
        if len(found) > CARD_WORDS_MAX:
            break
    return sorted(found)[:CARD_WORDS_MAX]


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


CHARS_MAX = 300
"""A refusal is short; a longer answer may be about reading and writing."""

_CANNOT_READ: Final = re.compile(
    r"(?:can(?:no|['’]?)t|could ?n(?:o|['’])t|unable to|failed to) (?:be )?"  # noqa: RUF001
    r"(?:read|pars|underst|interpret|recogni[sz]e|decode|make sense)"
    r"|\bunreadable\b|\bunparsea?ble\b|\bmalformed\b|\bnot (?:readable|understood)\b"
    r"|nicht (?:lesen|lesbar|verstehen|verstanden|deuten)\b|\bunlesbar"
    r"|(?:impossible de|peux pas|pu) (?:lire|comprendre|interpréter)|\billisible"
    r"|no (?:se )?pu(?:edo|ede|do) (?:leer|entender|interpretar)|\bilegible"
    r"|non (?:riesco a|posso|è possibile) (?:leggere|capire|interpretare)|\billeggibile"
    r"|não (?:consigo|foi possível|pude) (?:ler|entender|interpretar)|\bilegível"
    r"|nie (?:mogę|można|udało się) (?:odczytać|zrozumieć)"
    r"|niet (?:lezen|begrijpen)\b|\bonleesbaar"
    r"|не (?:могу|удалось|удаётся) (?:прочитать|разобрать|понять)"
    r"|не (?:можу|вдалося|вдається) (?:прочитати|розібрати|зрозуміти)"
    r"|okunamadı|anlaşılamadı|okuyamıyorum|読み取れません|読めません|解釈できません|解析できません"  # noqa: RUF001 - Turkish
    r"|无法(?:解析|读取|识别|理解)|읽을 수 없|해석할 수 없"
    r"|لا يمكن (?:قراءة|فهم)|تعذر[ت]? (?:قراءة|فهم)"
    r"|पढ़ा नहीं जा|समझ नहीं",
    re.IGNORECASE,
)
_HOW_TO_WRITE: Final = re.compile(
    r"\b(?:write|give|enter|put|spell|format)(?:ten)? (?:it|them|that|this|one|each \w+)"
    r" (?:as|like|in the (?:form|format|notation))\b"
    r"|\b(?:should|must|needs? to) (?:be|look) (?:like|(?:written|given|entered) (?:as|like|in)"
    r"|of the form|in the (?:form|format|notation))\b"
    r"|\b(?:fields?|values?|parts?|arguments?|numbers?|columns?|lines?|words?)"
    r" (?:(?:are|is|were|was) )?(?:expected|required|needed)\b"
    r"|\bexpected (?:hh|yyyy|mm|dd|the (?:form|format)|(?:a |an )?(?:form|format|notation)\b"
    r"|\w+ (?:fields|values|parts|arguments|columns)\b|some\w+ like)"
    r"|schreib\w* (?:sie )?(?:es|sie|das) (?:als|wie|so)\b|(?:felder|werte|teile) erwartet"
    r"|écri(?:vez|re|s)(?:-l[ea]s?| l[ea]s?)? (?:comme|sous la forme|ainsi)"
    r"|escr[ií]b\w* (?:como|así|en la forma)|se esperaban? (?:\w+\s)?(?:campos|valores|el formato)"
    r"|scriv\w+ (?:come|così|nella forma)|escreva(?:-[oa])? (?:como|assim|na forma)"
    r"|(?:zapisz|napisz|podaj) (?:to |je )?(?:jako|jak|w postaci)|schrijf (?:het )?(?:als|zoals)"
    r"|(?:напишите|запишите|укажите) (?:это )?(?:как|в виде)"
    r"|(?:напишіть|запишіть|вкажіть) (?:це )?(?:як|у вигляді)"  # noqa: RUF001 - Ukrainian
    r"|(?:şeklinde|olarak|gibi) yaz|(?:のように|の形で|の形式で)(?:書|入力|指定)"
    r"|(?:请写成|请按|格式应为|应写成)|형식으로 (?:쓰|입력)",
    re.IGNORECASE,
)


def declines(said: str) -> bool:
    """Return whether a short answer says that the request is unreadable, or how to write it."""
    if len(said) > CHARS_MAX:
        return False
    return bool(_CANNOT_READ.search(said) or _HOW_TO_WRITE.search(said))
