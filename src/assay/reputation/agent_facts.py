"""Reads an agent's facts from the index, and at most two ranges of blocks beyond it.

Derives payers from transfers and their sources. Pure.

Finds where payers' money came from, in the index and at most two ranges beyond it.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from assay.chains.evm.abi import BadAnswer
from assay.chains.model import ChainUnavailable, Network
from assay.chains.rpc import Rpc
from assay.common.cache import Cache
from assay.common.clock import Clock
from assay.registries.erc8004 import ZERO_ADDRESS
from assay.registries.model import OnchainAgent
from assay.reputation.events import (
    DAY_S,
    RANGE,
    SUBJECTS,
    head_of,
    read_feedback,
    read_fundings,
    read_owners,
    read_payments,
)
from assay.reputation.model import (
    AgentFacts,
    Batch,
    FeedbackEvent,
    NotIndexed,
    Payer,
    PaymentChain,
    ProvenPayment,
    TransferRow,
)
from assay.reputation.ports import NEUTRAL_FROM, EventCursor, EventStore, LedgerPayment, Stream
from assay.reputation.rules import FULL, MATURE_DAYS, usual_price
from assay.reputation.vouchers import Vouchers

DAYS_KEPT = 30
"""Days of payments kept separately, of those that count in full; earlier ones are added to them."""


@dataclass(frozen=True, slots=True)
class Money:
    """The payments of one network to and from an agent."""

    transfers: Sequence[TransferRow]
    ledger: Sequence[LedgerPayment]
    elsewhere: Mapping[str, int]
    sources: Mapping[str, tuple[str, ...]]
    """Sources of the payers whose funding has been read."""
    pending: frozenset[str]
    proven: frozenset[tuple[str, int]] = frozenset()
    """Transaction and index of the transfers that feedback files proved, including those to
    `former`."""
    former: frozenset[str] = frozenset()
    """Earlier wallets of the agent."""
    resold: Sequence[LedgerPayment] = ()
    """Earnings of resellers from the agent's services, through their own wrappers."""


def joined(batches: Sequence[Batch]) -> Batch:
    """Join ranges of one stream."""
    return Batch(
        feedback=[row for one in batches for row in one.feedback],
        notes=[row for one in batches for row in one.notes],
        owners=[row for one in batches for row in one.owners],
        transfers=[row for one in batches for row in one.transfers],
    )


def _with_tail(
    entries: Mapping[tuple[str, int], FeedbackEvent], tail: Batch
) -> Mapping[tuple[str, int], FeedbackEvent]:
    """Merge entries with later events beyond the index."""
    found = dict(entries)
    for row in tail.feedback:
        event = FeedbackEvent(
            *(row.client, row.number, row.rating, row.day, row.uri, row.digest),
            file="unchecked" if row.uri else "none",
        )
        found.setdefault((row.client, row.number), event)
    for note in tail.notes:
        one = found.get((note.client, note.number))
        if one is not None and note.is_revocation:
            found[note.client, note.number] = replace(one, is_revoked=True)
        elif one is not None:
            found[note.client, note.number] = replace(one, responses=one.responses + 1)
    return found


def payers_of(
    moneys: Sequence[Money], agent: OnchainAgent, side: frozenset[str], day: int
) -> tuple[list[Payer], Mapping[str, Sequence[int]]]:
    """Return payers over all networks, and the individual payments of each."""
    payers: dict[str, Payer] = {}
    prices: dict[str, list[int]] = {}
    for money in moneys:
        paid_out = {row.recipient for row in money.transfers if row.sender in side}
        for row in money.transfers:
            is_payment = row.recipient == agent.wallet or (row.tx, row.log) in money.proven
            if is_payment and row.sender in money.sources:
                one = _fresh(payers, row.sender, money, side, paid_out)
                payers[row.sender] = _paid(one, row.amount, row.day, day, row.is_charge)
                prices.setdefault(row.sender, []).append(row.amount)
        for row in money.transfers:
            if row.sender in side and row.recipient in payers:
                one = payers[row.recipient]
                payers[row.recipient] = replace(one, returned=one.returned + row.amount)
        _add_ledger(payers, prices, money, side, day)
        for entry in _resold(money):
            one = _fresh(payers, entry.payer, money, side, paid_out)
            payers[entry.payer] = _paid_others(one, entry.amount, entry.day, day)
    return [payers[one] for one in sorted(payers)], prices


