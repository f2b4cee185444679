"""Finds where payers' money came from, in the index and at most two ranges beyond it."""

from collections.abc import Mapping, Sequence

from assay.chains.evm.abi import BadAnswer
from assay.chains.model import ChainUnavailable
from assay.chains.rpc import Rpc
from assay.registries.erc8004 import ZERO_ADDRESS
from assay.reputation.events import head_of, read_fundings
from assay.reputation.facts import NotIndexed
from assay.reputation.indexer import RANGE, SUBJECTS
from assay.reputation.ports import NEUTRAL_FROM, EventStore, Stream
from assay.reputation.rows import PaymentChain

RANGES = 2
"""Ranges an evaluation reads beyond the indexed head; if more are missing, it waits for the
index."""

SOURCE_STEPS = 10
"""Steps that funding is followed back. A longer chain of transfers costs more than an exchange
charges for another address, so it saves nothing."""


class Funding:
    """Traces the money of payers back, over the store and the chains' nodes."""

    def __init__(self, rpc: Rpc, store: EventStore) -> None:
        self._rpc = rpc
        self._store = store

    async def sources(
        self, chain: PaymentChain, payers: Sequence[str], *, live: bool
    ) -> tuple[frozenset[str], Mapping[str, tuple[str, ...]]]:
        """Return payers whose chain of sources is not read yet, and the sources of each."""
        slug = chain.network.slug
        pending, found = await self._funders(chain, payers, live=live)
        sources: dict[str, list[str]] = {one: [] for one in payers}
        ends = {one: one for one in payers}
        for _ in range(SOURCE_STEPS):
            nexts = {payer: found[end] for payer, end in ends.items() if end in found}
            counts = await self._store.funded(slug, sorted(set(nexts.values())))
            ends = {
                payer: source
                for payer, source in nexts.items()
                if counts.get(source, 0) < NEUTRAL_FROM and source not in {payer, ZERO_ADDRESS}
            }
            for payer, source in ends.items():
                sources[payer].append(source)
            if not ends:
                break
            unread, found = await self._funders(chain, sorted(set(ends.values())), live=live)
            pending |= {payer for payer, source in ends.items() if source in unread}
        return pending, {one: tuple(dict.fromkeys(those)) for one, those in sources.items()}

    async def _funders(
        self, chain: PaymentChain, accounts: Sequence[str], *, live: bool
    ) -> tuple[frozenset[str], Mapping[str, str]]:
        """Return accounts not read yet, and who first sent a listed asset to the others.

        Raises `NotIndexed` when the rest of the chain could not be read.
        """
        slug = chain.network.slug
        found = dict(await self._store.fundings(slug, accounts))
        missing = [Stream("funding", slug, one) for one in accounts if one not in found]
        if not live or not missing:
            return frozenset(), found
        cursors = await self._store.watch(missing, -1)
        try:
            head, _, _ = await head_of(self._rpc, chain.network)
            near = sorted(s for s, c in cursors.items() if head - c.block <= RANGES * RANGE)
            for part in _parts(near):
                first = min(cursors[one].block for one in part) + 1
                names = [one.subject for one in part]
                for at in range(first, head + 1, RANGE):
                    last = min(head, at + RANGE - 1)
                    batch = await read_fundings(self._rpc, chain, at, last, names)
                    for account, (funder, _) in batch.fundings.items():
                        found.setdefault(account, funder)
        except (ChainUnavailable, BadAnswer) as error:
            raise NotIndexed(f"funding on {slug} could not be read") from error
        return frozenset(one.subject for one in missing if one not in set(near)), found


def _parts(streams: Sequence[Stream]) -> Sequence[Sequence[Stream]]:
    return [streams[at : at + SUBJECTS] for at in range(0, len(streams), SUBJECTS)]
