"""Varies an agent's own examples with values of ours, and rewords requests. Pure.

Source: evidence.md#conversations, #announced-and-unannounced-visits: requests vary the agent's own
examples, so that answers prepared for the examples on the card prove nothing.

Varies an example's digits: neighbours of its number, or each run of digits.

Varies examples of one shape: the same words around other values, which are exchanged.

`Which bay holds A-17?` and `Which bay holds B-20?` show that a bay is identified by a capital, a
hyphen and two digits. So values that only its owner knows can be asked for.

Varies examples that are not a sentence but a notation.

`Aa x aa` works as well with the letter t or with its sides exchanged, and `B+` with a minus: an
agent that computes answers each separately.

Reads the skills of an agent's card, bounded.
"""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import groupby
from random import Random
from typing import Final

from assay.common.json import JsonObject, is_array, is_object
from assay.probing.function.acts import is_question_word, names_act
from assay.probing.function.formats import another, checked_number
from assay.probing.function.generated_texts import Checkable, notice, passage, some_date
from assay.probing.function.known_values import (
    IN_KINDS,
    KINDS,
    THINGS,
    is_common,
    kinds_in,
    named_value,
    topics,
)
from assay.probing.function.words import words_of

EXAMPLE_CHARS_MAX = 600

_SLOT = re.compile(r"[{<\[]([\w .-]{1,40})[}>\]]")
_NUMBER = re.compile(r"(?<![A-Za-z\d_.,/:-])\d{1,13}(?![A-Za-z\d_/:-]|[.,]\d)")
_DECIMAL = re.compile(r"(?<![\w.,/:-])\d{1,5}[.,]\d{1,2}(?![\w/:.,-]*\d)")
_DATE = re.compile(r"\b(?:19|20)\d\d-[01]\d-[0-3]\d(?=\b|T\d)")
_TIME = re.compile(r"(?:\b|(?<=\dT))[0-2]?\d:[0-5]\d\b")
_GROUPED = re.compile(r"(?<![A-Za-z\d_.,/:-])\d{1,3}(?:,\d{3})+(?![\d/:-]|[.,]\d)")
"""Numbers with a comma between thousands."""
_HEX = re.compile(r"#[0-9a-fA-F]{6}\b")
_IP = re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}\b")
_SQUARE = re.compile(r"(?<![\w])[a-h][1-8](?!\w)")
"""A square of a chess board."""
_CODE = re.compile(r"(?<![\w#])(?!\d+\b|\d\dT\d\d\b)(?=\w{0,23}\d)\w{4,24}(?!\w)", re.ASCII)
"""Words of letters and digits: a variant has other digits."""

LONG_QUOTED = re.compile(r"(['\"“«「])([^\"“”«»「」]{25,600})(['\"”»」])(?=\W*$)")
_PHONE = re.compile(r"\+?\d[\d ()/-]{7,}\d")
_QUOTED = re.compile(r"([\"'“«「])([^\"'“”«»「」]{2,40})([\"'”»」])")

_YEARS = range(1800, 2101)
LAST_SMALL = 9
"""Numbers of one digit are few: any may replace another."""

_MARKS = 0xE000
"""Private-use characters that mark values until all are chosen, so that none is replaced twice."""


def varied(
    example: str, random: Random, used: set[str] | None = None, near: str = ""
) -> str | None:
    """Return the example with each recognised value replaced by one of ours; else None.

    Values in `used` are avoided while there are others; chosen ones are added to it. Values in the
    lower-case text `near` are chosen first.
    """
    used = set() if used is None else used
    text = example[:EXAMPLE_CHARS_MAX]
    changed = _figures_varied(_SLOT.sub(lambda slot: _value_for(slot[1], random), text), random)
    chosen: list[str] = []
    for known in kinds_in(changed):
        if any(value in text for value in known):
            fresh = [v for v in known if v in text or v not in used]
            named = [v for v in fresh if v in text or _stands_in(v, near)]
            changed = _replaced(changed, named, random, chosen)
            changed = _replaced(changed, fresh or known, random, chosen)
    used.update(chosen)
    for number, value in enumerate(chosen):
        changed = changed.replace(chr(_MARKS + number), value)
    return changed if words_of(changed) != words_of(text) else None


