"""An agent's facts: the index, and at most two ranges of blocks beyond what it has read."""

import asyncio
from collections.abc import Mapping, Sequence

from assay.chains.abi import BadAnswer
from assay.chains.erc8004 import ZERO_ADDRESS
from assay.chains.model import ChainUnavailable, Network, OnchainAgent
from assay.chains.ports import Rpc
from assay.kit.cache import Cache
from assay.kit.clock import Clock
from assay.reputation.events import (
    DAY_S,
    head_of,
    read_feedback,
    read_fundings,
    read_owners,
    read_payments,
)
from assay.reputation.facts import AgentFacts, NotIndexed
from assay.reputation.indexer import RANGE, SUBJECTS
from assay.reputation.payers import Money, joined, payers_of, with_tail
from assay.reputation.ports import NEUTRAL_FROM, Cursor, EventStore, Stream
from assay.reputation.rows import Batch, PaymentChain
from assay.reputation.rules import MATURE_DAYS, usual_price

FACTS_TTL_S = 30.0
FACTS_KEPT = 200_000
"""Payers and entries of all agents together: about 80 MiB."""

RANGES = 2
"""Ranges an evaluation reads beyond the indexed head; further behind, it waits for the index."""

PAYERS_READ = 500
"""Payers whose funding is looked for, those that paid most."""

SOURCE_STEPS = 10
"""How far funding is followed: a longer chain of transfers costs more than what an exchange takes
for one more address, so that nobody saves by it."""


