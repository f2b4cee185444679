"""Whether a tool or an operation gives one input the result of another.

A cache that is keyed by a part of what it is asked (how it begins, its letters in lower case) gives
the second caller the first one's answer. Two texts that begin alike and end in different ways are
asked one after the other. An answer with words that only the other text had is a leak. Where
results hold no words of ours, what the *first* text was like has to decide both results, and
nothing else: four kinds of endings of different lengths, each asked first twice. A result that
depends on how a text begins, on its first characters or on nothing is honest, and is left after
two or four calls. Last, two spellings of one word that differ in their capitals alone.
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
"""How often each kind is asked first."""

APART_FROM = 4
"""The round from which on the second text is said in another session."""

AGAIN_MAX = 4
"""Pairs after one that was mixed up."""


async def mixed_by_takers(visit: ProbeSession) -> int:
    """How often one input got another's result. Asked once a visit."""
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
    """Two texts, and what stands in one of them alone."""

    one: str
    other: str
    of_one: str
    words: tuple[str, ...]


class _Mixer:
    """Asks one taker for pairs."""

    def __init__(self, visit: ProbeSession, taker: Taker, chance: Random, said: list[str]) -> None:
        self._visit, self._taker, self._chance, self._said = visit, taker, chance, said
        self.sightings = 0

    async def ask(self) -> None:
        """Ask until it is clear, or the visit's requests are used up."""
        is_echo = await self._ask_endings()
        if is_echo and not self.sightings:
            await self._ask_capitals()

    async def _ask_endings(self) -> bool:
        """Whether its results hold words of ours."""
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
        """In one session it may be meant: another one has to get it, too."""
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
    """Two texts that begin alike; a kind has one length, whatever its words."""
    begin = f"{word(chance, 5).capitalize()} {word(chance, 5)} {word(chance, 5)}"
    ends = [[word(chance, 5) for _ in range(ENDINGS[kind])] for kind in (first, second)]
    one, other = (f"{begin} {' '.join(end)}" for end in ends)
    return _Pair(one, other, ends[0][0], (*begin.casefold().split(), *ends[0], *ends[1]))


def _capitals(chance: Random) -> _Pair:
    """One word in two irregular spellings, none the other's reverse in capitals."""
    letters = word(chance, 6)
    while True:
        one, other = (
            "".join(chance.choice((letter, letter.upper())) for letter in letters) for _ in range(2)
        )
        regular = {letters, letters.upper(), letters.capitalize()}
        if len({one, other, one.swapcase(), *regular}) == 3 + len(regular):
            return _Pair(one, other, one, (letters,))


def _without(text: str, words: tuple[str, ...]) -> str:
    """A result without the words of ours that it holds."""
    plain = text.casefold()
    for one in words:
        plain = plain.replace(one, "")
    return plain
