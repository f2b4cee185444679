"""What the index forgets, in both databases: a stranger's streams are bounded, nobody gains."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, func, select, text
from sqlalchemy.dialects.sqlite import dialect

from assay.app.reputation import IndexRetention
from assay.chains.model import Network
from assay.common.clock import SystemClock
from assay.common.ids import new_id
from assay.common.json import JsonValue
from assay.db.engine import Database
from assay.db.schema.everything import chain_transfers, index_streams
from assay.evaluation.model import FIRST_PREVIOUS_HASH, Evaluation, Grade, Snapshot
from assay.evaluation.store_evaluations import SqlEvaluationStore
from assay.reputation.agent_facts import IndexedFacts
from assay.reputation.events import DAY_S
from assay.reputation.model import Batch, ListedAsset, NotIndexed, PaymentChain, TransferRow
from assay.reputation.ports import NEUTRAL_FROM, EventCursor, Stream
from assay.reputation.store_events import LOOK, REMOVE_ROWS, ROWS_MAX, SqlEventStore, SqlOldStreams
from assay.reputation.store_sellers import ROWS_LOCK, these
from assay.settings import load
from tests.reputation.test_chain_events import (
    HEAD,
    NET,
    OTHER,
    SELLER,
    THIRD,
    FarChain,
    crowd,
    fund,
    paid,
)
from tests.support.fakes.clock import FrozenClock
from tests.support.fakes.trust import NETWORK, onchain_agent

CLOCK = FrozenClock()
TODAY = int(CLOCK.now().timestamp()) // DAY_S
MINE, OTHERS, THIRDS = (Stream("payments", NET, one) for one in (SELLER, OTHER, THIRD))
END = EventCursor(HEAD, "0x1", is_whole=True)


@pytest.fixture
def store(database: Database) -> SqlEventStore:
    return SqlEventStore(database, CLOCK)


def at(database: Database, days: int) -> SqlEventStore:
    """The store, so many days ago or (below 0) later."""
    return SqlEventStore(database, FrozenClock(CLOCK.now() - timedelta(days=days)))


async def sold(
    store: SqlEventStore, stream: Stream, *rows: TransferRow, end: EventCursor = END
) -> None:
    """A stream that is asked for and read to its end in one range."""
    was = (await store.watch([stream], -1))[stream]
    assert await store.advance([stream], was, end, Batch(transfers=rows))


async def removed(database: Database, limit: int = 1_000) -> int:
    """In how many parts all that was forgotten was removed."""
    old, found = SqlOldStreams(database), 0
    while await old.remove_rows(limit):
        found += 1
    return found


async def kept(database: Database, kind: str = "payments") -> set[str]:
    statement = select(index_streams.c.subject).where(index_streams.c.kind == kind)
    async with database.read() as connection:
        return set((await connection.execute(statement)).scalars())


async def rows(database: Database) -> int:
    async with database.read() as connection:
        counted = select(func.count()).select_from(chain_transfers)
        return (await connection.execute(counted)).scalar_one()


async def graded(database: Database, wallet: str, rung: int, days_ago: int = 1) -> None:
    """An evaluation of an agent with that wallet."""
    moment = CLOCK.now() - timedelta(days=days_ago)
    key = f"{NET}/{new_id()[:8]}"
    evaluation = Evaluation(
        id=new_id(),
        subject_key=key,
        chain=NET,
        agent_id="7",
        wallet=wallet,
        collected=(),
        unavailable={},
        score=80.0,
        grade=Grade("BAA", "YELLOW", "prod_throttled"),
        evaluated_at=moment,
        rung=rung,
    )
    ids = new_id(), evaluation.id, key, "7", "0x1", FIRST_PREVIOUS_HASH
    await SqlEvaluationStore(database).add(evaluation, Snapshot(*ids, None, 0, moment))


async def test_payments_nobody_needs_are_forgotten_with_their_rows_in_parts(
    store: SqlEventStore, database: Database
) -> None:
    await sold(at(database, 91), MINE, *crowd(SELLER, 12))
    await sold(at(database, 91), OTHERS, *crowd(OTHER, 5))
    await sold(store, THIRDS, *crowd(THIRD, 3))
    await store.watch([OTHERS], -1)  # somebody asks for it again, in time
    old = SqlOldStreams(database)
    assert [await old.forget_idle(TODAY - 90, 10) for _ in range(2)] == [1, 0]
    assert await kept(database) == {OTHER, THIRD}
    assert await store.due("payments", NET, HEAD + 1, 10) == [(OTHERS, END), (THIRDS, END)]
    assert await removed(database, 5) == 3
    assert await rows(database) == 8
    assert await kept(database, "gone") == set()


async def test_a_transfer_between_two_stays_until_both_are_forgotten(
    store: SqlEventStore, database: Database
) -> None:
    between = TransferRow("0xbe", 0, SELLER, OTHER, 5, 10, 1, is_charge=True)
    await sold(at(database, 91), MINE, between, *crowd(SELLER, 4))
    await sold(store, OTHERS, between)
    old = SqlOldStreams(database)
    await old.forget_idle(TODAY - 90, 10)
    await removed(database, 2)
    assert await store.transfers(NET, [SELLER]) == [between]
    await old.forget_idle(TODAY + 1, 10)
    await removed(database)
    assert await rows(database) == 0


async def test_one_that_is_needed_again_begins_anew_and_loses_no_row(
    store: SqlEventStore, database: Database
) -> None:
    await sold(at(database, 91), MINE, *crowd(SELLER, 9))
    was = EventCursor(HEAD, "0x1")
    old = SqlOldStreams(database)
    await old.forget_idle(TODAY - 90, 10)
    # Whoever was reading on finds it gone, and stores nothing.
    assert not await store.advance([MINE], was, EventCursor(HEAD + 9), Batch(transfers=[paid(5)]))
    assert await old.remove_rows(3)
    assert (await store.watch([MINE], 41))[MINE] == EventCursor(41)
    await sold(store, MINE, *crowd(SELLER, 9))
    await removed(database, 3)
    assert (await store.watch([MINE], -1))[MINE] == END
    assert len(await store.transfers(NET, [SELLER])) == 9


async def test_reading_forgetting_and_removing_at_once_leave_whole_streams_alone(
    database: Database,
) -> None:
    """Two processes: whatever was read last has all its rows."""
    stores, olds = [at(database, 0) for _ in range(2)], [SqlOldStreams(database) for _ in range(2)]
    mine = crowd(SELLER, 40)

    async def read(store: SqlEventStore) -> None:
        for _ in range(8):
            cursor = (await store.watch([MINE], -1))[MINE]
            if cursor.block < HEAD:
                await store.advance([MINE], cursor, END, Batch(transfers=mine))

    async def forget(old: SqlOldStreams) -> None:
        for _ in range(8):
            await old.forget_idle(TODAY + 1, 10)
            await old.remove_rows(7)

    async with asyncio.TaskGroup() as group:
        for store, old in zip(stores, olds, strict=True):
            group.create_task(read(store))
            group.create_task(forget(old))
    cursor = (await stores[0].watch([MINE], -1))[MINE]
    if cursor.block < HEAD:
        assert await stores[0].advance([MINE], cursor, END, Batch(transfers=mine))
    await removed(database, 7)
    assert len(await stores[0].transfers(NET, [SELLER])) == 40


async def test_a_range_is_stored_when_nobody_removes_rows(
    store: SqlEventStore, database: Database
) -> None:
    """Else a row that is there still is not stored again, and is removed a moment later."""
    was = (await store.watch([MINE], -1))[MINE]
    if database.kind != "postgresql":
        return
    waits = text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
    batch = Batch(transfers=[paid(1)])
    async with asyncio.TaskGroup() as group, database.write() as connection:
        await database.lock(connection, ROWS_LOCK)
        storing = group.create_task(store.advance([MINE], was, END, batch))
        while not storing.done() and not (await connection.execute(waits)).scalar_one():
            pass
        assert not storing.done()
    assert storing.result()


async def test_beyond_the_bound_the_largest_go_first_and_agents_in_use_last(
    store: SqlEventStore, database: Database
) -> None:
    """A flood of large streams that is asked for all the time pushes out no one else."""
    await sold(at(database, 80), MINE, *crowd(SELLER, 30))
    await sold(at(database, 80), OTHERS, *crowd(OTHER, 10))
    await graded(database, SELLER, rung=3)
    await graded(database, OTHER, rung=2)
    flood = [f"0x{0xF000 + n:040x}" for n in range(4)]
    for number, one in enumerate(flood):
        await sold(store, Stream("payments", NET, one), *crowd(one, 20 + number))
        await graded(database, one, rung=3, days_ago=31)
    old, since = SqlOldStreams(database), CLOCK.now() - timedelta(days=30)
    everything = 30 + 10 + 20 + 21 + 22 + 23 + 6
    assert await old.forget_largest(everything, since, (), 10) == 0
    assert await old.forget_largest(everything - 1, since, (), 10) == 1
    assert await kept(database) == {SELLER, OTHER, *flood[:3]}
    assert await old.forget_largest(50, since, {flood[0]}, 1) == 1
    assert await kept(database) == {SELLER, OTHER, *flood[:2]}
    assert await old.forget_largest(63, since, {flood[0]}, 10) == 1
    assert await kept(database) == {SELLER, OTHER, flood[0]}
    assert await old.forget_largest(0, since, {flood[0]}, 1) == 1
    assert await kept(database) == {SELLER, flood[0]}
    assert await old.forget_largest(0, since, {flood[0]}, 10) == 1
    assert await kept(database) == {flood[0]}
    await removed(database)
    assert await rows(database) == 20


async def test_a_seller_proves_customers_only_while_it_is_read_whole(
    store: SqlEventStore, database: Database
) -> None:
    """What it sent back may be missing before, and once it was forgotten."""
    mine = paid(1), paid(1, OTHER, 30, block=5)
    back = TransferRow("0xback", 0, OTHER, mine[0].sender, 30, 90, 1, is_charge=False)
    await sold(store, MINE, mine[0])
    early, late = EventCursor(50, "0x5"), replace(END, is_whole=True)

    async def proven() -> object:
        return await store.elsewhere(NET, [mine[0].sender], [SELLER])

    for _ in range(2):
        await sold(store, OTHERS, mine[1], *crowd(OTHER, 20), end=early)
        assert await proven() == {}
        assert await store.advance([OTHERS], early, late, Batch(transfers=[back]))
        assert await proven() == {}
        await SqlOldStreams(database).forget_largest(2, CLOCK.now(), (), 1)
        assert await kept(database) == {SELLER}
        assert await SqlOldStreams(database).remove_rows(5)  # what it sent back may be gone already
        assert await proven() == {}


async def test_a_full_stream_counts_as_read(store: SqlEventStore, database: Database) -> None:
    was = (await store.watch([MINE], -1))[MINE]
    async with database.write() as connection:
        await connection.execute(index_streams.update().values(rows=ROWS_MAX))
    await store.advance([MINE], was, EventCursor(9), Batch(transfers=[paid(1)]))
    assert (await store.watch([MINE], -1))[MINE] == EventCursor(9, is_done=True, is_whole=True)


async def test_sellers_that_prove_customers_are_needed(
    store: SqlEventStore, database: Database
) -> None:
    await sold(at(database, 91), OTHERS, paid(1, OTHER, 3), *crowd(OTHER, 20))
    assert await store.elsewhere(NET, [paid(1).sender], [SELLER]) == {paid(1).sender: 3}
    assert await SqlOldStreams(database).forget_idle(TODAY - 90, 10) == 0


async def test_fundings_stay_while_they_lead_to_whoever_paid(
    store: SqlEventStore, database: Database
) -> None:
    payer, source, far, gone = paid(1).sender, *(f"0x{0xE0 + n:040x}" for n in range(3))
    before = at(database, 40)
    await sold(store, MINE, paid(1))
    for account, funder in ((payer, source), (source, far), (gone, far)):
        await fund(before, account, funder)
    await before.watch([Stream("funding", NET, f"0x{0xEF:040x}")], -1)  # nobody ever funded it
    old = SqlOldStreams(database)
    assert [await old.look_at_fundings(TODAY - 30, TODAY, 4) for _ in range(2)] == [4, 0]
    assert await store.fundings(NET, [payer, source, gone]) == {payer: source, source: far}
    assert await kept(database, "funding") == {payer, source}
    # Without the payment the chain goes, from its beginning on.
    await old.forget_idle(TODAY + 1, 10)
    await removed(database)
    for day, left in ((TODAY + 1, {source}), (TODAY + 2, set[str]())):
        await old.look_at_fundings(day, day, 10)
        assert await kept(database, "funding") == left


async def test_who_funded_as_many_as_an_exchange_is_one_ever_after(
    store: SqlEventStore, database: Database
) -> None:
    accounts = [f"0x{0xA0000 + n:040x}" for n in range(NEUTRAL_FROM)]
    streams = [Stream("funding", NET, one) for one in accounts]
    was = (await at(database, 40).watch(streams, -1))[streams[0]]
    batch = Batch(fundings=dict.fromkeys(accounts, (OTHER, 5)))
    await store.advance(streams, was, EventCursor(9), batch)
    old = SqlOldStreams(database)
    while await old.look_at_fundings(TODAY - 30, TODAY, 200):
        pass
    assert await kept(database, "funding") == set()
    assert await store.funded(NET, [OTHER, THIRD]) == {OTHER: NEUTRAL_FROM}


class Forgetful:
    """A node during whose answer the index forgets all payments."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def request(self, network: Network, method: str, params: object) -> JsonValue:
        old = SqlOldStreams(self.database)
        await old.forget_idle(TODAY + 1, 10)
        while await old.remove_rows(1_000):
            pass
        return await FarChain().request(network, method, params)


