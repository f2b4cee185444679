"""Detects answers that contain what belongs to another caller or another input.

Detects whether one HTTP request's content appears in another's answer.

Each plain HTTP request stands alone and is anonymous. So a word of ours in the query or in a token
must appear in no answer but its own: neither in the body nor in a header, in any spelling. All
answers of the visit are searched, including those to other probes.
Source: evidence.md#leaks.

Detects whether a tool or an operation passes one caller's input to the next.

The probe sends an invented word, then a usual value, whose answer must not contain the word. Within
one session it may be intended, so it counts only if another session receives it. Source:
evidence.md#leaks.

Detects whether a tool or an operation returns the result of another input.

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
from urllib.parse import urlencode, urlsplit

from assay.common.sliced_work import Sliced
from assay.net.egress.ports import OutboundRequest
from assay.probing.conversations import (
    CONFIRMED_FROM,
    FORWARDED,
    REPEATS_MAX,
    provoked,
    says_it_shares,
)
from assay.probing.function.words import leaves
from assay.probing.hidden_texts import find_word
from assay.probing.instructions import seeded, word
from assay.probing.ports import BudgetExhausted, ProbeSession
from assay.probing.probe_client import ask, canary, first, unknown_url
from assay.probing.session import Exchange, VisitHttp, is_tight, require_room
from assay.probing.text_tools import Taker, TakerReply, documented, takers

ROUNDS_SHARED, ROUNDS_SHARED_MORE = 2, 4
"""Pairs of requests in an announced visit of one service; in all, after a first sighting."""

PARAMETER = "ref"
_SYLLABLES = 6


async def _said_over_http(visit: ProbeSession) -> list[str]:
    """Return the words of ours sent in requests without a session; probes add to it."""
    return await visit.asked.get("said over http", _none)


async def _none() -> list[str]:
    return []


async def overheard(visit: ProbeSession) -> int:
    """Return how many answers revealed another request. Called once a visit."""
    return await visit.asked.get("overheard", lambda: _overheard(visit))


async def _overheard(visit: ProbeSession) -> int:
    service, http = first(visit, "http"), visit.http
    if service is None or not isinstance(http, VisitHttp):
        return 0
    if http.entry.entered([service.service.endpoint]):
        return 0  # A caller with a credential is known, and may see its own earlier requests.
    document = await documented(visit) or {}
    if says_it_shares("\n".join(leaves(document.get("info")))):
        return 0
    words, chance = await _said_over_http(visit), seeded(visit.nonce or visit.seed, "overhearing")
    rounds, is_odd = 0 if is_tight(visit) else ROUNDS_SHARED, chance.randrange(2)
    if visit.announced:  # A request of the probes of leaks, which contains a word as well.
        await provoked(visit)
        words.append(canary(visit, FORWARDED))
    try:
        found = await visit.slices.run(_find_foreign(http.exchanges, words))
        for number in range(ROUNDS_SHARED_MORE if visit.announced else 0):
            if found >= CONFIRMED_FROM or (number >= rounds and not found):
                break
            asks_unknown = (number + is_odd) % 2 == 1
            words += await _say(visit, service.service.endpoint, chance, asks_unknown=asks_unknown)
            found = await visit.slices.run(_find_foreign(http.exchanges, words))
    except BudgetExhausted:
        pass  # Earlier answers count.
    return await visit.slices.run(_find_foreign(http.exchanges, words))


async def _say(visit: ProbeSession, url: str, chance: Random, *, asks_unknown: bool) -> list[str]:
    """Send a request with words of ours, then one without, to the same or an unknown address."""
    words = [word(chance, _SYLLABLES) for _ in range(2)]
    parts = urlsplit(url)
    query = "&".join(filter(None, [parts.query, urlencode({PARAMETER: words[0]})]))
    said = parts._replace(query=query, fragment="").geturl()
    await ask(visit, OutboundRequest("GET", said, {"authorization": f"Bearer {words[1]}"}))
    then = unknown_url(visit, url) if asks_unknown else url
    await ask(visit, OutboundRequest("GET", then, VisitHttp.REPEAT))
    return words


def _find_foreign(exchanges: list[Exchange], words: list[str]) -> Sliced[int]:
    """Return how many answers contain a word that their own request did not."""
    found = 0
    for one in [*exchanges]:
        foreign = [w for w in words if w not in one.sent.casefold()]
        if foreign and (yield from find_word(one.received, foreign)) is not None:
            found += 1
    return found


ROUNDS_CARRIED, ROUNDS_CARRIED_UNANNOUNCED = 3, 2
"""Rounds of words and a usual value, while nothing has been repeated yet."""


async def repeated_by_takers(visit: ProbeSession) -> int:
    """Return how often other sessions received our words. Called once a visit."""
    return await visit.asked.get("repeated by takers", lambda: _repeated(visit))


async def _repeated(visit: ProbeSession) -> int:
    listener = _Listener(visit)
    try:
        asked = [t for t in await takers(visit) if t.usual and not says_it_shares(t.about)]
        for taker in [] if is_tight(visit) else asked[:1]:
            for _ in range(ROUNDS_CARRIED if visit.announced else ROUNDS_CARRIED_UNANNOUNCED):
                require_room(visit)
                if await listener.hears(taker, apart=False):
                    return await _confirmed(listener, taker)
    except BudgetExhausted:
        return listener.repeated_apart
    return listener.repeated_apart


async def _confirmed(listener: "_Listener", taker: Taker) -> int:
    for _ in range(2 * REPEATS_MAX):
        if listener.repeated_apart >= CONFIRMED_FROM:
            break
        await listener.hears(taker, apart=True)
    return listener.repeated_apart


class _Listener:
    """Sends words, and searches later answers for them."""

    def __init__(self, visit: ProbeSession) -> None:
        self._visit = visit
        self._chance = seeded(visit.nonce or visit.seed, "repeating")
        self._words: list[str] = []
        self.repeated_apart = 0

    async def hears(self, taker: Taker, *, apart: bool) -> bool:
        """Send a word or two, then ask as usual, in that session or in another one."""
        for _ in range(self._chance.randint(1, 2)):
            self._words.append(word(self._chance, 6))
            if taker.kind == "http":
                (await _said_over_http(self._visit)).append(self._words[-1])
            await taker.hand(self._words[-1])
        hand = taker.hand_apart if apart else taker.hand
        reply = await hand(taker.usual)
        found = await self._visit.slices.run(find_word(reply.text, self._words))
        self.repeated_apart += apart and found is not None
        return found is not None


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
        mixer = _Mixer(visit, taker, chance, await _said_over_http(visit))
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
