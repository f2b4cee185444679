"""Our own x402 facilitator: verifies by one read of the chain, settles with the operator's key.

Source: EIP-3009; x402 `schemes/exact/scheme_exact_evm.md`; facts, payments 2 and 6.
"""

import asyncio
import math
import re
from collections.abc import Mapping

from assay.chains.abi import BadAnswer, Reader
from assay.chains.model import ChainUnavailable, Network
from assay.chains.ports import Call, Returned, Reverted, Rpc, RpcRefused
from assay.infra.crypto.transactions import TransactionSigner
from assay.infra.payments.eip3009_contract import (
    balance_of,
    pays,
    state_of,
    transfer_data,
    used_topics,
)
from assay.infra.payments.x402_sender import NONCE_TROUBLE, Sender, quantity
from assay.kit.clock import Clock
from assay.kit.errors import Unavailable
from assay.kit.json import JsonValue, is_array, is_object
from assay.payments.model import (
    Entry,
    Outcome,
    Payment,
    PaymentNetwork,
    PaymentRefused,
    PaymentsUnavailable,
    Rejected,
    Settled,
    Undecided,
)
from assay.payments.ports import Note
from assay.payments.x402_wire import authorization_of

POLL_S = 0.02
POLL_MAX_S = 0.5
CHAIN_CLOCK_SLACK_S = 120.0
"""How far a chain's clock may lag before an authorisation that has ended counts as ended."""

LOG_BLOCKS = (100, 1900, *([2000] * 11))
"""How far back a settlement by somebody else is looked for, the last few minutes by themselves:
24,000 blocks, 13 hours on Base."""


_HASH = re.compile(r"0x[0-9a-fA-F]{64}")
_UNUSED = "not used yet"
_ELSEWHERE = "authorization_cancelled"
"""Cancelled, or spent on somebody else: it cannot pay us any more."""
_NO_KEY = "no key to settle with"


