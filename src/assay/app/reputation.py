"""Builds reputation: the index of events, what it keeps, and what reads it.

The index keeps what evaluations need, and no more rows than are configured.
"""

import asyncio
import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from assay.app.log import Log, naming
from assay.app.payments import chain_of, payment_rows
from assay.chains.evm.abi import BadAnswer
from assay.chains.model import ChainUnavailable, Network, is_address
from assay.chains.networks import Networks
from assay.chains.rpc import Rpc
from assay.common.addresses import keccak256
from assay.common.clock import Clock, SystemClock
from assay.common.errors import ServiceError
from assay.common.shared_state import SharedState
from assay.db.engine import Database
from assay.db.store_costs import DailyBudgets
from assay.evaluation.demands import ladder_from
from assay.key_agents.store import SqlPurchases
from assay.net.egress.budget_client import SiteBudgetHttp
from assay.net.egress.ports import EgressClient, Limits
from assay.payments.model import PaymentNetwork
from assay.payments.networks import by_network
from assay.registries.documents import GuardedDocuments
from assay.reputation.agent_facts import IndexedFacts
from assay.reputation.events import DAY_S, KINDS, Indexer
from assay.reputation.files import FILE_BYTES_MAX, PER_SITE, FeedbackFiles
from assay.reputation.model import ListedAsset, PaymentChain
from assay.reputation.ports import EventKind, Stream
from assay.reputation.store_events import SqlEventStore, SqlOldStreams
from assay.reputation.store_files import SqlFileQueue
from assay.reputation.vouchers import VoucherRules, Vouchers, stake_of, validation_registries
from assay.settings import Settings

STREAMS_AT_ONCE: Final = 100
ROWS_AT_ONCE: Final = 1_000
FUNDINGS_AT_ONCE: Final = 500

USED_FOR: Final = timedelta(days=30)
"""How long the payments of an agent on rung 3 are kept in preference to those of others."""

FUNDINGS_LOOKED_AT_DAYS: Final = 7
"""Days between two checks whether a funding still leads to a payer."""


class IndexRetention:
    """Forgets what is idle or too much and removes its rows, a bounded number at a time."""

    def __init__(
        self, store: SqlOldStreams, settings: Settings, kept: Collection[str], clock: Clock
    ) -> None:
        """Create it; payments of the addresses in `kept` are not forgotten for being many."""
        self._store = store
        self._settings = settings
        self._kept = kept
        self._clock = clock

    async def forget(self) -> None:
        """Forget some of what is due; check some fundings."""
        now = self._clock.now()
        today, days = int(now.timestamp()) // DAY_S, self._settings.index_days
        if days:
            await self._store.forget_idle(today - days, STREAMS_AT_ONCE)
        if self._settings.index_rows:
            await self._store.forget_largest(
                self._settings.index_rows, now - USED_FOR, self._kept, STREAMS_AT_ONCE
            )
        before = today - FUNDINGS_LOOKED_AT_DAYS
        await self._store.look_at_fundings(before, today, FUNDINGS_AT_ONCE)

    async def remove(self) -> bool:
        """Remove some rows of what was forgotten; return whether there may be more."""
        return await self._store.remove_rows(ROWS_AT_ONCE)


IDLE_S = 15.0
"""Seconds until a network that was read to its end is read again."""

BUDGET_CHARS: Final = 120
"""Characters of a budget's name that its column holds."""

FILES_KEY: Final = "index/files"
FILES_LEASE_S: Final = 60.0
"""Seconds that one process has the files if it does not report its end, and seconds until the next
look if none is due."""

LOOK_EVERY = 10
"""Rounds between two looks for networks, rows to remove and new files."""


@dataclass(frozen=True, slots=True)
class ReputationParts:
    """What reads facts, and what keeps the index."""

    facts: IndexedFacts
    indexer: Indexer
    store: SqlEventStore
    retention: IndexRetention
    networks: Mapping[str, Network]
    every_s: float
    """Seconds between two ranges of blocks of one network."""
    listed: Mapping[Stream, int]
    """Payments to the sellers that an operator lists, and where they begin."""
    files: FeedbackFiles | None = None
    """Reads the files that feedback names."""
    clock: Clock = field(default_factory=SystemClock)


def reputation_parts(
    settings: Settings,
    networks: Networks,
    database: Database,
    rpc: Rpc,
    clock: Clock,
    http: EgressClient,
) -> ReputationParts:
    """Build everything and start nothing. Raises `ValueError` for unknown networks."""
    chains = _payment_chains_read(settings)
    store = SqlEventStore(database, clock)
    sellers = _sellers(settings)
    vouchers = Vouchers(rpc, _voucher_rules(settings, networks, chains), clock)
    return ReputationParts(
        facts=IndexedFacts(rpc, store, chains, clock, sellers, vouchers),
        indexer=Indexer(rpc, store, chains),
        store=store,
        retention=IndexRetention(SqlOldStreams(database), settings, sellers, clock),
        networks={n.slug: n for n in networks.rows.values() if n.family == "evm"}
        | {slug: chain.network for slug, chain in chains.items()},
        every_s=settings.reputation_index_s,
        files=_files(settings, networks, database, rpc, clock, http, chains),
        clock=clock,
        listed={
            Stream("payments", slug, one): chain.network.start_block or 0
            for slug, chain in chains.items()
            for one in sorted(sellers)
        },
    )


