"""Short-lived shared facts: used challenges, revoked sessions, counters."""

from typing import Protocol


class SharedState(Protocol):
    """A key-value store whose entries end by themselves. Every operation is atomic.

    Keys are at most 200 characters, values at most 4,096. A lost or unreachable store raises
    `common.errors.Unavailable`: what guards access must fail closed.
    """

    async def put_if_absent(self, key: str, value: str, ttl_s: float) -> bool:
        """Store and return True, or leave what is there (unexpired) and return False."""
        ...

    async def put(self, key: str, value: str, ttl_s: float) -> None:
        """Store, replacing what was there."""
        ...

    async def get(self, key: str) -> str | None:
        """The unexpired value, or None."""
        ...

    async def take(self, key: str) -> str | None:
        """The unexpired value, removed in the same step: of two callers at most one gets it."""
        ...
