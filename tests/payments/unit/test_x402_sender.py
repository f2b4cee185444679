"""Settlements sent side by side: each written down first, none in another's way, no nonce lost."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import rlp

from assay.chains.evm.signing import TransactionSigner
from assay.chains.model import ChainUnavailable, Network
from assay.chains.rpc import RpcRefused
from assay.payments.model import LedgerEntry, SettlementPending
from assay.payments.outcomes import SettlementAttempt, Undecided
from assay.payments.ports import Authorization
from assay.payments.x402.codec import credential_of
from assay.payments.x402.transaction_sender import AT_ONCE, GAS_PRICE_MAX, TransactionSender
from tests.payments.unit.test_x402_vectors import VECTORS, entry
from tests.support.fakes.clock import FrozenClock
from tests.support.fakes.gas import ample_gas

KEY = "0x" + "11" * 32
NETWORK = Network(
    slug="n",
    name="n",
    chain_id=84532,
    testnet=True,
    identity_registry="0x" + "00" * 20,
    reputation_registry="0x" + "00" * 20,
    rpc_urls=("http://node",),
    source="a test",
)


def payment(number: int) -> LedgerEntry:
    signed = Authorization(
        payer="0x" + "aa" * 20,
        to="0x" + "bb" * 20,
        value=number,
        valid_after=0,
        valid_before=2**40,
        nonce=f"0x{number:064x}",
        signature="0x" + "01" * 64 + "1b",
    )
    made = entry(VECTORS["receipts"][0])
    return replace(made, id=str(number), credential=credential_of(signed))


@dataclass
class Pool:
    """A node's pool: one transaction a nonce; what is after a gap waits for it."""

    taken: dict[int, str] = field(default_factory=dict[int, str])
    asked: list[str] = field(default_factory=list[str])
    refuse: Callable[[int, bytes], str] = lambda _nonce, _data: ""
    """Why a transaction is not taken, by its nonce and call data; empty: it is."""
    down: Callable[[str], bool] = lambda _method: False
    price: str = "0x3b9aca00"

    async def request(self, network: Network, method: str, params: Sequence[Any]) -> Any:
        assert network is NETWORK
        self.asked.append(method)
        await asyncio.sleep(0)
        if self.down(method):
            raise ChainUnavailable("n cannot be read right now", detail="down")
        match method:
            case "eth_gasPrice":
                return self.price
            case "eth_getBalance":
                return hex(10**18)
            case "eth_getTransactionCount":
                return hex(self.next_nonce)
            case _:
                return self._take(params[0])

    async def request_all(self, network: Network, asked: Sequence[Any]) -> list[Any]:
        return [await self.request(network, *one) for one in asked]

    @property
    def next_nonce(self) -> int:
        return next(n for n in range(10_000) if n not in self.taken)

    def _take(self, raw: str) -> str:
        fields: Any = rlp.decode(bytes.fromhex(raw[4:]))
        nonce, data = int.from_bytes(fields[1]), bytes(fields[7])
        if self.taken.get(nonce) == raw:
            raise refusal("already known")
        if nonce in self.taken:
            raise refusal("replacement transaction underpriced")
        if why := self.refuse(nonce, data):
            raise refusal(why)
        self.taken[nonce] = raw
        return "0x"


def refusal(words: str) -> RpcRefused:
    return RpcRefused("refused", rpc_code=-32000, rpc_message=words)


@dataclass
class Ledger:
    """What was written down, and when: a transaction in the pool must be in here."""

    pool: Pool
    noted: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    refuses: Callable[[str], Exception | None] = lambda _id: None

    def note(self, one: LedgerEntry) -> Callable[[SettlementAttempt], Any]:
        async def write(attempt: SettlementAttempt) -> None:
            await asyncio.sleep(0)
            if error := self.refuses(one.id):
                raise error
            assert attempt.raw not in self.pool.taken.values()
            self.noted.setdefault(one.id, []).append(attempt.raw)

        return write


@pytest.fixture
def pool() -> Pool:
    return Pool()


@pytest.fixture
def ledger(pool: Pool) -> Ledger:
    return Ledger(pool)


@pytest.fixture
def sender(pool: Pool) -> TransactionSender:
    signer = TransactionSigner(KEY)
    prices = ample_gas(pool, {NETWORK.slug: NETWORK}, signer.address, FrozenClock())
    return TransactionSender(pool, NETWORK, signer, prices)  # type: ignore[arg-type]


