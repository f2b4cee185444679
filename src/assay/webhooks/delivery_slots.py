"""How many deliveries of an account are under way: few for one whose receivers are slow.

An account nothing is known of has two at a time, and one more for each that ended quickly, up to
eight. One that took long takes half of them away. Accounts that are left with one hold half of all
slots together at most, however many they are: the other half is for everybody else.
"""

from collections import Counter
from typing import Final

from assay.common.cache import BoundedMap

AT_ONCE: Final = 64
"""Attempts under way in one process."""

AT_ONCE_OPERATOR: Final = 8
AT_ONCE_UNKNOWN: Final = 2
"""Of an account nothing is known of."""

AT_ONCE_SLOW: Final = AT_ONCE // 2
"""Of all accounts together whose receivers are slow."""

SLOW_S: Final = 2.0
"""An attempt that took longer was slow."""

REMEMBERED_MAX: Final = 2_000
"""Accounts whose share is not the usual one; the one that changed least recently is forgotten."""


class DeliverySlots:
    """Counts attempts under way; decides whose may begin."""

    def __init__(self) -> None:
        self._busy: Counter[str] = Counter()
        self._shares: BoundedMap[str, int] = BoundedMap(REMEMBERED_MAX)

    def batch(self) -> int:
        """How many attempts may begin next, of whichever accounts are not `full`; 0: none."""
        slow_left = AT_ONCE_SLOW - self._slow_busy()
        free = min(AT_ONCE_OPERATOR, AT_ONCE - self._busy.total())
        return min(free, slow_left) if slow_left > 0 else free

    def left(self, operator_id: str) -> int:
        """How many more attempts an account's share leaves."""
        return max(0, self._share(operator_id) - self._busy[operator_id])

    def full(self) -> list[str]:
        """Accounts of which nothing may begin now."""
        full = {who for who, busy in self._busy.items() if busy >= self._share(who)}
        if self._slow_busy() >= AT_ONCE_SLOW:
            full |= {who for who, share in self._shares.items() if share == 1}
        return sorted(full)

    def begin(self, operator_id: str) -> None:
        """Count an attempt."""
        self._busy[operator_id] += 1

    def end(self, operator_id: str, *, is_slow: bool | None) -> None:
        """An attempt ended; `is_slow` None: nothing was sent, so that nothing was learned."""
        self._busy[operator_id] -= 1
        if not self._busy[operator_id]:
            del self._busy[operator_id]
        if is_slow is None:
            return
        share = self._share(operator_id)
        changed = max(1, share // 2) if is_slow else min(AT_ONCE_OPERATOR, share + 1)
        self._shares.put(operator_id, changed)

    def _share(self, operator_id: str) -> int:
        return self._shares.get(operator_id) or AT_ONCE_UNKNOWN

    def _slow_busy(self) -> int:
        return sum(busy for who, busy in self._busy.items() if self._share(who) == 1)
