"""Reads events into the store, range by range, in the background and rate-limited.

Only blocks at least `TAIL` below the newest are stored. A cursor keeps the hash of its block: if
the chain has another block there, everything from `REWIND` blocks before is deleted. Two processes
may read the same range; one of them stores it.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from assay.chains.evm.abi import BadAnswer
from assay.chains.model import ChainUnavailable, Network
from assay.chains.rpc import Rpc, RpcRefused
from assay.common.cache import BoundedMap
from assay.reputation.events import (
    head_of,
    read_feedback,
    read_fundings,
    read_owners,
    read_payments,
)
from assay.reputation.ports import EventCursor, EventKind, EventStore, Stream
from assay.reputation.rows import Batch, PaymentChain

TAIL = 128
"""Blocks that may still be reorganised."""

REWIND = 5_000
RANGE = 10_000
"""Initial size of a range in blocks, and what an evaluation reads at once beyond the index."""

RANGE_MOST = 1_000_000
SUBJECTS = 100
"""Addresses in one query."""

NETWORKS_KEPT = 200

KINDS: Final[Sequence[EventKind]] = ("feedback", "owners", "payments", "funding")


class Indexer:
    """Reads one range at a time of the stream that is furthest behind."""

    def __init__(
        self, rpc: Rpc, store: EventStore, chains: Mapping[str, PaymentChain], tail: int = TAIL
    ) -> None:
        self._rpc = rpc
        self._store = store
        self._chains = chains
        self._tail = tail
        self._sizes: BoundedMap[tuple[str, str], int] = BoundedMap(NETWORKS_KEPT * len(KINDS))

    async def step(self, network: Network, kinds: Sequence[EventKind] = KINDS) -> bool:
        """Read the next range of each kind; return whether there is more to read now.

        Raises `ChainUnavailable` and `BadAnswer`; unread ranges are read again.
        """
        head, _, _ = await head_of(self._rpc, network)
        more = False
        for kind in kinds:
            more |= await self._step(network, kind, head - self._tail)
        return more

    async def _step(self, network: Network, kind: EventKind, last: int) -> bool:
        due = await self._store.due(kind, network.slug, last, SUBJECTS)
        if not due:
            return False
        streams, was = [stream for stream, _ in due], due[0][1]
        if was.block_hash and not await self._stands(network, was):
            await self._store.rewind(network.slug, max(-1, was.block - REWIND))
            return True
        key = network.slug, kind
        size = self._sizes.get(key) or RANGE
        until = min(last, was.block + size)
        try:
            batch = await self.read(network, kind, was.block + 1, until, streams)
        except (RpcRefused, BadAnswer):
            self._sizes.put(key, max(1, size // 2))
            if size == 1:
                raise
            return True
        _, _, block_hash = await head_of(self._rpc, network, hex(until))
        self._sizes.put(key, min(RANGE_MOST, size * 2))
        now = EventCursor(until, block_hash, is_whole=until == last)
        await self._store.advance(streams, was, now, batch)
        return True

    async def read(
        self, network: Network, kind: EventKind, first: int, last: int, streams: Sequence[Stream]
    ) -> Batch:
        """Read a range of streams of one kind. Raises `ChainUnavailable` and `BadAnswer`."""
        if kind == "feedback":
            return await read_feedback(self._rpc, network, first, last)
        if kind == "owners":
            return await read_owners(self._rpc, network, first, last)
        chain, subjects = self._chains.get(network.slug), [one.subject for one in streams]
        if chain is None:
            raise ChainUnavailable(f"{network.slug} has no listed asset.")
        reading = read_payments if kind == "payments" else read_fundings
        return await reading(self._rpc, chain, first, last, subjects)

    async def _stands(self, network: Network, cursor: EventCursor) -> bool:
        """Return whether the chain still has the block that was read last."""
        try:
            _, _, block_hash = await head_of(self._rpc, network, hex(cursor.block))
        except RpcRefused:
            return False
        return block_hash == cursor.block_hash