def figures_varied(example: str, random: Random, way: tuple[int, bool] | None = None) -> str | None:
    """Return the example with other numbers, dates and quoted texts, which no list contains.

    `way`: how many sentences a quoted text has, and whether numbers are even; random without it.
    """
    text = example[:EXAMPLE_CHARS_MAX]
    changed = _figures_varied(text, random, way)
    return changed if words_of(changed) != words_of(text) else None


def checked_varied(example: str, random: Random, *, right: bool) -> str | None:
    """Return the example with another number, its check digits valid or not; None without one."""
    number = checked_number(example)
    changed = "" if number is None else another(number, random, right=right)
    return None if number is None or changed == number else example.replace(number, changed)


def _figures_varied(text: str, random: Random, way: tuple[int, bool] | None = None) -> str:
    sentences, even = way or (None, random.random() < 1 / 2)
    checked = checked_varied(text, random, right=even)
    if checked is not None:
        return checked
    changed = LONG_QUOTED.sub(lambda q: q[1] + _passage_like(q[2], random, sentences) + q[3], text)
    if changed != text:
        return changed
    changed = _QUOTED.sub(lambda q: q[1] + random.choice(THINGS) + q[3], changed)
    changed = _HEX.sub(lambda _: f"#{random.randrange(16**6):06x}", changed)
    changed = _IP.sub(lambda _: ".".join(str(random.randint(1, 222)) for _ in range(4)), changed)
    changed = _SQUARE.sub(lambda _: random.choice("abcdefgh") + str(random.randint(1, 8)), changed)
    changed = _CODE.sub(lambda code: _other_code(code[0], random), changed)
    changed = _DATE.sub(lambda _: some_date(random), changed)
    changed = _TIME.sub(lambda t: _other_time(t[0], random), changed)
    changed = _GROUPED.sub(lambda n: _other_grouped(n[0], random, even=even), changed)
    changed = _DECIMAL.sub(lambda number: _another_decimal(number[0], random), changed)
    return _NUMBER.sub(lambda number: _other_number(number[0], random, even=even), changed)


def swapped(
    example: str, others: Sequence[str], known: frozenset[str], random: Random
) -> list[tuple[bool, str]]:
    """Return the example with its own value replaced by those of the other examples.

    Each has a flag for whether the two may be of different kinds; those of one kind come first.

    A value is a word that is neither common nor among the words that say what the agent does
    (`known`), the last or the longest: a value the agent knows, if we know no other of its kind.
    """
    found: list[tuple[bool, str]] = []
    for own in _own_values(example, known):
        values = [(v, other) for other in others for v in _own_values(other, known)[:1]]
        found += [
            (not _is_like(value, other, own, example), example.replace(own, value))
            for value, other in values
            if value not in example and value.isdigit() == own.isdigit()
        ]
    random.shuffle(found)
    found.sort(key=lambda entry: entry[0])
    return list(dict.fromkeys(found))


def with_value(example: str, value: str, known: frozenset[str]) -> str | None:
    """Return the example with another value that the agent named; None if it has no own value."""
    own = _own_values(example, known)
    return example.replace(own[0], value) if own and value not in example else None


def in_place(asked: str, example: str, value: str) -> str | None:
    """Return the example with a value in the place where a request made of it has another."""
    shortest = min(len(asked), len(example))
    before = next((n for n in range(shortest) if asked[n] != example[n]), shortest)
    most = shortest - before
    behind = next((n for n in range(most) if asked[-1 - n] != example[-1 - n]), most)
    while before and example[before - 1].isalnum():
        before -= 1
    while behind and example[len(example) - behind].isalnum():
        behind -= 1
    if before + behind >= len(example):
        return None
    return example[:before] + value + example[len(example) - behind :]


_VALUE = re.compile(r"[\u3400-\u9fff]{2,}|[\u30a0-\u30ff]{2,}|[^\W\u3040-\u9fff][\w.#-]*\w")


_ARTICLE = re.compile(
    r"\b(?:an?|the|eine?[nrms]?|de[rnms]|das|die|une?|l[ae]s?|un[ao]?|el|los|il|lo|gli|uma?|het|een)"
    r"\s+$",
    re.IGNORECASE,
)