def _add_ledger(
    payers: dict[str, Payer],
    prices: dict[str, list[int]],
    money: Money,
    side: frozenset[str],
    day: int,
) -> None:
    """Add payments to the agent that appear in our own ledger but not in any read transfer."""
    seen = {row.tx for row in money.transfers}
    for entry in money.ledger:
        if entry.tx.lower() not in seen:
            one = payers.get(entry.payer) or Payer(entry.payer, {}, counts_as_customer=False)
            one = replace(one, is_own=one.is_own or entry.payer in side)
            payers[entry.payer] = _paid(one, entry.amount, entry.day, day, is_charge=True)
            prices.setdefault(entry.payer, []).append(entry.amount)


def _resold(money: Money) -> Sequence[LedgerPayment]:
    """Return payments to resellers, except by accounts they funded and those counted here."""
    seen = {row.tx for row in money.transfers}
    return [
        one
        for one in money.resold
        if one.tx not in seen and one.payee not in money.sources.get(one.payer, (one.payee,))
    ]


def _fresh(
    payers: Mapping[str, Payer],
    address: str,
    money: Money,
    side: frozenset[str],
    paid_out: set[str],
) -> Payer:
    """Return the payer with the source of its money on this network."""
    known = payers.get(address) or Payer(address, {})
    sources = money.sources[address]
    own = address in side or any(one in side or one in paid_out for one in sources)
    return replace(
        known,
        elsewhere=max(known.elsewhere, money.elsewhere.get(address, 0)),
        sources=tuple(dict.fromkeys((*known.sources, *sources))),
        is_own=known.is_own or own,
        is_pending=known.is_pending or address in money.pending,
    )


def _paid_others(payer: Payer, amount: int, at: int, today: int) -> Payer:
    """Add a payment to a reseller of the agent."""
    return replace(payer, resold=_paid(Payer("", payer.resold), amount, at, today, True).spent)  # noqa: FBT003


def _paid(payer: Payer, amount: int, at: int, today: int, is_charge: bool) -> Payer:  # noqa: FBT001 - a column
    """Add one payment and keep the number of days bounded."""
    spent = dict(payer.spent)
    spent[at] = spent.get(at, 0) + amount
    ripe = sorted(one for one in spent if one <= today - MATURE_DAYS)
    if len(ripe) > DAYS_KEPT:
        spent[ripe[1]] += spent.pop(ripe[0])
    return replace(payer, spent=spent, is_charge=payer.is_charge or is_charge)


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


FACTS_TTL_S = 30.0
FACTS_KEPT = 200_000
"""Payers and entries cached for all agents together: about 80 MiB."""

PAYERS_READ = 500
"""Payers whose funding is read: those that paid most."""

FORMER_MOST = 3
"""Earlier wallets of an agent whose proven payments are counted."""


