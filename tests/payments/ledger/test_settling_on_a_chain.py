"""Settlements that cannot be mined as they were signed, on a real chain with fees that rise."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from eth_account import Account

from assay.chains.evm.rpc_network import JsonRpc
from assay.chains.evm.signing import TransactionSigner, transaction_of
from assay.chains.model import Network
from assay.common.clock import SystemClock
from assay.payments.model import LedgerEntry, PaymentState
from assay.payments.outcomes import Rejected, Settled, SettlementAttempt, Undecided, after, hashes
from assay.payments.x402.codec import authorization_of
from assay.payments.x402.engine import X402Engine
from assay_demo.chain import dollars
from assay_demo.chain.accounts import ACCOUNTS
from assay_demo.chain.registries import selector
from tests.payments.unit.test_x402_vectors import VECTORS, entry
from tests.support.fakes.gas import ample_gas
from tests.support.fee_chain import FeeChain, fee_chain
from tests.support.node_proxy import NodeProxy, node_proxy

pytestmark = pytest.mark.slow

NETWORK_ID, CENT, GWEI = "eip155:84532", 10_000, 10**9
ENGINE, PAYER, SELLER = ACCOUNTS[0], ACCOUNTS[7], ACCOUNTS[30]
REQUIREMENT = {
    "amount": str(CENT),
    "payTo": SELLER.address,
    "asset": dollars.BASE_SEPOLIA_USDC,
    "extra": {"name": "USDC", "version": "2"},
}
POLLS = 400


@pytest.fixture(scope="module")
def chain() -> Iterator[FeeChain]:
    with fee_chain() as running:
        running.mint(PAYER.address, 10**9)
        yield running


@pytest.fixture(scope="module")
def proxy(chain: FeeChain) -> Iterator[NodeProxy]:
    with node_proxy(chain.url) as running:
        yield running


@dataclass
class Settling:
    """An engine, and one payment's row as the ledger would keep it."""

    chain: FeeChain
    engine: X402Engine
    entry: LedgerEntry
    attempts: list[SettlementAttempt] = field(default_factory=list[SettlementAttempt])

    async def note(self, attempt: SettlementAttempt) -> None:
        assert await self.pooled(attempt.transaction) is None  # written down before it is sent
        self.attempts.append(attempt)
        self.entry = replace(self.entry, attempt=after(self.entry.attempt, attempt))

    async def pooled(self, transaction: str) -> Any:
        return await asyncio.to_thread(self.chain.request, "eth_getTransactionByHash", transaction)

    async def mine(self, base_fee: int | None = None) -> None:
        if base_fee is not None:
            await asyncio.to_thread(
                self.chain.request, "anvil_setNextBlockBaseFeePerGas", hex(base_fee)
            )
        await asyncio.to_thread(self.chain.mine)

    async def until(self, is_so: Callable[[], bool]) -> None:
        for _ in range(POLLS):
            if is_so():
                return
            await asyncio.sleep(0.05)
        raise AssertionError("it never was so")

    async def in_pool(self, count: int) -> None:
        """Once so many attempts were sent, and the newest is there."""
        await self.until(lambda: len(self.attempts) >= count)
        for _ in range(POLLS):
            if await self.pooled(self.attempts[-1].transaction) is not None:
                return
            await asyncio.sleep(0.05)
        raise AssertionError("it never was sent")


def signed_payment(**signing: Any) -> LedgerEntry:
    payload = dollars.authorize(PAYER.key, REQUIREMENT, 84532, valid_s=3600, **signing)
    signed = authorization_of(payload)  # type: ignore[arg-type]
    return replace(
        entry(VECTORS["receipts"][0]),
        network=NETWORK_ID,
        asset=dollars.BASE_SEPOLIA_USDC,
        payer=PAYER.address.lower(),
        nonce=signed.nonce,
        pay_to=SELLER.address.lower(),
        amount=CENT,
        state=PaymentState.SETTLING,
        attempt=SettlementAttempt(""),
        credential=payload,  # type: ignore[arg-type]
        created_at=datetime.now(UTC) - timedelta(seconds=1),  # noqa: TID251
    )


