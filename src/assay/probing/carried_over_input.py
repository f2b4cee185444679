"""Detects whether a tool or an operation passes one caller's input to the next.

The probe sends an invented word, then a usual value, whose answer must not contain the word. Within
one session it may be intended, so it counts only if another session receives it. Source:
evidence.md#leaks.
"""

from assay.probing.answers import says_it_shares
from assay.probing.conversations import CONFIRMED_FROM, REPEATS_MAX
from assay.probing.instructions import seeded, word
from assay.probing.ports import BudgetExhausted, ProbeSession
from assay.probing.session import is_tight, require_room
from assay.probing.shared_answers import said_over_http
from assay.probing.text_forms import find_word
from assay.probing.text_inputs import Taker, takers

ROUNDS, ROUNDS_UNANNOUNCED = 3, 2
"""Rounds of words and a usual value, while nothing has been repeated yet."""


async def repeated_by_takers(visit: ProbeSession) -> int:
    """Return how often other sessions received our words. Called once a visit."""
    return await visit.asked.get("repeated by takers", lambda: _repeated(visit))


async def _repeated(visit: ProbeSession) -> int:
    listener = _Listener(visit)
    try:
        asked = [t for t in await takers(visit) if t.usual and not says_it_shares(t.about)]
        for taker in [] if is_tight(visit) else asked[:1]:
            for _ in range(ROUNDS if visit.announced else ROUNDS_UNANNOUNCED):
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
                (await said_over_http(self._visit)).append(self._words[-1])
            await taker.hand(self._words[-1])
        hand = taker.hand_apart if apart else taker.hand
        reply = await hand(taker.usual)
        found = await self._visit.slices.run(find_word(reply.text, self._words))
        self.repeated_apart += apart and found is not None
        return found is not None