def _is_like(value: str, other: str, own: str, example: str) -> bool:
    """Return whether two examples' values are interchangeable: of one kind, or in one place."""
    if value in IN_KINDS and any(value in row and own in row for row in KINDS):
        return True
    there, here = other.partition(value)[0], example.partition(own)[0]
    is_after_article = bool(_ARTICLE.search(there)) and bool(_ARTICLE.search(here))
    is_same_place = there.split()[-2:] == here.split()[-2:]
    return is_same_place or is_after_article or (value[0].isupper() and own[0].isupper())


def _own_values(example: str, known: frozenset[str]) -> list[str]:
    """Return the words that an example may be about, the likeliest first; at most two."""
    words = [word for word in _VALUE.findall(example[:EXAMPLE_CHARS_MAX]) if _may_be_value(word)]
    stems = {word[:5] for word in known}
    words = [word for word in words if word.casefold()[:5] not in stems]
    named = [w for w in words if w != example[: len(w)] and (w[0].isupper() or w[0].isdigit())]
    rest = [*words[-1:], *([max(words, key=len)] if words else [])]
    return list(dict.fromkeys([*named[-1:], *(() if named else rest)]))


def _may_be_value(word: str) -> bool:
    return len(word) > 1 and not is_common(word) and not is_question_word(word)


def about_passage(example: str, random: Random) -> Checkable | None:
    """Return an example's question about a text, with a text of ours that one word links."""
    quoted = LONG_QUOTED.search(example[:EXAMPLE_CHARS_MAX])
    if quoted is None:
        return None
    question = example[: quoted.start()]
    inside = words_of(quoted[2])
    linked = [w for w in _VALUE.findall(question) if _may_be_value(w) and w.casefold() in inside]
    if not linked:
        return None
    statement, features = notice(random)
    wanted = random.choice(list(features))
    asked = question.replace(linked[-1], wanted)
    others = tuple(feature for thing, feature in features.items() if thing != wanted)
    text = f"{asked}{quoted[1]}{statement}{quoted[3]}"
    return Checkable("extraction", text, (features[wanted],), others)


def without_quotation(text: str) -> str:
    """Return the text without a long quotation at its end."""
    return LONG_QUOTED.sub("", text).strip(" :,-") if LONG_QUOTED.search(text) else text


def values_like(value: str, random: Random) -> str | None:
    """Return another value of the same kind as the agent's, if its kind is known."""
    known = next((r for r in reversed(KINDS) if value in r), None) if value in IN_KINDS else None
    if known is not None:
        return random.choice([other for other in known if other != value])
    return _other_number(value, random) if value.isascii() and value.isdigit() else None


def _stands_in(value: str, text: str) -> bool:
    plain = value.casefold()
    return plain in text and bool(re.search(rf"(?<!\w){re.escape(plain)}(?!\w)", text))


def _passage_like(given: str, random: Random, sentences: int | None) -> str:
    """Return a passage of ours, with an address and a phone number if the given one has them."""
    return passage(random, sentences, with_contact="@" in given or bool(_PHONE.search(given)))


def _value_for(name: str, random: Random) -> str:
    return named_value(name, random) or topics(random, 1)[0]


def _likely(known: Sequence[str], random: Random) -> str:
    """Return one of the values, those at the beginning more often."""
    return random.choices(known, [1 / place for place in range(1, len(known) + 1)])[0]


def _other_number(number: str, random: Random, *, even: bool = True) -> str:
    """Return another number of its size, as days, hours and shares are; a year for a year.

    An even one is divisible by four, like leap years.
    """
    given = int(number)
    low, high = 10 ** (len(number) - 1), 10 ** len(number) - 1
    if given in _YEARS:
        low, high = 1951, 2023
    elif given > LAST_SMALL and number[0] != "0":
        low, high = given * 11 // 20, given * 13 // 10
    step = (4 if even else 2) if high > LAST_SMALL else 1
    first = low + (-low % 4 if even else 1 - low % 2) if step > 1 else low
    fitting = range(first, high + 1, step)
    return str(
        random.choice(
            [n for n in random.sample(fitting, min(4, len(fitting))) if n != int(number)] or [high]
        )
    )