class IndexedFacts:
    """Reads facts from the store and the chains' nodes; implements `facts.FactsSource`."""

    def __init__(
        self,
        rpc: Rpc,
        store: EventStore,
        chains: Mapping[str, PaymentChain],
        clock: Clock,
        sellers: frozenset[str] = frozenset(),
        vouchers: Vouchers | None = None,
    ) -> None:
        """Create it; if `sellers` is not empty, only those prove a customer's independence."""
        self._rpc = rpc
        self._vouchers = vouchers
        self._sellers = sellers
        self._store = store
        self._funding = Funding(rpc, store)
        self._chains = chains
        self._clock = clock
        self._cache: Cache[AgentFacts] = Cache(clock, FACTS_TTL_S, FACTS_KEPT, _weight)

    async def facts(self, agent: OnchainAgent, clients: Sequence[str]) -> AgentFacts:
        """Implement `facts.FactsSource.facts`; results are cached for a short time."""
        del clients
        key = f"{agent.network.slug}/{agent.agent_id}/{agent.wallet}/{agent.owner}"
        return await self._cache.get(key, lambda: self._read(agent))

    async def _read(self, agent: OnchainAgent) -> AgentFacts:
        try:
            return await self._whole(agent)
        except NotIndexed as error:
            raise NotIndexed(str(error), await self.known(agent)) from error

    async def known(self, agent: OnchainAgent) -> AgentFacts | None:
        """Implement `facts.FactsSource.known`; partial payments are not returned as complete."""
        found = await self._assembled(agent, {}, live=False)
        cursors = await self._cursors(agent)
        paid = [cursor for stream, cursor in cursors.items() if stream.kind == "payments"]
        return found if all(cursor.is_whole for cursor in paid) else None

    async def _whole(self, agent: OnchainAgent) -> AgentFacts:
        """Read everything up to the newest block. Raises `NotIndexed`."""
        before = await self._cursors(agent)
        found = await self._assembled(agent, await self._tails(agent, before), live=True)
        after = await self._cursors(agent)
        if any(after[one].block < before[one].block for one in before):
            raise NotIndexed("what was read before was forgotten meanwhile")
        return found

    async def owners(self, network: Network, agent_id: str) -> frozenset[str] | None:
        """Implement `facts.FactsSource.owners`."""
        stream = Stream("owners", network.slug)
        cursors = await self._store.watch([stream], (network.start_block or 0) - 1)
        if not cursors[stream].is_whole:
            return None
        return await self._store.owners(network.slug, agent_id)

    async def spent(self, network: Network, wallet: str, side: frozenset[str]) -> int | None:
        """Implement `facts.FactsSource.spent`."""
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
            elif found:  # Its funding must be read first: it may come from one of the sellers.
                await self._store.watch([Stream("funding", slug, wallet)], -1)
        return total

    def chains_of(self, network: Network) -> Sequence[PaymentChain]:
        """Return the networks whose money counts: test money only for test registries."""
        return [c for c in self._chains.values() if c.network.testnet == network.testnet]

    def _streams(self, agent: OnchainAgent) -> Mapping[Stream, Network]:
        own = agent.network
        streams = {Stream("feedback", own.slug): own, Stream("owners", own.slug): own}
        if agent.wallet is not None:
            for one in self.chains_of(agent.network):
                streams[Stream("payments", one.network.slug, agent.wallet)] = one.network
        return streams

    async def _cursors(self, agent: OnchainAgent) -> Mapping[Stream, EventCursor]:
        found: dict[Stream, EventCursor] = {}
        for stream, network in self._streams(agent).items():
            found.update(await self._store.watch([stream], (network.start_block or 0) - 1))
        return found

    async def _tails(
        self, agent: OnchainAgent, cursors: Mapping[Stream, EventCursor]
    ) -> Mapping[tuple[str, str], Batch]:
        """Read what lies beyond the index, by network and kind. Raises `NotIndexed`."""
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
        self, network: Network, stream: Stream, cursor: EventCursor, agent: OnchainAgent
    ) -> tuple[tuple[str, str], Batch]:
        try:
            head, _, _ = await head_of(self._rpc, network)
            batches = await self._ranges(network, stream, cursor, head, agent)
        except (ChainUnavailable, BadAnswer) as error:
            raise NotIndexed(f"{network.slug} could not be read to its newest block") from error
        return (network.slug, stream.kind), joined(batches)

    async def _ranges(
        self, network: Network, stream: Stream, cursor: EventCursor, head: int, agent: OnchainAgent
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
        if live:
            await self._store.ask_files(slug, agent_id)
        proofs = await self._store.proven(slug, agent_id)
        moneys = [
            await self._money(
                c, agent, tails.get((c.network.slug, "payments"), Batch()), proofs, live=live
            )
            for c in self.chains_of(agent.network)
            if agent.wallet is not None
        ]
        side = agent.controllers | owners | frozenset(one for m in moneys for one in m.former)
        validations, staked = await self._vouched(agent) if live else ((), 0)
        payers, prices = payers_of(moneys, agent, side, day)
        return AgentFacts(
            day=day,
            payers=tuple(payers),
            price=usual_price(prices),
            events=_with_tail(entries, feedback),
            owners=owners,
            proofs=tuple(proofs),
            validations=validations,
            staked=staked,
        )

    async def _vouched(self, agent: OnchainAgent) -> tuple[tuple[tuple[str, int], ...], int]:
        """Return validators' answers and the stake. Raises `NotIndexed`."""
        if self._vouchers is None:
            return (), 0
        try:
            return await self._vouchers.validations(agent), await self._vouchers.staked(agent)
        except ChainUnavailable as error:
            raise NotIndexed(f"vouchers on {agent.network.slug} could not be read") from error

    async def _money(
        self,
        chain: PaymentChain,
        agent: OnchainAgent,
        tail: Batch,
        proofs: Sequence[ProvenPayment],
        *,
        live: bool,
    ) -> Money:
        slug, wallet, side = chain.network.slug, agent.wallet or "", sorted(agent.controllers)
        stored = await self._store.transfers(slug, [wallet])
        mine = [proof.transfer for proof in proofs if proof.network == slug]
        former, returned = await self._former(chain, wallet, mine)
        proven = {(one.tx, one.log): one for one in mine if one.recipient in {wallet, *former}}
        rows = proven | {(r.tx, r.log): r for r in (*returned, *stored, *tail.transfers)}
        subject, declared = f"{agent.network.caip2}/{agent.agent_id}", _endpoints(agent)
        others = frozenset(side) | former
        sold = await self._store.resold(slug, subject, declared, others) if declared else ()
        spent: dict[str, int] = {}
        for key, row in rows.items():
            if row.recipient == wallet or key in proven:
                spent[row.sender] = spent.get(row.sender, 0) + row.amount
        for one in sold:
            spent[one.payer] = spent.get(one.payer, 0) + min(one.amount, FULL)
        payers = sorted(spent, key=lambda a: (-spent[a], a))[:PAYERS_READ]
        pending, sources = await self._funding.sources(chain, payers, live=live)
        return Money(
            transfers=[rows[key] for key in sorted(rows)],
            ledger=await self._store.ledger(slug, [wallet]),
            elsewhere=await self._store.elsewhere(
                slug, payers, side, self._sellers, is_shared=bool(self._sellers)
            ),
            sources=sources,
            pending=pending,
            proven=frozenset(proven),
            former=former,
            resold=sold,
        )

    async def _former(
        self, chain: PaymentChain, wallet: str, proven: Sequence[TransferRow]
    ) -> tuple[frozenset[str], Sequence[TransferRow]]:
        """Return earlier wallets of the agent that received proven payments, and their refunds.

        Only wallets whose payments are completely read: refunds of others may be missing.
        """
        slug, first = chain.network.slug, (chain.network.start_block or 0) - 1
        earlier = sorted({one.recipient for one in proven} - {wallet})[:FORMER_MOST]
        streams = [Stream("payments", slug, one) for one in earlier]
        cursors = await self._store.watch(streams, first)
        whole = frozenset(stream.subject for stream, cursor in cursors.items() if cursor.is_whole)
        rows = [row for one in sorted(whole) for row in await self._store.transfers(slug, [one])]
        return whole, [row for row in rows if row.sender in whole]


def _endpoints(agent: OnchainAgent) -> Sequence[str]:
    file = agent.registration
    return () if file is None else [one.endpoint for one in file.services]


def _weight(facts: AgentFacts) -> int:
    return 1 + len(facts.payers) + len(facts.events)