async def send(sender: TransactionSender, ledger: Ledger, count: int) -> list[Any]:
    ones = [payment(number) for number in range(1, count + 1)]

    async def told(one: LedgerEntry) -> object:
        try:
            return await sender.send(one, ledger.note(one))
        except Exception as error:  # noqa: BLE001 - looked at
            return error

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(told(one)) for one in ones]
    return [task.result() for task in tasks]


async def test_all_that_wait_are_sent_in_one_turn(
    sender: TransactionSender, pool: Pool, ledger: Ledger
) -> None:
    sent = await send(sender, ledger, AT_ONCE)
    assert all(isinstance(one, str) for one in sent)
    assert len(set(sent)) == AT_ONCE
    assert sorted(pool.taken) == list(range(AT_ONCE))
    assert pool.asked.count("eth_getTransactionCount") == 1


async def test_more_than_one_turn_holds_go_in_several(
    sender: TransactionSender, pool: Pool, ledger: Ledger
) -> None:
    sent = await send(sender, ledger, AT_ONCE * 2 + 5)
    assert all(isinstance(one, str) for one in sent)
    assert sorted(pool.taken) == list(range(AT_ONCE * 2 + 5))


async def test_what_is_in_the_pool_was_written_down_before(
    sender: TransactionSender, pool: Pool, ledger: Ledger
) -> None:
    """`Ledger.note` fails for what the pool has already; here: that nothing was left out."""
    await send(sender, ledger, 20)
    assert set(pool.taken.values()) == {raws[-1] for raws in ledger.noted.values()}


async def test_one_that_somebody_else_took_over_is_not_sent_and_leaves_no_gap(
    sender: TransactionSender, pool: Pool, ledger: Ledger
) -> None:
    ledger.refuses = lambda id_: SettlementPending("taken over") if id_ == "2" else None
    sent = await send(sender, ledger, 4)
    assert isinstance(sent[1], Undecided)
    assert [isinstance(one, str) for one in sent] == [True, False, True, True]
    assert sorted(pool.taken) == [0, 1, 2]
    assert set(pool.taken.values()) == {raws[-1] for raws in ledger.noted.values()}


async def test_a_note_that_fails_in_no_known_way_is_its_own_callers(
    sender: TransactionSender, ledger: Ledger
) -> None:
    ledger.refuses = lambda id_: TypeError("a bug") if id_ == "2" else None
    sent = await send(sender, ledger, 3)
    assert isinstance(sent[1], TypeError)
    assert isinstance(sent[0], str)
    assert isinstance(sent[2], str)


async def test_one_that_the_node_refuses_holds_up_none_behind_it(
    sender: TransactionSender, pool: Pool, ledger: Ledger
) -> None:
    bad = payment(2).credential["authorization"]["nonce"]  # type: ignore[index, call-overload]
    pool.refuse = lambda _, data: "exceeds block gas limit" if _nonce_in(data, bad) else ""
    sent = await send(sender, ledger, 4)
    assert [isinstance(one, str) for one in sent] == [True, False, True, True]
    assert isinstance(sent[1], Undecided)
    assert "exceeds" in sent[1].detail
    assert sorted(pool.taken) == [0, 1, 2, 3]  # its nonce was spent on nothing
    filler: Any = rlp.decode(bytes.fromhex(pool.taken[1][4:]))
    assert (bytes(filler[7]), int.from_bytes(filler[6])) == (b"", 0)
    assert "0x" + bytes(filler[5]).hex() == TransactionSigner(KEY).address


def _nonce_in(data: bytes, nonce: object) -> bool:
    return bytes.fromhex(str(nonce)[2:]) in data


async def test_a_gap_that_cannot_be_closed_is_where_the_next_turn_begins(
    sender: TransactionSender, pool: Pool, ledger: Ledger
) -> None:
    pool.refuse = lambda nonce, _: "rate limited" if nonce == 1 else ""
    await send(sender, ledger, 3)
    assert sorted(pool.taken) == [0, 2]
    pool.refuse = lambda _nonce, _data: ""
    sent = await sender.send(payment(9), ledger.note(payment(9)))
    assert isinstance(sent, str)
    assert sorted(pool.taken) == [0, 1, 2]