def _other_grouped(number: str, random: Random, *, even: bool) -> str:
    return f"{int(_other_number(number.replace(',', ''), random, even=even)):,}"


def _other_time(time: str, random: Random) -> str:
    hour = random.randint(1, 22)
    return f"{hour:0{len(time) - 3}}:{random.randint(10, 59)}"


def _other_code(code: str, random: Random) -> str:
    """Return the code with other digits; unchanged if it is the name of a known thing."""
    if code in IN_KINDS:
        return code
    return re.sub(r"\d", lambda _: str(random.randint(0, 9)), code)


def _another_decimal(number: str, random: Random) -> str:
    mark = "." if "." in number else ","
    whole, _, part = number.partition(mark)
    return f"{_other_number(whole, random)}{mark}{_other_number(part, random)}"


def _replaced(text: str, known: Sequence[str], random: Random, chosen: list[str]) -> str:
    """Return the text with marks for the values of one kind; others of it go to `chosen`."""
    spaced = not re.search(r"[\u3040-\u9fff\uac00-\ud7af]", known[0])
    others = [other for other in known if other not in text]
    for value in (value for value in known if value in text):
        pattern = rf"(?<!\w){re.escape(value)}(?!\w)" if spaced else re.escape(value)
        if others and re.search(pattern, text):
            chosen.append(_likely(others, random))
            others.remove(chosen[-1])
            text = re.sub(pattern, chr(_MARKS + len(chosen) - 1), text, count=1)
    return text


_IDENTIFIER = re.compile(r"(?<![A-Za-z\d])[A-Z]{1,5}[-/ ]?\d{3,12}(?![\w.,:/-]*\d)|(?<=#)\d{2,9}\b")
"""Matches what identifies one thing of many: letters and a number, or a number after its sign."""
_WHOLE = re.compile(r"(?<![\w.,:/#-])\d{2,12}(?![\w/:%-]|[.,]\d)")


def runs_varied(example: str, random: Random, *, at_once: bool = False) -> list[str]:
    """Return the example with one run of digits changed in each; or with all, twice.

    Digits become as many other digits; everything between them stays.
    """
    text = example[:EXAMPLE_CHARS_MAX]
    runs = [run for run in _DIGITS_RUN.finditer(text) if len(run[0]) <= RUN_DIGITS_MAX]
    if at_once:
        return [_DIGITS_RUN.sub(lambda run: _other_run(run[0], random), text) for _ in runs[:2]]
    random.shuffle(runs)
    return [
        text[: run.start()] + _other_run(run[0], random) + text[run.end() :]
        for run in runs[:RUNS_MAX]
    ]


_DIGITS_RUN = re.compile(r"\d+", re.ASCII)
RUNS_MAX, RUN_DIGITS_MAX = 4, 12


def _other_run(digits: str, random: Random) -> str:
    """Return other digits with a first digit not larger: hours, months and shares have bounds."""
    first = random.randint(0 if digits[0] == "0" else 1, max(1, int(digits[0])))
    rest = "".join(str(random.randint(0, 9)) for _ in digits[1:])
    made = f"{first}{rest}"
    return made if made != digits else f"{digits[:-1]}{(int(digits[-1]) + 1) % 10}"


def names_code(example: str) -> bool:
    """Return whether an example identifies one thing by a code that ends in a number."""
    return bool(_IDENTIFIER.search(example[:EXAMPLE_CHARS_MAX]))


def beside_it(example: str, random: Random) -> list[str]:
    """Return the example with neighbours of its last code or number, if that is its only one.

    A service that knows few things often numbers them consecutively.
    """
    text = example[:EXAMPLE_CHARS_MAX]
    found = list(_IDENTIFIER.finditer(text)) or list(_WHOLE.finditer(text))
    if len(found) != 1:
        return []
    code = re.search(r"\d+$", found[0][0])
    assert code is not None  # noqa: S101 - both patterns end in digits
    end, digits = found[0].end(), code[0]
    steps = random.sample((1, -1), 2)
    made = [f"{int(digits) + step:0{len(digits)}}" for step in steps]
    fitting = [number for number in made if len(number) == len(digits)]
    return [text[: end - len(digits)] + number + text[end:] for number in fitting]


