"""However hostile a text, reading it takes bounded work in short slices, and finds the same."""

import asyncio
import re
import unicodedata
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.common.json import has_values_beyond, is_nested_beyond
from assay.common.sliced_work import SLICE_CHARS, WINDOW_CHARS, Meter, Sliced, whole
from assay.common.sliced_work_runner import Slices
from assay.probing import hidden_texts, poisoning
from assay.probing.poisoning import DESCRIPTION_MAX, DOCUMENT_MAX, TEXTS_MAX, find_poison, poison
from assay.probing.probe_client import JSON_DEPTH_MAX, JSON_VALUES_MAX, decode
from assay.probing.secret_formats import find_internals, find_secrets, leaked_secrets
from assay.registries.registration import NotRegistration, parse_registration
from tests.support.fakes.hostile_documents import bodies, documents, lists
from tests.support.fakes.hostile_texts import (
    ORDER,
    SHORT_CHARS,
    UNITS,
    hostile_json,
    hostile_texts,
    short_hostile_texts,
)

READINGS = 16
"""How often a character may be read: by each pattern, normalised to three, windows overlapping."""

STEP_CHARS = SLICE_CHARS + 3 * (WINDOW_CHARS + 768)
"""Most that is read between two yields: a slice that was nearly over, and what ends it."""

SHORT = {
    **dict(short_hostile_texts()),
    **{name: text[:SHORT_CHARS] for name, text in documents()},
}


class Watched(Meter):
    """Remembers the largest step between two yields."""

    def __init__(self) -> None:
        super().__init__(SLICE_CHARS)
        self.largest = 0
        self._begun = 0

    def spend(self, chars: int) -> bool:
        over = super().spend(chars)
        self.largest = max(self.largest, self.read - self._begun)
        if over:
            self._begun = self.read
        return over


def test_there_are_two_hundred_documents() -> None:
    assert sum(1 for _ in (*hostile_texts(), *documents(), *hostile_json())) >= 200


@pytest.mark.parametrize("name", SHORT)
def test_a_hostile_text_takes_bounded_work_in_short_slices(name: str) -> None:
    """What an agent card of a megabyte, all of U+FDFA, stalled the service with for 3 seconds."""
    check_work_is_bounded(name, SHORT[name])


@pytest.mark.slow
def test_hostile_texts_of_full_size_take_bounded_work_in_short_slices() -> None:
    for name, text in (*hostile_texts(), *documents()):
        check_work_is_bounded(name, text)