def network(*urls: str) -> Network:
    return Network(
        slug=NETWORK_ID,
        name="n",
        chain_id=84532,
        testnet=True,
        identity_registry="0x" + "00" * 20,
        reputation_registry="0x" + "00" * 20,
        rpc_urls=urls,
        source="a test",
    )


@pytest.fixture
async def settling(chain: FeeChain, proxy: NodeProxy) -> AsyncIterator[Settling]:
    clock = SystemClock()
    rpc = JsonRpc(clock)
    signer = TransactionSigner(ENGINE.key)
    chain.request("anvil_setNextBlockBaseFeePerGas", hex(GWEI))
    chain.mine()
    chains = {NETWORK_ID: network(proxy.url)}
    prices = ample_gas(rpc, chains, signer.address, clock)
    engine = X402Engine(rpc, chains, signer, prices, clock, 60.0)
    yield Settling(chain, engine, signed_payment())
    proxy.instead = lambda _asked: None
    await rpc.aclose()


async def test_it_settles_within_two_blocks_after_the_base_fee_has_risen_tenfold(
    settling: Settling,
) -> None:
    had = settling.chain.balance(SELLER.address)
    under_way = asyncio.ensure_future(settling.engine.settle(settling.entry, settling.note))
    await settling.in_pool(1)
    risen = settling.chain.height
    await settling.mine(10 * GWEI)
    await settling.in_pool(2)
    await settling.mine()
    assert await under_way == Settled(settling.attempts[-1].transaction)
    assert settling.chain.height == risen + 2
    first, second = (transaction_of(one.raw) for one in settling.attempts)
    assert second.nonce == first.nonce
    assert second.fee * 8 >= first.fee * 9
    assert second.priority_fee * 8 >= first.priority_fee * 9
    assert settling.chain.balance(SELLER.address) == had + CENT
    assert hashes(settling.entry.attempt)[1] == settling.attempts[0].transaction


async def test_what_a_crash_left_too_cheap_is_replaced_by_who_looks_next(
    settling: Settling,
) -> None:
    had = settling.chain.balance(SELLER.address)
    under_way = asyncio.ensure_future(settling.engine.settle(settling.entry, settling.note))
    await settling.in_pool(1)
    under_way.cancel()
    await settling.mine(10 * GWEI)
    assert (await settling.engine.outcome(settling.entry)) == Undecided(
        "not used yet", is_unused=True
    )
    await settling.engine.resend(settling.entry, settling.note)
    await settling.mine()
    newest = settling.attempts[-1].transaction
    assert await settling.engine.outcome(settling.entry) == Settled(newest)
    assert settling.chain.balance(SELLER.address) == had + CENT


async def test_a_node_that_says_once_that_gas_is_free_costs_no_time(
    settling: Settling, proxy: NodeProxy
) -> None:
    lies = ["0x0"]

    def cheap(asked: Any) -> Any:
        """To the price and the key's balance, which are asked for together."""
        if not isinstance(asked, list) or asked[0]["method"] != "eth_gasPrice" or not lies:
            return None
        told = (lies.pop(), hex(10**24))
        pairs = zip(asked, told, strict=True)
        return [{"jsonrpc": "2.0", "id": one["id"], "result": value} for one, value in pairs]

    proxy.instead = cheap
    under_way = asyncio.ensure_future(settling.engine.settle(settling.entry, settling.note))
    await settling.in_pool(2)
    await settling.mine()
    assert await under_way == Settled(settling.attempts[-1].transaction)
    assert not lies