MADE_MAX = 2
"""Values generated from one notation."""

_TOKEN: Final = re.compile(
    r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]|[A-Za-z\d]+(?:[./:@#+-][A-Za-z\d]+)*|[^\W\d_]+|\S"
)
_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz"

_Slots = dict[tuple[int, int], list[str]]
"""Values by their position in an example, its own first."""


def reslotted(example: str, examples: Sequence[str], random: Random) -> list[str]:
    """Return the example with one of its values changed; none if no other has its shape.

    First with values of the others, then with new ones of their notation. All but one value stay:
    an agent prepared for one of them answers all of these alike, or none.
    """
    text = example[:EXAMPLE_CHARS_MAX]
    slots: _Slots = {}
    for other in examples:
        for place, value in _differences(text, other[:EXAMPLE_CHARS_MAX]).items():
            values = slots.setdefault(place, [text[slice(*place)]])
            values += [value] if value not in values else []
    places = random.sample(list(slots), len(slots))
    had = {one.casefold() for one in examples}
    theirs = [_with(text, place, value) for place in places for value in slots[place][1:]]
    made = [_with(text, place, v) for place in places for v in _made_like(slots[place], random)]
    return [t for t in dict.fromkeys((*theirs, *made)) if t.casefold() not in had]


def recombined(example: str, examples: Sequence[str], random: Random) -> list[str]:
    """Return the example with one value exchanged for another's: each text in another place.

    None if fewer than two places have such: an agent that looks up one value would pass.
    """
    text = example[:EXAMPLE_CHARS_MAX]
    had = {one.casefold() for one in examples}
    by_place: dict[tuple[int, int], list[str]] = {}
    for other in random.sample([*examples], len(examples)):
        for place, value in _differences(text, other[:EXAMPLE_CHARS_MAX]).items():
            made = _with(text, place, value)
            if made.casefold() not in had and made != text:
                by_place.setdefault(place, []).append(made)
    made = [texts[0] for texts in by_place.values()]
    random.shuffle(made)
    return made if len(made) > 1 else []


def _with(text: str, place: tuple[int, int], value: str) -> str:
    return text[: place[0]] + value + text[place[1] :]


def _differences(text: str, other: str) -> dict[tuple[int, int], str]:
    """Return what another text has in place of parts of this one; none if the shapes differ."""
    here, there = list(_TOKEN.finditer(text)), list(_TOKEN.finditer(other))
    one, two = [t[0] for t in here], [t[0] for t in there]
    steps = SequenceMatcher(None, one, two, autojunk=False).get_opcodes()
    kept = sum(step[2] - step[1] for step in steps if step[0] == "equal")
    is_shape = {step[0] for step in steps} == {"equal", "replace"}
    if not is_shape or 2 * kept < max(len(one), len(two)):
        return {}
    return {
        (here[a].start(), here[b - 1].end()): other[there[c].start() : there[d - 1].end()]
        for step, a, b, c, d in steps
        if step == "replace"
    }


def _made_like(values: Sequence[str], random: Random) -> list[str]:
    """Return new values of the notation that some of these share; none for words."""
    by_form: dict[str, list[list[str]]] = {}
    for value in values:
        runs = ["".join(run) for _, run in groupby(value, _kind)]
        by_form.setdefault("".join(_kind(run[0]) for run in runs), []).append(runs)
    form, alike = max(by_form.items(), key=lambda item: len(item[1]))
    if len(alike) < 2 or not ("9" in form or form.isupper()):  # noqa: PLR2004 - to be shared
        return []
    figures = figures_varied(values[0], random) if not set(form) & {"A", "a"} else None
    if figures is not None:
        return [figures]
    return ["".join(_run(parts, random) for parts in zip(*alike, strict=True))
            for _ in range(MADE_MAX)]  # fmt: skip


def _kind(char: str) -> str:
    if char.isdigit():
        return "9"
    if char.isalpha():
        return "A" if char.isupper() else "a"
    return char


def _run(given: Sequence[str], random: Random) -> str:
    """Return characters like those of the values in one place; shared ones stay."""
    first, kind = given[0], _kind(given[0][0])
    if kind not in {"9", "A", "a"} or len(set(given)) == 1:
        return first
    length = random.randint(min(map(len, given)), max(map(len, given)))
    if kind == "9":
        head = random.choice("123456789") if all(run[0] != "0" for run in given) else "0"
        return head + "".join(str(random.randint(0, 9)) for _ in range(length - 1))
    seen = "".join(given)
    letters = _ALPHABET if seen.isascii() else seen.casefold()
    return "".join(
        random.choice(letters.upper() if kind == "A" else letters) for _ in range(length)
    )


def relettered(value: str, random: Random) -> str | None:
    """Return the value with other digits; single capitals become others of a few."""
    changed = figures_varied(value, random)
    is_sentence = len(value.split()) >= SENTENCE_WORDS_MIN
    letters = changed or value
    if not is_sentence:
        letters = _ALONE.sub(lambda _: random.choice(_CAPITALS), letters)
    return letters if letters != value else None


SENTENCE_WORDS_MIN = 4
"""Least words of a possible sentence, in which `I` means the speaker."""

_ALONE: Final = re.compile(r"(?<![A-Za-z\d])[A-Z](?![A-Za-z\d])")
_CAPITALS: Final = "ABCD"


SYMBOLS_MAX = 60
_LETTERS_MAX = 4
_LETTERS_RUN = re.compile(r"[^\W\d_]+")
_SYMBOL_LETTERS = "abdegkrt"


def is_notation(text: str) -> bool:
    """Return whether a short text has letters and no whole word."""
    runs = _LETTERS_RUN.findall(text)
    is_short = len(text) <= SYMBOLS_MAX and bool(runs) and max(map(len, runs)) <= _LETTERS_MAX
    return is_short and text.isascii()


def respelled(example: str, random: Random) -> list[str]:
    """Return the example with other letters, signs or order; nothing if it has whole words."""
    if not is_notation(example):
        return []
    tokens = example.split()
    made = [
        example.translate(str.maketrans("+-", "-+")),
        " ".join(reversed(tokens)),
        _with_other_letters(example, random),
    ]
    return [text for text in dict.fromkeys(made) if text != example]


def _with_other_letters(example: str, random: Random) -> str:
    """Replace consistently each letter that occurs in both cases."""
    both = [c for c in dict.fromkeys(example) if c.islower() and c.upper() in example]
    free = [c for c in _SYMBOL_LETTERS if c not in example.casefold()]
    others = random.sample(free, min(len(free), len(both)))
    pairs = dict(zip(both, others, strict=False))
    pairs |= {one.upper(): other.upper() for one, other in pairs.items()}
    return example.translate(str.maketrans(pairs))


SKILLS_MAX = 16
SKILL_EXAMPLES_MAX = 12


def skills_of(card: JsonObject) -> list[tuple[str, str]]:
    """Return name and description of each skill."""
    return [
        (str(row.get("name") or row.get("id"))[:80], str(row.get("description") or "")[:400])
        for row in skill_rows(card)
    ]


def examples_of(card: JsonObject) -> list[tuple[bool, list[str]]]:
    """Return for each skill whether it acts, and its examples."""
    found: list[tuple[bool, list[str]]] = []
    for skill in skill_rows(card):
        rows = skill.get("examples")
        texts = [e for e in rows if isinstance(e, str)] if is_array(rows) else []
        kept = [e[:EXAMPLE_CHARS_MAX] for e in texts[:SKILL_EXAMPLES_MAX] if e.strip()]
        found.append((does_act_in(skill), kept))
    return found


def does_act_in(skill: JsonObject) -> bool:
    """Return whether a skill says that it acts."""
    return names_act(f"{skill.get('name')} {skill.get('description')}")


def skill_rows(card: JsonObject) -> list[JsonObject]:
    """Return the skills that are read of a card."""
    listed = card.get("skills")
    return [row for row in listed[:SKILLS_MAX] if is_object(row)] if is_array(listed) else []