async def test_nonces_another_process_was_faster_with_are_asked_for_again(
    sender: TransactionSender, pool: Pool, ledger: Ledger
) -> None:
    """Two processes with one key: what comes between the count and the sending."""
    once = ["0xtheirs"]

    def theirs_first(nonce: int, _: bytes) -> str:
        if once:
            pool.taken[nonce + 1] = once.pop()
        return ""

    pool.refuse = theirs_first
    sent = await send(sender, ledger, 5)
    assert all(isinstance(one, str) for one in sent)
    assert sorted(pool.taken) == [0, 1, 2, 3, 4, 5]


async def test_what_the_node_has_already_counts_as_sent(
    sender: TransactionSender, pool: Pool, ledger: Ledger
) -> None:
    pool.refuse = lambda _nonce, _data: "already known"
    assert all(isinstance(one, str) for one in await send(sender, ledger, 3))


async def test_without_the_chain_nothing_is_known_and_nothing_is_refused(
    sender: TransactionSender, pool: Pool, ledger: Ledger
) -> None:
    pool.down = lambda method: method == "eth_sendRawTransaction"
    assert await send(sender, ledger, 3) == [Undecided("down")] * 3
    assert len(ledger.noted) == 3
    pool.down = lambda method: method == "eth_getTransactionCount"
    ledger.noted.clear()
    assert await send(sender, ledger, 3) == [Undecided("down")] * 3
    assert not ledger.noted


async def test_a_caller_that_is_gone_before_its_turn_is_left_out_of_it(
    sender: TransactionSender, pool: Pool, ledger: Ledger
) -> None:
    one, two = payment(1), payment(2)
    gone = asyncio.ensure_future(sender.send(one, ledger.note(one)))
    stays = asyncio.ensure_future(sender.send(two, ledger.note(two)))
    await asyncio.sleep(0)
    gone.cancel()
    assert isinstance(await stays, str)
    assert "1" not in ledger.noted
    assert sorted(pool.taken) == [0]


async def test_an_answer_that_is_no_number_is_an_outage(
    sender: TransactionSender, pool: Pool, ledger: Ledger
) -> None:
    pool.price = "many"
    (sent,) = await send(sender, ledger, 1)
    assert isinstance(sent, Undecided)


@pytest.mark.parametrize(
    "price",
    ["-0x5", "0x_5", " 0x5", "5", "0x5\n", "0x\uff15", "0x1" + "0" * 16, hex(GAS_PRICE_MAX + 1)],
    ids=ascii,
)
async def test_a_price_that_cannot_be_is_an_outage_and_nothing_is_signed(
    sender: TransactionSender, pool: Pool, ledger: Ledger, price: str
) -> None:
    pool.price = price
    (sent,) = await send(sender, ledger, 1)
    assert isinstance(sent, Undecided)
    assert not ledger.noted
    assert not pool.taken


async def test_what_came_before_its_predecessor_is_sent_again_and_not_signed_anew(
    pool: Pool, sender: TransactionSender, ledger: Ledger
) -> None:
    early = {1, 2, 3, 5}

    def refuse(nonce: int, _: bytes) -> str:
        if nonce not in early:
            return ""
        early.remove(nonce)
        return "Invalid transaction nonce: too high"

    pool.refuse = refuse
    sent = await send(sender, ledger, 6)
    assert sorted(pool.taken) == list(range(6))
    assert all(isinstance(one, str) for one in sent)
    assert {len(raws) for raws in ledger.noted.values()} == {1}
    assert pool.asked.count("eth_sendRawTransaction") == 6 + 4


async def test_a_node_that_is_gone_is_not_asked_once_for_each_that_waits(
    pool: Pool, sender: TransactionSender, ledger: Ledger
) -> None:
    asked = 0

    def down(method: str) -> bool:
        nonlocal asked
        asked += method == "eth_sendRawTransaction"
        return asked > 6

    pool.refuse = lambda nonce, _: "nonce too high" if nonce and asked <= 6 else ""
    pool.down = down
    sent = await send(sender, ledger, 6)
    first = pool.asked.index("eth_sendRawTransaction")
    turn = pool.asked[first : pool.asked.index("eth_getTransactionCount", first)]
    assert turn == ["eth_sendRawTransaction"] * (6 + 1)
    assert isinstance(sent[0], str)
