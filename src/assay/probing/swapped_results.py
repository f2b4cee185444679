"""Detects whether a tool or an operation returns the result of another input.

A cache keyed by a part of its input (its beginning, its lower-case letters) returns the first
caller's answer to the second. Two texts that begin alike and end differently are sent one after the
other. An answer with words that only the other text has is a leak. If results contain no words of
ours, properties of the *first* text have to decide both results, and nothing else: four kinds of
endings of different lengths, each sent first twice. A result that depends on how a text begins, on
its first characters or on nothing is honest, and is left after two or four calls. Last, two
spellings of one word that differ only in their capitals.
Source: evidence.md#leaks.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random

from assay.probing.answers import says_it_shares
from assay.probing.conversations import CONFIRMED_FROM
from assay.probing.instructions import seeded, word
from assay.probing.ports import BudgetExhausted, ProbeSession
from assay.probing.session import is_tight, require_room
from assay.probing.shared_answers import said_over_http
from assay.probing.text_forms import find_word
from assay.probing.text_inputs import Taker, TakerReply, takers

TAKERS_ASKED, TAKERS_ASKED_UNANNOUNCED = 2, 1

ENDINGS = (1, 3, 6, 10)
"""Words of each kind of ending."""

TIMES = 2
"""How often each kind is sent first."""

APART_FROM = 4
"""The round from which the second text is sent in another session."""

AGAIN_MAX = 4
"""Pairs after one that was mixed up."""


async def mixed_by_takers(visit: ProbeSession) -> int:
    """Return how often one input got another's result. Called once a visit."""
    return await visit.asked.get("mixed by takers", lambda: _mixed(visit))


async def _mixed(visit: ProbeSession) -> int:
    most = TAKERS_ASKED if visit.announced else TAKERS_ASKED_UNANNOUNCED
    chosen = [] if is_tight(visit) else [t for t in await takers(visit) if _is_meant(t)][:most]
    chance, found = seeded(visit.nonce or visit.seed, "mixing"), 0
    for taker in chosen:
        mixer = _Mixer(visit, taker, chance, await said_over_http(visit))
        try:
            await mixer.ask()
        except BudgetExhausted:
            return max(found, mixer.sightings)
        found = max(found, mixer.sightings)
    return found


def _is_meant(taker: Taker) -> bool:
    return not says_it_shares(taker.about)


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two texts, and the words that only one of them has."""

    one: str
    other: str
    of_one: str
    words: tuple[str, ...]


class _Mixer:
    """Sends pairs to one taker."""

    def __init__(self, visit: ProbeSession, taker: Taker, chance: Random, said: list[str]) -> None:
        self._visit, self._taker, self._chance, self._said = visit, taker, chance, said
        self.sightings = 0

    async def ask(self) -> None:
        """Send pairs until the result is clear, or the visit's requests are used up."""
        is_echo = await self._ask_endings()
        if is_echo and not self.sightings:
            await self._ask_capitals()

    async def _ask_endings(self) -> bool:
        """Return whether its results contain words of ours."""
        results: dict[int, str] = {}
        for number in range(len(ENDINGS) * TIMES):
            require_room(self._visit)
            kind = number % len(ENDINGS)
            pair = _endings(self._chance, kind, self._another(kind))
            first, second = await self._say(pair, apart=number >= APART_FROM)
            if await self._holds(second, (pair.of_one,)):
                await self._confirm(self._mixes_endings)
                return True
            result = _without(first, pair.words)
            is_same = result and result == _without(second, pair.words)
            is_new = kind not in results and result not in results.values()
            if not is_same or not (is_new or results.get(kind) == result):
                return bool(first) and await self._holds(first, pair.words)
            results[kind] = result
        self.sightings = CONFIRMED_FROM
        return False

    def _another(self, kind: int) -> int:
        return (kind + self._chance.randrange(1, len(ENDINGS))) % len(ENDINGS)

    async def _ask_capitals(self) -> None:
        if await self._mixes_capitals(apart=False):
            await self._confirm(self._mixes_capitals)

    async def _confirm(self, mixes: Callable[..., Awaitable[bool]]) -> None:
        """Within one session it may be intended, so confirm it in another one."""
        for _ in range(AGAIN_MAX):
            self.sightings += await mixes(apart=True)
            if self.sightings >= CONFIRMED_FROM:
                return

    async def _mixes_endings(self, *, apart: bool) -> bool:
        kind = self._chance.randrange(len(ENDINGS))
        pair = _endings(self._chance, kind, self._another(kind))
        _, second = await self._say(pair, apart=apart)
        return await self._holds(second, (pair.of_one,))

    async def _mixes_capitals(self, *, apart: bool) -> bool:
        pair = _capitals(self._chance)
        _, second = await self._say(pair, apart=apart)
        return pair.one in second and pair.other not in second

    async def _say(self, pair: _Pair, *, apart: bool) -> tuple[str, str]:
        if self._taker.kind == "http":
            self._said.extend(pair.words)
        first: TakerReply = await self._taker.hand(pair.one)
        hand = self._taker.hand_apart if apart else self._taker.hand
        return first.text, (await hand(pair.other)).text

    async def _holds(self, text: str, words: tuple[str, ...]) -> bool:
        return await self._visit.slices.run(find_word(text, words)) is not None


def _endings(chance: Random, first: int, second: int) -> _Pair:
    """Return two texts that begin alike; a kind has one length, whatever its words."""
    begin = f"{word(chance, 5).capitalize()} {word(chance, 5)} {word(chance, 5)}"
    ends = [[word(chance, 5) for _ in range(ENDINGS[kind])] for kind in (first, second)]
    one, other = (f"{begin} {' '.join(end)}" for end in ends)
    return _Pair(one, other, ends[0][0], (*begin.casefold().split(), *ends[0], *ends[1]))


def _capitals(chance: Random) -> _Pair:
    """Return one word in two irregular spellings, neither the other's inverse in capitals."""
    letters = word(chance, 6)
    while True:
        one, other = (
            "".join(chance.choice((letter, letter.upper())) for letter in letters) for _ in range(2)
        )
        regular = {letters, letters.upper(), letters.capitalize()}
        if len({one, other, one.swapcase(), *regular}) == 3 + len(regular):
            return _Pair(one, other, one, (letters,))


def _without(text: str, words: tuple[str, ...]) -> str:
    """Return a result without the words of ours in it."""
    plain = text.casefold()
    for one in words:
        plain = plain.replace(one, "")
    return plain