async def test_one_signed_behind_a_gap_is_signed_anew_and_both_mined_pay_once(
    settling: Settling, proxy: NodeProxy
) -> None:
    """The authorisation's nonce is single-use on the chain: the second transaction reverts."""
    had = settling.chain.balance(SELLER.address)
    lies = [1]

    def ahead(asked: Any) -> Any:
        if (
            isinstance(asked, dict)
            and asked["method"] == "eth_getTransactionCount"
            and asked["params"][1] == "pending"
            and lies
        ):
            true = settling.chain.request("eth_getTransactionCount", *asked["params"])
            result = hex(int(true, 16) + lies.pop())
            return {"jsonrpc": "2.0", "id": asked["id"], "result": result}
        return None

    proxy.instead = ahead
    under_way = asyncio.ensure_future(settling.engine.settle(settling.entry, settling.note))
    await settling.in_pool(2)
    first, second = (transaction_of(one.raw) for one in settling.attempts)
    assert second.nonce == first.nonce - 1
    await settling.mine()
    assert await under_way == Settled(settling.attempts[1].transaction)
    await settling.mine()
    receipts = [
        settling.chain.request("eth_getTransactionReceipt", one.transaction)
        for one in settling.attempts
    ]
    assert [receipt["status"] for receipt in receipts] == ["0x0", "0x1"]
    assert settling.chain.balance(SELLER.address) == had + CENT
    assert await settling.engine.outcome(settling.entry) == Settled(
        settling.attempts[1].transaction
    )


async def test_the_receipt_of_an_older_attempt_counts(settling: Settling) -> None:
    under_way = asyncio.ensure_future(settling.engine.settle(settling.entry, settling.note))
    await settling.in_pool(1)
    await settling.mine()
    assert await under_way == Settled(settling.attempts[0].transaction)
    newer = replace(
        settling.entry, attempt=after(settling.entry.attempt, SettlementAttempt("0x" + "77" * 32))
    )
    paid = Settled(settling.attempts[0].transaction)
    assert await settling.engine.outcome(newer) == paid


async def test_a_cancelled_authorisation_ends_by_its_event_on_a_real_chain(
    settling: Settling,
) -> None:
    cancel(settling.chain, settling.entry)
    assert await settling.engine.outcome(settling.entry) == Rejected("authorization_cancelled")


async def test_many_are_asked_about_in_one_batch_on_a_real_chain(settling: Settling) -> None:
    used, unused = signed_payment(), signed_payment()
    cancel(settling.chain, used)
    ones = [replace(used, id="used"), replace(unused, id="unused")]
    found = await settling.engine.outcomes(ones)
    assert [isinstance(one, Rejected) for one in found] == [True, False]


async def test_two_nodes_that_agree_end_it_and_one_that_is_gone_does_not(
    chain: FeeChain, proxy: NodeProxy
) -> None:
    clock = SystemClock()
    rpc = JsonRpc(clock)
    try:
        gone = signed_payment()
        cancel(chain, gone)
        both = X402Engine(rpc, {NETWORK_ID: network(chain.url, proxy.url)}, None, None, clock, 1.0)
        assert await both.outcome(gone) == Rejected("authorization_cancelled")
        with proxy.failing("eth_getBlockByNumber", "eth_call"):
            assert isinstance(await both.outcome(gone), Undecided)
    finally:
        await rpc.aclose()


def cancel(chain: FeeChain, one: LedgerEntry) -> None:
    """By its payer's signature, as anybody may submit it."""
    signed = Account.sign_typed_data(
        PAYER.key,
        domain_data={
            "name": "USDC",
            "version": "2",
            "chainId": 84532,
            "verifyingContract": dollars.BASE_SEPOLIA_USDC,
        },
        message_types={
            "CancelAuthorization": [
                {"name": "authorizer", "type": "address"},
                {"name": "nonce", "type": "bytes32"},
            ]
        },
        message_data={"authorizer": PAYER.address, "nonce": bytes.fromhex(one.nonce[2:])},
    )
    words = [
        bytes.fromhex(PAYER.address[2:]).rjust(32, b"\0"),
        bytes.fromhex(one.nonce[2:]),
        int(signed.v).to_bytes(32),
        int(signed.r).to_bytes(32),
        int(signed.s).to_bytes(32),
    ]
    name = "cancelAuthorization(address,bytes32,uint8,bytes32,bytes32)"
    with chain.mining():
        data = selector(name) + b"".join(words)
        chain.wallet.send(ACCOUNTS[1].key, dollars.BASE_SEPOLIA_USDC, data)