@pytest.mark.parametrize("unit", ["expansion", "tags", "words", "open comments", "base64"])
def test_of_a_description_only_so_much_is_read(unit: str) -> None:
    check_work_is_bounded(unit, UNITS[unit] * (2 * DESCRIPTION_MAX // len(UNITS[unit])))


def check_work_is_bounded(name: str, text: str) -> None:
    meter = Watched()
    whole(find_poison([text], meter))
    assert meter.read <= READINGS * min(len(text), DESCRIPTION_MAX) + 1000, name
    assert meter.largest <= STEP_CHARS, name


@pytest.mark.parametrize("find", [find_secrets, lambda texts: find_internals(texts, ())])
@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
def test_an_error_message_is_read_in_short_slices(
    unit: str, find: Callable[[Iterable[str]], Sliced[frozenset[str]]]
) -> None:
    work, slices = find([unit * (20_000 // len(unit) + 1)] * 3), 0
    for _ in work:
        slices += 1
    assert slices >= 3  # of 3 x 20,000 characters, in four patterns


@pytest.mark.parametrize("comment", ["<!-->", "<!---->", "<!--a-->"])
def test_comments_without_words_are_read_in_short_slices(comment: str) -> None:
    """A quarter of a megabyte of them once held the loop for 62 ms."""
    slices = sum(1 for _ in find_poison([comment * (DESCRIPTION_MAX // len(comment))]))
    assert slices >= DESCRIPTION_MAX // len(comment) // 256


@pytest.mark.parametrize("find", [find_secrets, lambda texts: find_internals(texts, ())])
def test_very_many_empty_messages_are_read_in_short_slices_and_not_all(
    find: Callable[[Iterable[str]], Sliced[frozenset[str]]],
) -> None:
    """A hundred thousand once held the loop for 200 ms."""
    given, slices = iter([""] * 100_000), 0
    for _ in find(given):
        slices += 1
    assert slices >= 100
    assert sum(1 for _ in given) > 80_000


@pytest.mark.parametrize(("name", "texts"), list(lists()), ids=[name for name, _ in lists()])
def test_very_many_texts_take_bounded_work_in_short_slices(name: str, texts: list[str]) -> None:
    del name
    meter = Watched()
    whole(find_poison(texts, meter))
    assert meter.read <= READINGS * DOCUMENT_MAX + 32 * min(len(texts), TEXTS_MAX) + 1000
    assert meter.largest <= STEP_CHARS


@pytest.mark.parametrize(("name", "body"), list(bodies()), ids=[name for name, _ in bodies()])
def test_json_of_hostile_structure_is_refused_and_breaks_nothing(name: str, body: bytes) -> None:
    found = decode(body)
    assert found is None or name in {"escaped unicode", "halves of characters", "backslashes"} | {
        "huge exponents",
        "white space",
    }
    with pytest.raises(NotRegistration):
        parse_registration(body)


@given(st.text(alphabet="Ab0+-_/= ", max_size=400), st.integers(1, 40))
def test_a_run_is_cut_as_a_bounded_pattern_cuts_it(text: str, times: int) -> None:
    """The signs at its end say nothing: whoever decodes leaves them off."""
    bounded = re.compile(r"[A-Za-z0-9+/_-]{32,4000}={0,2}")
    long = text * times
    cut = [blob.rstrip("=") for blob in hidden_texts.blobs(long)]
    assert cut == [match.group().rstrip("=") for match in bounded.finditer(long)]


def test_of_a_document_only_so_much_is_read() -> None:
    meter = Meter(SLICE_CHARS)
    whole(find_poison(("always " * 40_000 for _ in range(1000)), meter))
    assert meter.read <= READINGS * (DOCUMENT_MAX + DESCRIPTION_MAX)
    meter, given = Meter(SLICE_CHARS), iter(["a", ""] * TEXTS_MAX)
    whole(find_poison(given, meter))
    assert sum(1 for _ in given) >= TEXTS_MAX - 1


async def test_computations_take_turns_and_each_ends() -> None:
    """However many run, one slice of them all is done, and then the loop goes on."""
    slices, turns, done = Slices(), [0], 0

    def count() -> None:
        turns[0] += 1
        if done < 10:
            asyncio.get_running_loop().call_soon(count)

    steps: list[int] = []

    def work() -> Sliced[int]:
        for _ in range(50):
            steps.append(turns[0])
            yield
        return 1

    async def one() -> None:
        nonlocal done
        ended = await slices.run(work())
        done += ended

    count()
    async with asyncio.TaskGroup() as group:
        for _ in range(10):
            group.create_task(one())
    assert done == 10
    assert max(steps.count(turn) for turn in set(steps)) <= 2


async def test_a_cancelled_computation_goes_no_further_and_holds_up_nobody() -> None:
    slices, went = Slices(), 0

    def endless() -> Sliced[None]:
        nonlocal went
        while True:
            went += 1
            yield

    task = asyncio.get_running_loop().create_task(slices.run(endless()))
    for _ in range(5):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    before = went
    assert await slices.run(find_poison([ORDER])) == {"instructions to the reader"}
    assert went == before


PLACES = sorted(
    place + shift
    for place in (0, 1024, 2048, 4096, 65_536, 200_000)
    for shift in (-300, -60, -30, -10, -1, 0, 1, 10)
    if place + shift >= 0
)


FILLERS = ("a ", "\u4e2d", "\ufdfa", "\u0301", "x\u200d ")


@pytest.mark.parametrize(
    ("place", "filler"),
    [(place, one) for one in FILLERS for place in PLACES if one == "a " or place < 60_000],
)
def test_an_order_is_found_wherever_it_stands(place: int, filler: str) -> None:
    before = (filler * (place // len(filler) + 1))[:place]
    assert "instructions to the reader" in poison(f"{before} {ORDER} {filler * 3000}")


@pytest.mark.parametrize("place", [p for p in PLACES if p < 60_000])
def test_a_secret_is_found_wherever_it_stands(place: int) -> None:
    text = "- " * (place // 2) + "AKIAABCDEFGHIJKLMNOP " + "- " * 3000
    assert leaked_secrets(text) == {"cloud key"}


@pytest.mark.parametrize("place", [p for p in PLACES if p < 60_000])
def test_a_secret_is_not_seen_in_a_longer_word_wherever_it_stands(place: int) -> None:
    text = "- " * (place // 2) + "AKIAABCDEFGHIJKLMNOPQ " + "- " * 3000
    assert leaked_secrets(text) == frozenset()


@given(st.text(alphabet=st.characters(), max_size=300), st.integers(1, 40))
def test_normalising_piece_by_piece_is_normalising(text: str, times: int) -> None:
    """Where an ASCII character is in reach to cut before."""
    long = (text + " ") * times
    plain = whole(poisoning._plain(long, Meter(SLICE_CHARS)))  # pyright: ignore[reportPrivateUsage]
    narrow = poisoning._WIDE.sub(" ", long)  # pyright: ignore[reportPrivateUsage]
    folded = unicodedata.normalize("NFKC", narrow)
    visible = "".join(c for c in folded if unicodedata.category(c) != "Cf")
    assert plain == " ".join(visible.casefold().split())


def test_no_character_grows_beyond_three() -> None:
    wide = poisoning._WIDE  # pyright: ignore[reportPrivateUsage]
    for number in range(0x110000):
        character = chr(number)
        if len(unicodedata.normalize("NFKC", character)) > 3:
            assert wide.fullmatch(character), hex(number)


@pytest.mark.parametrize(("name", "body"), list(hostile_json()), ids=lambda one: str(one)[:20])
def test_json_that_is_slow_to_parse_is_not_parsed(name: str, body: bytes) -> None:
    if name not in {"escaped quotes", "long numbers"}:  # few values: quick to parse
        assert has_values_beyond(body, JSON_VALUES_MAX) or is_nested_beyond(body, JSON_DEPTH_MAX)
        assert decode(body) is None
    with pytest.raises(NotRegistration):
        parse_registration(body)


def test_ordinary_json_is_not_taken_for_slow() -> None:
    words = "Looks up a word, and says what it means, where, and since when. " * 12
    skills = [{"id": f"s{n}", "name": "n", "description": words, "tags": ["a"]} for n in range(900)]
    assert not has_values_beyond(repr({"skills": skills}).encode(), JSON_VALUES_MAX)