class X402Engine:
    """Implements `payments.ports.Facilitator` with a key of ours."""

    def __init__(
        self,
        rpc: Rpc,
        networks: Mapping[str, Network],
        signer: TransactionSigner | None,
        clock: Clock,
        settlement_s: float,
    ) -> None:
        self._rpc = rpc
        self._networks = networks
        self._signer = signer
        self._clock = clock
        self._settlement_s = settlement_s
        self._senders: dict[str, Sender] = {}

    @property
    def has_key(self) -> bool:
        """Whether there is a key to settle with."""
        return self._signer is not None

    def take_up(self, signer: TransactionSigner) -> None:
        """Settle with this key from now on, where there was none."""
        if self._signer is None:
            self._signer = signer

    async def verify(self, payment: Payment) -> int:
        if self._signer is None:
            raise PaymentsUnavailable("x402 payments cannot be settled here now.", detail="no key")
        network = payment.quote.network
        signed = authorization_of(payment.credential)
        asset = network.asset.address
        calls = (
            Call(asset, balance_of(signed.payer)),
            Call(asset, state_of(signed.payer, signed.nonce)),
            Call(asset, transfer_data(signed)),
        )
        balance, used, transfer = await self._call(network.id, calls)
        if _number(used):
            raise PaymentRefused(
                "invalid_exact_evm_nonce_already_used", "This authorisation was used already."
            )
        held = _number(balance)
        if held < signed.value:
            raise PaymentRefused("insufficient_funds", "The payer does not have the amount.")
        if isinstance(transfer, Reverted):
            raise PaymentRefused(
                "invalid_transaction_state", "The asset's contract refuses this transfer."
            )
        return held

    async def balance(self, network: PaymentNetwork, payer: str) -> int:
        call = Call(network.asset.address, balance_of(payer))
        (balance,) = await self._call(network.id, (call,))
        return _number(balance)

    async def settle(self, entry: Entry, note: Note) -> Outcome:
        deadline_s = self._clock.monotonic_s() + self._settlement_s
        try:
            sender = self._sender(entry.network)
            sent = Undecided(_NO_KEY) if sender is None else await sender.send(entry, note)
        except Unavailable as error:
            return Undecided(error.detail or error.message)
        if isinstance(sent, Undecided):
            return sent
        return await self._wait(entry, sent, deadline_s)

    async def outcome(self, entry: Entry) -> Outcome:
        """Whoever sent it: what the asset's contract says of this payer's nonce."""
        try:
            return await self._outcome(entry)
        except Unavailable as error:
            return Undecided(error.detail or error.message)

    async def resend(self, entry: Entry, note: Note) -> Outcome:
        try:
            await self._request(entry.network, "eth_sendRawTransaction", entry.attempt.raw)
        except RpcRefused as error:
            if any(words in error.rpc_message.lower() for words in NONCE_TROUBLE):
                found = await self.outcome(entry)
                return await self.settle(entry, note) if is_unused(found) else found
        except Unavailable as error:
            return Undecided(error.detail or error.message)
        deadline_s = self._clock.monotonic_s() + self._settlement_s
        return await self._wait(entry, entry.attempt.transaction, deadline_s)

    async def _outcome(self, entry: Entry) -> Outcome:
        if entry.attempt.transaction:
            receipt = await self._receipt(entry.network, entry.attempt.transaction)
            if receipt is not None and pays(receipt, entry):
                return Settled(entry.attempt.transaction)
        signed = authorization_of(entry.credential)
        data = state_of(signed.payer, signed.nonce)
        (used,) = await self._call(entry.network, (Call(entry.asset, data),))
        if not _number(used):
            ended = self._clock.now().timestamp() - CHAIN_CLOCK_SLACK_S > signed.valid_before
            return Rejected("expired_unused") if ended else Undecided(_UNUSED)
        return await self._find_use(entry)

    def _sender(self, network: str) -> Sender | None:
        if self._signer is None:
            return None
        known = self._senders.get(network)
        if known is None:
            known = Sender(self._rpc, self._networks[network], self._signer, self._clock)
            self._senders[network] = known
        return known

    async def _wait(self, entry: Entry, transaction: str, deadline_s: float) -> Outcome:
        pause_s = POLL_S
        while self._clock.monotonic_s() < deadline_s:
            try:
                receipt = await self._receipt(entry.network, transaction)
            except ChainUnavailable:
                receipt = None
            if receipt is not None:
                if pays(receipt, entry):
                    return Settled(transaction)
                return await self._after_revert(entry)
            # To a mark of one clock for all: who waits together asks in one exchange.
            marks = math.ceil((self._clock.monotonic_s() + pause_s - POLL_S / 2) / POLL_S)
            await asyncio.sleep(marks * POLL_S - self._clock.monotonic_s())
            pause_s = min(pause_s * 1.5, POLL_MAX_S)
        return Undecided("no receipt in time")

    async def _after_revert(self, entry: Entry) -> Outcome:
        """Ours reverted: perhaps because somebody else sent it first, and then it is paid."""
        found = await self.outcome(entry)
        return Rejected("transaction_failed") if is_unused(found) else found

    async def _find_use(self, entry: Entry) -> Outcome:
        """The transaction that used it, and whether that paid us; a cancelled one did not."""
        last = quantity(await self._request(entry.network, "eth_blockNumber"))
        for blocks in LOG_BLOCKS:
            if last < 0:
                break
            asked = {
                "address": entry.asset,
                "fromBlock": hex(max(0, last - blocks + 1)),
                "toBlock": hex(last),
                "topics": used_topics(entry),
            }
            last -= blocks
            logs = await self._request(entry.network, "eth_getLogs", asked)
            if found := _transaction_of(logs):
                receipt = await self._receipt(entry.network, found)
                if receipt is not None:
                    return Settled(found) if pays(receipt, entry) else Rejected(_ELSEWHERE)
        ended = self._clock.now() > entry.expires_at
        return Rejected(_ELSEWHERE) if ended else Undecided("used, not found")

    async def _receipt(self, network: str, transaction: str) -> JsonValue:
        return await self._request(network, "eth_getTransactionReceipt", transaction)

    async def _call(self, network: str, calls: tuple[Call, ...]) -> tuple[Returned | Reverted, ...]:
        try:
            return tuple(await self._rpc.call_newest(self._networks[network], calls))
        except ChainUnavailable as error:
            raise _unavailable(error) from error

    async def _request(self, network: str, method: str, *params: JsonValue) -> JsonValue:
        return await self._rpc.request(self._networks[network], method, params)


def is_unused(found: Outcome) -> bool:
    """Whether the chain itself says that nothing has moved: else nobody may call it a refusal."""
    return isinstance(found, Undecided) and found.detail == _UNUSED


def _transaction_of(logs: JsonValue) -> str:
    first = logs[0] if is_array(logs) and logs else None
    told = str(first.get("transactionHash", "")) if is_object(first) else ""
    return told.lower() if _HASH.fullmatch(told) else ""


def _number(outcome: Returned | Reverted) -> int:
    """The one word returned."""
    if isinstance(outcome, Reverted):
        raise PaymentsUnavailable(
            "Payments cannot be checked now.", detail=f"reverted: {outcome.message}"
        )
    try:
        return Reader(outcome.data).number(0)
    except BadAnswer as error:
        raise PaymentsUnavailable("Payments cannot be checked now.", detail=str(error)) from error


def _unavailable(error: ChainUnavailable) -> PaymentsUnavailable:
    detail = error.detail or error.message
    return PaymentsUnavailable("Payments cannot be checked now.", detail=detail, retry_after_s=5)
