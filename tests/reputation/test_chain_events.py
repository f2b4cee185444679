"""Events of chains, in both databases."""

from dataclasses import replace

import pytest

from assay.chains.model import Network
from assay.common.json import JsonObject, JsonValue
from assay.db.engine import Database
from assay.reputation.agent_facts import IndexedFacts
from assay.reputation.model import (
    Batch,
    FeedbackRow,
    ListedAsset,
    NoteRow,
    OwnerRow,
    PaymentChain,
    TransferRow,
)
from assay.reputation.ports import EventCursor, Stream
from assay.reputation.store_events import SqlEventStore
from tests.support.fakes.clock import FrozenClock
from tests.support.fakes.trust import NETWORK, onchain_agent

NET = "eip155:8453"
SELLER, OTHER, THIRD = "0x" + "a" * 40, "0x" + "b" * 40, "0x" + "c" * 40
PAYMENTS = Stream("payments", NET, SELLER)


def paid(payer: int, to: str = SELLER, amount: int = 5, block: int = 10) -> TransferRow:
    tx = f"0x{payer:032x}{to[2:34]}"
    return TransferRow(tx, 0, f"0x{payer:040x}", to, amount, block, 1, is_charge=True)


@pytest.fixture
def store(database: Database) -> SqlEventStore:
    return SqlEventStore(database, FrozenClock())


async def test_a_range_is_stored_once_whoever_reads_it(store: SqlEventStore) -> None:
    was = (await store.watch([PAYMENTS], -1))[PAYMENTS]
    assert was == EventCursor(-1)
    now, batch = EventCursor(100, "0x1"), Batch(transfers=[paid(1), paid(2)])
    assert await store.advance([PAYMENTS], was, now, batch)
    assert not await store.advance([PAYMENTS], was, now, batch)
    assert (await store.watch([PAYMENTS], -1))[PAYMENTS] == now
    assert len(await store.transfers(NET, [SELLER])) == 2
    assert await store.networks() == [NET]
    assert await store.due("payments", NET, 100, 10) == []
    assert await store.due("payments", NET, 101, 10) == [(PAYMENTS, now)]


async def test_what_a_chain_took_back_is_forgotten(store: SqlEventStore) -> None:
    was = (await store.watch([PAYMENTS], -1))[PAYMENTS]
    batch = Batch(transfers=[paid(1, block=10), paid(2, block=90)])
    await store.advance([PAYMENTS], was, EventCursor(100, "0x1"), batch)
    await store.rewind(NET, 50)
    assert [row.block for row in await store.transfers(NET, [SELLER])] == [10]
    assert (await store.watch([PAYMENTS], -1))[PAYMENTS] == EventCursor(50)


async def test_an_account_whose_funding_is_known_is_done(store: SqlEventStore) -> None:
    streams = [Stream("funding", NET, f"0x{n:040x}") for n in (1, 2)]
    was = (await store.watch(streams, -1))[streams[0]]
    batch = Batch(fundings={streams[0].subject: (OTHER, 7)})
    await store.advance(streams, was, EventCursor(9, "0x9"), batch)
    assert await store.fundings(NET, [s.subject for s in streams]) == {streams[0].subject: OTHER}
    assert await store.funded(NET, [OTHER]) == {OTHER: 1}
    assert [s for s, _ in await store.due("funding", NET, 99, 10)] == streams[1:]
    await store.rewind(NET, 5)
    assert {s for s, _ in await store.due("funding", NET, 99, 10)} == set(streams)


async def test_entries_are_read_with_what_happened_to_them(store: SqlEventStore) -> None:
    stream = Stream("feedback", NET)
    was = (await store.watch([stream], -1))[stream]
    rows = [FeedbackRow("7", f"0x{n:040x}", 1, 5, 1, 80.0, "", "") for n in (1, 2)]
    notes = [NoteRow(f"0x{n}", 0, "7", rows[n].client, 1, 6, n == 1) for n in (0, 1)]
    owners = [OwnerRow("0x9", 0, "7", OTHER, 6)]
    batch = Batch(feedback=rows, notes=notes, owners=owners)
    await store.advance([stream], was, EventCursor(9, "0x9"), batch)
    found = {e.client: e for e in await store.feedback(NET, "7")}
    assert (found[rows[0].client].responses, found[rows[0].client].is_revoked) == (1, False)
    assert found[rows[1].client].is_revoked
    assert await store.owners(NET, "7") == {OTHER}


async def sold(store: SqlEventStore, *rows: TransferRow, at: int = -1) -> None:
    """Transfers of three sellers, as the index holds them."""
    streams = [Stream("payments", NET, one) for one in (SELLER, OTHER, THIRD)]
    was = (await store.watch(streams, -1))[streams[0]]
    assert was.block == at
    now = EventCursor(at + 20, is_whole=True)
    assert await store.advance(streams, was, now, Batch(transfers=rows))


def crowd(to: str, count: int) -> list[TransferRow]:
    """Customers that nobody else has."""
    return [paid(1000 + n, to, 9) for n in range(count)]


