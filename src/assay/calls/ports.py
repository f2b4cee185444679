"""What the call log needs of the outside."""

from collections.abc import Sequence
from typing import Protocol

from assay.calls.model import Call


class CallStore(Protocol):
    """Durable rows of calls."""

    async def add(self, batch: Sequence[Call]) -> None:
        """Store all of them in one transaction."""
        ...

    async def recent(self, operator_id: str, at_most: int) -> Sequence[Call]:
        """The operator's newest calls."""
        ...