def _voucher_rules(
    settings: Settings, networks: Networks, chains: Mapping[str, PaymentChain]
) -> VoucherRules:
    with naming("ASSAY_LADDER"):
        validators = frozenset(ladder_from(settings.ladder).vouched_by)
    with naming("ASSAY_VALIDATION_REGISTRIES"):
        registries = validation_registries(settings.validation_registries, networks.rows)
    with naming("ASSAY_STAKES"):
        stakes = [stake_of(row, networks.rows, chains) for row in settings.stakes]
    return VoucherRules(registries, validators, stakes)


def _files(  # noqa: PLR0913, PLR0917 - what files are read with
    settings: Settings,
    networks: Networks,
    database: Database,
    rpc: Rpc,
    clock: Clock,
    http: EgressClient,
    chains: Mapping[str, PaymentChain],
) -> FeedbackFiles:
    budgets = DailyBudgets(database)

    async def take(limits: Sequence[tuple[str, int]], day: int) -> bool:
        named = [(_name(name), limit) for name, limit in limits]
        return await budgets.take_all(named, day) is None

    async def take_of(site: str) -> bool:
        return await take([(f"files from {site}", PER_SITE)], _day_of(clock))

    documents = GuardedDocuments(
        SiteBudgetHttp(http, take_of),
        settings.ipfs_gateway or None,
        Limits(body_bytes_max=FILE_BYTES_MAX),
        arweave_gateway=settings.arweave_gateway or None,
    )
    return FeedbackFiles(
        queue=SqlFileQueue(database),
        documents=documents,
        rpc=rpc,
        registries={n.slug: n for n in networks.rows.values() if n.family == "evm"},
        chains=chains,
        keccak256=keccak256,
        take=take,
    )


def _name(name: str) -> str:
    """Return a budget's name as it fits its column."""
    return name if len(name) <= BUDGET_CHARS else hashlib.sha256(name.encode()).hexdigest()


def purchases(settings: Settings, database: Database) -> SqlPurchases:
    """Return what key agents paid for: in listed assets, on main networks."""
    rows = payment_rows(settings).values()
    assets = {row.id: [row.asset.address.lower()] for row in rows if not row.testnet}
    return SqlPurchases(database, assets, _sellers(settings))


def _day_of(clock: Clock) -> int:
    """Return today in days since 1970-01-01."""
    return int(clock.now().timestamp()) // DAY_S


def _sellers(settings: Settings) -> frozenset[str]:
    wrong = [one for one in settings.reputation_sellers if not is_address(one)]
    if wrong:
        raise ValueError(f"ASSAY_REPUTATION_SELLERS: {wrong[0]!r} is no address")
    return frozenset(one.lower() for one in settings.reputation_sellers)


def _payment_chains_read(settings: Settings) -> Mapping[str, PaymentChain]:
    """Return the networks whose money counts: main ones, and test ones with own endpoints."""
    rows = payment_rows(settings)
    with naming("ASSAY_REPUTATION_NETWORKS"):
        named = by_network(dict.fromkeys(settings.reputation_networks, True))
    configured = by_network(settings.payment_rpc)
    wanted = named or {
        name: True for name, row in rows.items() if not row.testnet or name in configured
    }
    return {name: _chain(rows[name]) for name in rows if name in wanted}


def _chain(row: PaymentNetwork) -> PaymentChain:
    return PaymentChain(chain_of(row), (ListedAsset(row.asset.address),), row.protocol == "mpp")


async def index_forever(parts: ReputationParts, state: SharedState, log: Log) -> None:
    """Read the chains network by network; one process at a time reads a network, at its pace.

    It reads no payments while rows of forgotten addresses are being removed. The index therefore
    stays bounded, however many addresses are asked for.
    """
    turn, known, is_removing = 0, list[Network](), False
    while True:
        await asyncio.sleep(parts.every_s)
        try:
            is_looking = turn % LOOK_EVERY == 0
            if is_looking:
                for stream, first in parts.listed.items():
                    await parts.store.watch([stream], first - 1)
                await parts.retention.forget()
                slugs = await parts.store.networks()
                known = [parts.networks[slug] for slug in slugs if slug in parts.networks]
            if is_looking or is_removing:
                is_removing = await parts.retention.remove()
        except ServiceError as error:
            log.warning("the index cannot be read now", error=repr(error))
            continue
        turn += 1
        kind = KINDS[turn % len(KINDS)]
        for network in known if kind != "payments" or not is_removing else ():
            await _read_on(parts, state, network, kind, log)


async def read_files_forever(parts: ReputationParts, state: SharedState, log: Log) -> None:
    """Read files of feedback beside the index, one at a time over all processes."""
    was_read = False
    while parts.files is not None:
        await asyncio.sleep(parts.every_s * (1 if was_read else LOOK_EVERY))
        was_read = False
        try:
            if not await state.put_if_absent(FILES_KEY, "1", FILES_LEASE_S):
                continue
            if was_read := await parts.files.step(_day_of(parts.clock)):
                await state.take(FILES_KEY)
        except ServiceError as error:
            log.warning("files of feedback cannot be read now", error=repr(error))


async def _read_on(
    parts: ReputationParts, state: SharedState, network: Network, kind: EventKind, log: Log
) -> None:
    key = f"index/{network.slug}/{kind}"
    try:
        if not await state.put_if_absent(key, "1", IDLE_S):
            return
        if await parts.indexer.step(network, (kind,)):
            await state.take(key)
    except (ChainUnavailable, BadAnswer) as error:
        log.info("a chain's events cannot be read now", chain=network.slug, error=repr(error))
    except ServiceError as error:
        log.warning("events could not be stored", chain=network.slug, error=repr(error))
