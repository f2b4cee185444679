"""Which log-ins the audit trail notes. Guessing must not fill it.

The first of a day are noted one by one, then each time their number has doubled; every note says
how many there were. What an administrator does is not counted here: all of it is noted.
"""

from typing import Final

from assay.common.addresses import caller_of
from assay.common.cache import BoundedMap
from assay.common.clock import Clock
from assay.common.cost_windows import DAY_S

RECORDED_EACH: Final = 5
"""Log-ins of one kind, account and network that are noted one by one in a day."""

RECORDED_OF_ACCOUNT: Final = 100
"""Of one kind and account, from wherever, before only doublings of their sum are noted."""

REMEMBERED_MAX: Final = 100_000


class LoginNotes:
    """Counts log-ins by kind, account and network, for a day each."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._counts: BoundedMap[tuple[str, str, str], tuple[int, int]] = BoundedMap(REMEMBERED_MAX)

    def count(self, kind: str, operator_id: str, client_address: str) -> int | None:
        """Count one; how many there have been today where that is to be noted, else None."""
        network = caller_of(client_address)
        number = self._next((kind, operator_id, network))
        of_account = self._next((kind, operator_id, ""))
        is_due = number <= RECORDED_EACH or _has_doubled(number)
        if is_due and (of_account <= RECORDED_OF_ACCOUNT or _has_doubled(of_account)):
            return number
        return of_account if _has_doubled(of_account) else None

    def _next(self, key: tuple[str, str, str]) -> int:
        day = int(self._clock.monotonic_s() // DAY_S)
        known = self._counts.get(key)
        number = 1 if known is None or known[0] != day else known[1] + 1
        self._counts.put(key, (day, number))
        return number


def _has_doubled(number: int) -> bool:
    return number & (number - 1) == 0