async def test_what_is_forgotten_while_it_is_evaluated_is_indexing(
    store: SqlEventStore, database: Database
) -> None:
    agent = replace(onchain_agent(wallet=SELLER), network=replace(NETWORK, slug=NET))
    chains = {NET: PaymentChain(agent.network, (ListedAsset(OTHER),))}
    await sold(store, MINE, paid(1), paid(2))
    for stream in (Stream("feedback", NET), Stream("owners", NET)):
        await sold(store, stream)

    def facts(node: FarChain | Forgetful) -> IndexedFacts:
        return IndexedFacts(node, store, chains, CLOCK)  # type: ignore[arg-type]

    assert len((await facts(FarChain()).facts(agent, ())).payers) == 2
    assert await facts(FarChain()).known(agent) is not None
    with pytest.raises(NotIndexed, match="forgotten") as caught:
        await facts(Forgetful(database)).facts(agent, ())
    assert caught.value.known is None
    # It is read again from the beginning on, and until then a part is not taken for the whole.
    cursor = (await store.watch([MINE], -1))[MINE]
    assert cursor.block == -1
    await store.advance([MINE], cursor, EventCursor(5, "0x5"), Batch(transfers=[paid(1)]))
    with pytest.raises(NotIndexed, match="still to be read") as caught:
        await facts(FarChain()).facts(agent, ())
    assert caught.value.known is None
    await store.advance([MINE], EventCursor(5, "0x5"), END, Batch(transfers=[paid(2)]))
    assert len((await facts(FarChain()).facts(agent, ())).payers) == 2


