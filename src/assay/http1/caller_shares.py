"""Who may have how many of the calls under way at one upstream.

Strangers, accounts and agents can all be had for little, so nobody has a fixed share that enough
others could use up: a share is of what is still free. The last caller finds something left, too.
"""

from typing import Final

from assay.common.errors import ServiceError, Unavailable
from assay.http1.callers import Caller, UpstreamBusy
from assay.http1.model import upstream_failed

CALLS_MAX: Final = 1024
"""Under way at one upstream from one process."""

UNPAID_CALLS_MAX: Final = 768
"""Those among them that are not paid for; a quarter is left to calls that are.

A caller has at most half as many as are free, a network as many, an operator twice as many. Where
nobody else calls, that is 256, 384 and 512. Source: dynamic thresholds (Choudhury and Hahne, 1998).
"""

_RETRY_S: Final = 1
"""When a place may be free again: nobody knows how long the calls in the way will take."""


class UpstreamShares:
    """Counts the calls under way at one upstream, by caller, network and operator.

    It is asked for every call of the fast lane too: it makes nothing, and waits for nothing.
    """

    __slots__ = ("_find", "_held", "calls")

    def __init__(self) -> None:
        self._held: dict[str, int] = {}
        self._find = self._held.get
        self.calls = 0
        """Under way."""

    def take(self, caller: Caller | None, operator_id: str) -> bool:
        """Count one more, if caller and operator may have it. Without a caller it is our own."""
        if caller is None:
            is_free = self._free(caller) > 0
            self.calls += is_free
            return is_free
        find, held, calls = self._find, self._held, self.calls
        own_key, group_key = caller.own, caller.group
        own, group, operator = find(own_key, 0), find(group_key, 0), find(operator_id, 0)
        if calls >= UNPAID_CALLS_MAX // 4:  # where fewer are under way, nobody has too many of them
            free = self._free(caller)
            if own * 2 >= free or group >= free or operator >= free * 2:
                return False
        held[own_key], held[group_key], held[operator_id] = own + 1, group + 1, operator + 1
        self.calls = calls + 1
        return True

    def give_back(self, caller: Caller | None, operator_id: str) -> None:
        """A call that was counted is over."""
        self.calls -= 1
        if caller is None:
            return
        held = self._held
        for key in (caller.own, caller.group, operator_id):
            count = held[key]
            if count == 1:
                del held[key]
            else:
                held[key] = count - 1

    def refusal(self, caller: Caller | None, operator_id: str) -> ServiceError:
        """Why `take` has just said no. The upstream has done nothing."""
        free = self._free(caller)
        if caller is None:
            return upstream_failed("too many requests to it are under way")
        if free > 0:
            own, group = self._held.get(caller.own, 0), self._held.get(caller.group, 0)
            if own * 2 >= free or group >= free:
                who = "You have" if own * 2 >= free else "Callers of your network have"
                return UpstreamBusy(
                    f"{who} as many calls of this upstream under way as are allowed now: "
                    "try again when one has ended.",
                    retry_after_s=_RETRY_S,
                )
            if self._held.get(operator_id, 0) >= free * 2:
                return _unavailable("Too many calls of this operator's wrappers are under way.")
        return _unavailable("Too many calls of this wrapper's upstream are under way.")

    def _free(self, caller: Caller | None) -> int:
        may = CALLS_MAX if caller is None or caller.is_paid else UNPAID_CALLS_MAX
        return may - self.calls


def _unavailable(message: str) -> Unavailable:
    return Unavailable(message, retry_after_s=_RETRY_S)