async def test_spending_elsewhere_counts_at_sellers_with_payers_of_their_own(
    store: SqlEventStore,
) -> None:
    mine = paid(1, amount=5), paid(1, OTHER, 3)
    await sold(store, *mine, *crowd(OTHER, 19))
    payer = mine[0].sender
    assert await store.elsewhere(NET, [payer], [SELLER]) == {}
    await sold(store, paid(7, OTHER, block=21), at=19)
    assert await store.elsewhere(NET, [payer], [SELLER]) == {payer: 3}
    await sold(store, paid(0xB, SELLER, block=41), at=39)
    assert await store.elsewhere(NET, [payer], [SELLER, f"0x{0xB:040x}"]) == {payer: 3}
    await sold(store, paid(0xB, OTHER, block=61), at=59)
    assert await store.elsewhere(NET, [payer], [SELLER, f"0x{0xB:040x}"]) == {}


async def test_money_that_a_seller_sent_back_was_not_spent_there(store: SqlEventStore) -> None:
    payer = paid(1).sender
    back = TransferRow("0xback", 0, OTHER, payer, 2, 10, 1, is_charge=False)
    await sold(store, paid(1), paid(1, OTHER, 3), back, *crowd(OTHER, 20))
    assert await store.elsewhere(NET, [payer], [SELLER]) == {payer: 1}


async def test_a_seller_that_funded_a_payer_is_not_unrelated(store: SqlEventStore) -> None:
    payer = paid(1).sender
    await sold(store, paid(1), paid(1, OTHER, 3), *crowd(OTHER, 20))
    stream = Stream("funding", NET, payer)
    was = (await store.watch([stream], -1))[stream]
    await store.advance([stream], was, EventCursor(9), Batch(fundings={payer: (OTHER, 7)}))
    assert await store.elsewhere(NET, [payer], [SELLER]) == {}


async def test_money_lost_at_listed_sellers_vouches_once_however_many_share_it(
    store: SqlEventStore,
) -> None:
    payer = paid(1).sender
    await sold(store, paid(1, SELLER, 4), paid(1, OTHER, 9), *crowd(OTHER, 20))
    assert await vouched(store, payer, SELLER) == {payer: 9}
    await sold(store, paid(1, THIRD, 8, block=21), *crowd(THIRD, 20), at=19)
    assert await store.elsewhere(NET, [payer], [SELLER]) == {payer: 17}
    assert await vouched(store, payer, SELLER) == {payer: 3}
    assert await vouched(store, payer, THIRD) == {payer: 6}
    assert await vouched(store, payer, f"0x{0xD:040x}") == {}
    assert await store.elsewhere(NET, [payer], [], {OTHER}) == {payer: 9}
    assert await store.elsewhere(NET, [payer], [], {OTHER}, until_day=0) == {}


async def vouched(store: SqlEventStore, payer: str, seller: str) -> object:
    """What the payer lost at OTHER, as far as it vouches for a seller."""
    return await store.elsewhere(NET, [payer], [seller], {OTHER}, is_shared=True)


async def test_the_ledger_is_empty_where_nothing_settled(store: SqlEventStore) -> None:
    assert await store.ledger(NET, [SELLER]) == []


HEAD = 9_000_000


class FarChain:
    """A node of a chain that is long, and holds nothing more."""

    async def request(self, network: Network, method: str, params: object) -> JsonValue:
        del network, params
        block: JsonObject = {"number": hex(HEAD), "timestamp": "0x1", "hash": "0x1"}
        return [] if method == "eth_getLogs" else block


async def test_a_payer_is_pending_until_its_whole_chain_of_sources_is_read(
    store: SqlEventStore,
) -> None:
    payer, source = paid(1).sender, f"0x{0xF:040x}"
    agent = replace(onchain_agent(wallet=SELLER), network=replace(NETWORK, slug=NET))
    streams = [PAYMENTS, Stream("feedback", NET), Stream("owners", NET)]
    for stream in streams:
        was = (await store.watch([stream], HEAD - 1))[stream]
        rows = [paid(1, block=HEAD)] if stream is PAYMENTS else []
        await store.advance([stream], was, EventCursor(HEAD, "0x1"), Batch(transfers=rows))
    await fund(store, payer, source)
    chain = PaymentChain(agent.network, (ListedAsset(OTHER),))

    async def pending() -> bool:
        read = IndexedFacts(FarChain(), store, {NET: chain}, FrozenClock())  # type: ignore[arg-type]
        (one,) = (await read.facts(agent, ())).payers
        assert one.sources[0] == source
        return one.is_pending

    assert await pending()
    await fund(store, source, f"0x{0:040x}")
    assert not await pending()


async def fund(store: SqlEventStore, account: str, funder: str) -> None:
    stream = Stream("funding", NET, account)
    was = (await store.watch([stream], -1))[stream]
    batch = Batch(fundings={account: (funder, 5)})
    await store.advance([stream], was, EventCursor(HEAD), batch)