async def test_a_wallet_speaks_once_it_is_known_who_funded_it(
    store: SqlEventStore, database: Database
) -> None:
    """Its seller may have, and addresses that bought nothing are not looked up at all."""
    wallet = paid(1).sender
    network = replace(NETWORK, slug=NET)
    chains = {NET: PaymentChain(network, (ListedAsset(OTHER),))}
    facts = IndexedFacts(FarChain(), store, chains, CLOCK)  # type: ignore[arg-type]
    assert await facts.spent(network, wallet, frozenset({wallet})) == 0
    assert await kept(database, "funding") == set()
    await sold(store, OTHERS, paid(1, OTHER, 3), *crowd(OTHER, 20))
    assert await facts.spent(network, wallet, frozenset({wallet})) == 0
    assert await kept(database, "funding") == {wallet}
    await fund(store, wallet, THIRD)
    assert await facts.spent(network, wallet, frozenset({wallet})) == 3


@pytest.mark.parametrize(
    ("settings", "left"),
    [({}, {OTHER, THIRD}), ({"index_days": 0}, {SELLER, OTHER, THIRD}),
     ({"index_rows": 8}, {THIRD, OTHER}), ({"index_rows": 7}, {OTHER}),
     ({"index_days": 0, "index_rows": 0}, {SELLER, OTHER, THIRD})],
)  # fmt: skip
async def test_the_settings_say_what_is_kept(
    store: SqlEventStore, database: Database, settings: dict[str, int], left: set[str]
) -> None:
    await sold(at(database, 91), MINE, *crowd(SELLER, 2))
    await sold(store, OTHERS, *crowd(OTHER, 4))
    await sold(store, THIRDS, *crowd(THIRD, 2))
    old = SqlOldStreams(database)
    retention = IndexRetention(old, load(**settings), {OTHER}, CLOCK)
    await retention.forget()
    while await retention.remove():
        pass
    assert await kept(database) == left
    sizes = {SELLER: 2, OTHER: 4, THIRD: 2}
    assert await rows(database) == sum(sizes[one] for one in left)


