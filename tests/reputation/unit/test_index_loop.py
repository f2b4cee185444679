"""The loop that reads the index on: what is forgotten makes room before more is read."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from assay.app.reputation import ReputationParts, index_forever
from assay.reputation.ports import Stream
from tests.support.fakes.trust import NETWORK

PARTS = 11
"""Rows that were forgotten are removed in so many parts."""


@dataclass
class Index:
    """A store, its retention, what reads it, and the state of all processes, in one."""

    left: int = PARTS
    calls: list[str] = field(default_factory=list[str])
    was_read: asyncio.Event = field(default_factory=asyncio.Event)

    async def watch(self, streams: Sequence[Stream], block: int) -> Mapping[Stream, object]:
        self.calls += [f"watch {one.subject} {block}" for one in streams]
        return {}

    async def networks(self) -> Sequence[str]:
        return [NETWORK.slug]

    async def forget(self) -> None:
        self.calls.append("forget")

    async def remove(self) -> bool:
        self.left -= 1
        return self.left > 0

    async def step(self, network: object, kinds: Sequence[str]) -> bool:
        del network
        self.calls.append(kinds[0])
        if kinds == ("payments",):
            self.was_read.set()
        return False

    async def put_if_absent(self, *_: object) -> bool:
        return True


async def test_no_payments_are_read_while_rows_of_forgotten_ones_are_removed() -> None:
    index: Any = Index()
    listed = {Stream("payments", NETWORK.slug, "0xa"): 7}
    parts = ReputationParts(index, index, index, index, {NETWORK.slug: NETWORK}, 0.0, listed)
    async with asyncio.TaskGroup() as group:
        loop = group.create_task(index_forever(parts, index, index))
        await index.was_read.wait()
        loop.cancel()
    assert index.left <= 0
    # What an operator lists is needed before anything is forgotten.
    assert index.calls[:2] == ["watch 0xa 6", "forget"]
    others = [one for one in index.calls[:-1] if one != "forget" and "watch" not in one]
    assert set(others) == {"feedback", "owners", "funding"}
    assert index.calls.count("funding") > 1