class IndexedFacts:
    """Implements `facts.FactsSource` over the store and the chains' nodes."""

    def __init__(
        self,
        rpc: Rpc,
        store: EventStore,
        chains: Mapping[str, PaymentChain],
        clock: Clock,
        sellers: frozenset[str] = frozenset(),
    ) -> None:
        """`sellers`, where there are any, are those that prove a customer's independence."""
        self._rpc = rpc
        self._sellers = sellers
        self._store = store
        self._chains = chains
        self._clock = clock
        self._cache: Cache[AgentFacts] = Cache(clock, FACTS_TTL_S, FACTS_KEPT, _weight)

    async def facts(self, agent: OnchainAgent, clients: Sequence[str]) -> AgentFacts:
        """See `facts.FactsSource.facts`. Remembered for a short time."""
        del clients
        key = f"{agent.network.slug}/{agent.agent_id}/{agent.wallet}/{agent.owner}"
        return await self._cache.get(key, lambda: self._read(agent))

    async def _read(self, agent: OnchainAgent) -> AgentFacts:
        try:
            return await self._whole(agent)
        except NotIndexed as error:
            raise NotIndexed(str(error), await self.known(agent)) from error

    async def known(self, agent: OnchainAgent) -> AgentFacts | None:
        """See `facts.FactsSource.known`. A part of the payments is not held for the whole."""
        found = await self._assembled(agent, {}, live=False)
        cursors = await self._cursors(agent)
        paid = [cursor for stream, cursor in cursors.items() if stream.kind == "payments"]
        return found if all(cursor.is_whole for cursor in paid) else None

    async def _whole(self, agent: OnchainAgent) -> AgentFacts:
        """Everything up to the newest block. Raises `NotIndexed`."""
        before = await self._cursors(agent)
        found = await self._assembled(agent, await self._tails(agent, before), live=True)
        after = await self._cursors(agent)
        if any(after[one].block < before[one].block for one in before):
            raise NotIndexed("what was read before was forgotten meanwhile")
        return found

    async def spent(self, network: Network, wallet: str, side: frozenset[str]) -> int | None:
        """See `facts.FactsSource.spent`."""
        if network.family != "evm":
            return None
        total, others = 0, sorted(side - {wallet})
        until = int(self._clock.now().timestamp()) // DAY_S - MATURE_DAYS
        for chain in self.chains_of(network):
            slug = chain.network.slug
            funded = await self._store.fundings(slug, [wallet])
            found = await self._store.elsewhere(
                slug, [wallet], others, self._sellers, until_day=until
            )
            if wallet in funded:
                total += found.get(wallet, 0)
            elif found:  # who funded it is to be read first: it may have been one of the sellers
                await self._store.watch([Stream("funding", slug, wallet)], -1)
        return total

    def chains_of(self, network: Network) -> Sequence[PaymentChain]:
        """The networks whose money counts: test money for test registries, and no other."""
        return [c for c in self._chains.values() if c.network.testnet == network.testnet]

    def _streams(self, agent: OnchainAgent) -> Mapping[Stream, Network]:
        own = agent.network
        streams = {Stream("feedback", own.slug): own, Stream("owners", own.slug): own}
        if agent.wallet is not None:
            for one in self.chains_of(agent.network):
                streams[Stream("payments", one.network.slug, agent.wallet)] = one.network
        return streams

    async def _cursors(self, agent: OnchainAgent) -> Mapping[Stream, Cursor]:
        found: dict[Stream, Cursor] = {}
        for stream, network in self._streams(agent).items():
            found.update(await self._store.watch([stream], (network.start_block or 0) - 1))
        return found

    async def _tails(
        self, agent: OnchainAgent, cursors: Mapping[Stream, Cursor]
    ) -> Mapping[tuple[str, str], Batch]:
        """What is beyond the index, by network and kind. Raises `NotIndexed`."""
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(self._tail(network, stream, cursors[stream], agent))
                    for stream, network in self._streams(agent).items()
                ]
        except ExceptionGroup as faults:
            raise faults.exceptions[0] from faults
        return dict(task.result() for task in tasks)

    async def _tail(
        self, network: Network, stream: Stream, cursor: Cursor, agent: OnchainAgent
    ) -> tuple[tuple[str, str], Batch]:
        try:
            head, _, _ = await head_of(self._rpc, network)
            batches = await self._ranges(network, stream, cursor, head, agent)
        except (ChainUnavailable, BadAnswer) as error:
            raise NotIndexed(f"{network.slug} could not be read to its newest block") from error
        return (network.slug, stream.kind), joined(batches)

    async def _ranges(
        self, network: Network, stream: Stream, cursor: Cursor, head: int, agent: OnchainAgent
    ) -> list[Batch]:
        if cursor.is_done or head <= cursor.block:
            return []
        if head - cursor.block > RANGES * RANGE:
            raise NotIndexed(f"{network.slug} has {head - cursor.block} blocks still to be read")
        middle = cursor.block + RANGE
        parts = [(cursor.block + 1, min(head, middle))]
        if head > middle:
            parts.append((middle + 1, head))
        return [await self._range(network, stream, first, last, agent) for first, last in parts]

    async def _range(
        self, network: Network, stream: Stream, first: int, last: int, agent: OnchainAgent
    ) -> Batch:
        if stream.kind == "feedback":
            return await read_feedback(self._rpc, network, first, last, agent.agent_id)
        if stream.kind == "owners":
            return await read_owners(self._rpc, network, first, last, agent.agent_id)
        chain = self._chains[network.slug]
        return await read_payments(self._rpc, chain, first, last, [stream.subject])

    async def _assembled(
        self, agent: OnchainAgent, tails: Mapping[tuple[str, str], Batch], *, live: bool
    ) -> AgentFacts:
        slug, agent_id = agent.network.slug, agent.agent_id
        feedback, owned = tails.get((slug, "feedback"), Batch()), tails.get((slug, "owners"))
        entries = {(e.client, e.index): e for e in await self._store.feedback(slug, agent_id)}
        owners = await self._store.owners(slug, agent_id)
        owners |= {row.owner for row in owned.owners} if owned else frozenset()
        day = int(self._clock.now().timestamp()) // DAY_S
        moneys = [
            await self._money(c, agent, tails.get((c.network.slug, "payments"), Batch()), live=live)
            for c in self.chains_of(agent.network)
            if agent.wallet is not None
        ]
        side = agent.controllers | owners
        payers, prices = payers_of(moneys, agent, side, day)
        return AgentFacts(
            day=day,
            payers=tuple(payers),
            price=usual_price(prices),
            events=with_tail(entries, feedback),
            owners=owners,
        )

    async def _money(
        self, chain: PaymentChain, agent: OnchainAgent, tail: Batch, *, live: bool
    ) -> Money:
        slug, wallet, side = chain.network.slug, agent.wallet or "", sorted(agent.controllers)
        stored = await self._store.transfers(slug, [wallet])
        rows = {(row.tx, row.log): row for row in (*stored, *tail.transfers)}
        spent: dict[str, int] = {}
        for row in rows.values():
            if row.recipient == wallet:
                spent[row.sender] = spent.get(row.sender, 0) + row.amount
        payers = sorted(spent, key=lambda a: (-spent[a], a))[:PAYERS_READ]
        pending, sources = await self._sources(chain, payers, live=live)
        return Money(
            transfers=[rows[key] for key in sorted(rows)],
            ledger=await self._store.ledger(slug, [wallet]),
            elsewhere=await self._store.elsewhere(
                slug, payers, side, self._sellers, is_shared=bool(self._sellers)
            ),
            sources=sources,
            pending=pending,
        )

    async def _sources(
        self, chain: PaymentChain, payers: Sequence[str], *, live: bool
    ) -> tuple[frozenset[str], Mapping[str, tuple[str, ...]]]:
        """Payers whose chain of sources is not read yet; and the sources of each."""
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
        """Accounts that are still to be read, and who first sent a listed asset to the others.

        Raises `NotIndexed` when what is left of the chain could not be read.
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


def _weight(facts: AgentFacts) -> int:
    return 1 + len(facts.payers) + len(facts.events)


def _parts(streams: Sequence[Stream]) -> Sequence[Sequence[Stream]]:
    return [streams[at : at + SUBJECTS] for at in range(0, len(streams), SUBJECTS)]