async def test_looking_for_streams_and_rows_reads_no_others(database: Database) -> None:
    """However many strangers had indexed, each is found by an index."""
    if database.kind != "sqlite":
        return
    gone = {"network": NET, "subject": SELLER, "limit": 9}
    those = select(index_streams).where(these([MINE, OTHERS, Stream("funding", NET, THIRD)]))
    compiled = those.compile(dialect=dialect(), compile_kwargs={"literal_binds": True})
    looked = {"before_day": 1, "limit": 9}
    for statement, values in (
        (str(compiled), dict[str, str | int]()),
        (REMOVE_ROWS.text, gone),
        (LOOK.text, looked),
    ):
        async with database.read() as connection:
            plan = await connection.execute(text(f"EXPLAIN QUERY PLAN {statement}"), values)
            steps = [row[3] for row in plan]
        assert any(step.startswith("SEARCH") for step in steps)
        tables = ("SCAN chain", "SCAN index", "SCAN t", "SCAN s", "SCAN f", "SCAN o")
        assert not [step for step in steps if step.startswith(tables)], steps
        assert not [step for step in steps if "(network=?)" in step], steps


def at_0030(connection: Connection) -> None:
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", "assay.db:migrations")
    config.set_main_option("path_separator", "os")
    command.upgrade(config, "0030")


async def test_streams_from_before_count_as_read_and_as_needed_today(
    empty_database_url: str,
) -> None:
    old = await Database.open(empty_database_url)
    async with old.write(60) as connection:
        await connection.run_sync(at_0030)
        row = f"('payments', '{NET}', '{SELLER}', 7, '0x1', 3, FALSE)"
        await connection.execute(text(f"INSERT INTO index_streams VALUES {row}"))  # noqa: S608 - our own words
    await old.migrate()
    today = int(SystemClock().now().timestamp()) // DAY_S
    assert await SqlOldStreams(old).forget_idle(today - 1, 10) == 0
    store = SqlEventStore(old, SystemClock())
    assert await store.watch([MINE], -1) == {MINE: EventCursor(7, "0x1", is_whole=True)}
    assert await SqlOldStreams(old).forget_idle(today + 2, 10) == 1
    await old.close()
