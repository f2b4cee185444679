"""Sends settlements from our key: all that wait on a network take their nonces in one batch.

Nonces are asked for, never counted from one batch to the next, so a refused transaction leaves no
gap. A transaction that cannot be mined at its price is replaced under its nonce. However many of a
payment's transactions are mined, its authorisation moves money once.

If the payment that signed a transaction has ended, or may not offer more, every later transaction
of the key still waits for its nonce. Such a nonce is spent on nothing, so that what waits behind it
is mined.

Source: EIP-1559; x402.md#own-engine; payment-safety.md#nonces-of-the-settling-key; ADR 0018.
"""

import asyncio
import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from assay.chains.evm.signing import EvmTransaction, TransactionSigner, transaction_of
from assay.chains.model import ChainUnavailable, Network
from assay.chains.rpc import Rpc, RpcRefused
from assay.common.cache import Cache, SingleFlight
from assay.common.clock import Clock
from assay.common.errors import Unavailable
from assay.common.json import JsonValue, is_object
from assay.common.numbers import NotANumber, hex_number
from assay.common.tasks import all_results
from assay.payments.gas import (
    GAS_MAX,
    NO_FEE,
    FeePerGas,
    GasRules,
    KeyNonces,
    KeyState,
    fee_per_gas,
)
from assay.payments.model import LedgerEntry
from assay.payments.outcomes import (
    ATTEMPTS_MAX,
    SettlementAttempt,
    Undecided,
    may_take_another_nonce,
)
from assay.payments.ports import Note
from assay.payments.x402.codec import authorization_of
from assay.payments.x402.eip3009 import transfer_data

BUMP = 8
"""A replacement offers an eighth more of both, 12.5 %. Nodes want 10 %. Source: geth and reth,
`--txpool.pricebump`."""


def replacing(offered: FeePerGas) -> FeePerGas:
    """Return the least offer that replaces a transaction with this offer."""
    return FeePerGas(*(wei + wei // BUMP + 1 for wei in offered))


def can_be_mined(most: int, base_fee: int) -> bool:
    """Return whether it can be in the next block, whose base fee may be an eighth higher."""
    return most * BUMP >= base_fee * (BUMP + 1)


GAS_PRICE_MAX: Final = 10**12
"""Highest gas price that a node may state, in wei: a thousand gwei, which no network we settle on
has approached. What is offered is taken, so a node that lies could spend our key's money."""

GAS_OF_NOTHING: Final = 21_000
"""Gas of a transaction that does nothing. Source: Yellow Paper, appendix G."""

KNOWN_S: Final = 5.0
"""Seconds for which an answer is used."""
FAILED_S: Final = 1.0
"""Seconds for which a failure is used, so that waiting callers do not load the node."""


class FeeAboveCap(ChainUnavailable):
    """A replacement would have to offer more than its settlement may cost."""


class GasPrices:
    """Implements `payments.gas.SettlingKey`: one exchange every few seconds while payments come."""

    def __init__(
        self,
        rpc: Rpc,
        networks: Mapping[str, Network],
        address: str,
        rules: GasRules,
        clock: Clock,
    ) -> None:
        self.address = address
        self._rpc = rpc
        self._networks = networks
        self.rules = rules
        self._clock = clock
        self._states: Cache[KeyState | ChainUnavailable] = Cache(
            clock, lambda found: KNOWN_S if isinstance(found, KeyState) else FAILED_S
        )
        self._sent: dict[str, int] = {}
        """The highest nonce that was sent, by network."""

    async def state(self, network: str) -> KeyState:
        found = await self._states.get(network, lambda: self._ask(self._networks[network]))
        if isinstance(found, ChainUnavailable):
            raise found
        return found

    def note_sent(self, network: str, nonce: int) -> None:
        """Record that a node has taken a transaction with that nonce."""
        self._sent[network] = max(nonce, self._sent.get(network, -1))

    async def nonces(self, network: str) -> KeyNonces:
        asked = [("eth_getTransactionCount", (self.address, tag)) for tag in ("latest", "pending")]
        counts = await self._rpc.request_all(self._networks[network], asked)
        try:
            mined, following = (hex_number(one, 64) for one in counts)
        except NotANumber:
            raise ChainUnavailable("The chain gave no number.") from None
        gap = self._sent.get(network, -1) + 1 - max(mined, following)
        return KeyNonces(max(0, following - mined), max(0, gap))

    async def price(self, network: str) -> int:
        """Return the wei for a unit of gas. Raises `ChainUnavailable`."""
        return (await self.state(network)).gas_price

    def fees(self, entry: LedgerEntry, price: int, at_least: FeePerGas = NO_FEE) -> FeePerGas:
        """Return what settling an entry offers at a gas price, at most its allowed cost.

        Raises `FeeAboveCap` if that is less than the price, or than `at_least`, which a replacement
        must offer.
        """
        return _fees(price, self.rules.cap_per_gas(entry.network, entry.amount), at_least)

    def fees_of_nothing(self, network: str, price: int, at_least: FeePerGas) -> FeePerGas:
        """Return the offer of a transaction that does nothing, at most the cheapest call's cost."""
        return _fees(price, self.rules.cap_wei(network, 0) // GAS_OF_NOTHING, at_least)

    async def _ask(self, network: Network) -> KeyState | ChainUnavailable:
        read_at = self._clock.now()
        asked = (("eth_gasPrice", ()), ("eth_getBalance", (self.address, "latest")))
        try:
            price, balance = await self._rpc.request_all(network, asked)
            return _state(price, balance, read_at)
        except ChainUnavailable as error:
            return error


def _fees(price: int, cap: int, at_least: FeePerGas) -> FeePerGas:
    fee = fee_per_gas(price, cap, at_least)
    if fee.most < max(price, at_least.most) or fee.priority < at_least.priority:
        detail = f"{max(price, at_least.most)} wei per gas are needed, {cap} allowed"
        raise FeeAboveCap("Settling would cost more than it may.", detail=detail)
    return fee


def _state(price: JsonValue, balance: JsonValue, read_at: datetime) -> KeyState:
    try:
        return KeyState(_believable(hex_number(price, 64)), hex_number(balance, 256), read_at)
    except NotANumber:
        detail = ascii((price, balance))[:200]
        raise ChainUnavailable("The chain gave no number.", detail=detail) from None


def _believable(price: int) -> int:
    """Return a gas price. Raises `ChainUnavailable` for an impossible one."""
    if price > GAS_PRICE_MAX:
        raise ChainUnavailable("The chain's gas price cannot be.", detail=f"{price} wei")
    return price


_NONCE_TROUBLE = ("nonce", "replacement transaction underpriced")
"""What nodes say if another process with our key was faster, whatever words surround it."""

_CHEAP = ("underpriced", "base fee", "basefee", "fee too low", "price too low", "price below")
"""What nodes say of a price at which nothing is mined now."""

_ALREADY_SENT = ("already known", "already imported", "known transaction")


@dataclass(frozen=True, slots=True)
class NonceConflict:
    """The nonce was taken, or the price too low: try again in another batch."""

    problem: str
    is_cheap: bool = False


def meaning(transaction: str, answer: object) -> str | Undecided | NonceConflict:
    """Return the hash of a sent transaction if a node has it, by the node's answer or error.

    Otherwise return why not.
    """
    if isinstance(answer, RpcRefused):
        problem = answer.rpc_message.lower()
        if any(words in problem for words in _ALREADY_SENT):
            return transaction
        if any(words in problem for words in _NONCE_TROUBLE):
            return NonceConflict(problem)
        if any(words in problem for words in _CHEAP):
            return NonceConflict(problem, is_cheap=True)
        return Undecided(f"not sent: {problem}")  # refused, say without gas
    if isinstance(answer, Unavailable):
        return Undecided(answer.detail or answer.message)
    return Undecided(repr(answer)) if isinstance(answer, Exception) else transaction


STUCK_S: Final = 10
"""How long the lowest nonce may wait while blocks are made, by their times: longer than a payment
takes to offer more for its own, and than three blocks of any network we settle on."""


@dataclass(frozen=True, slots=True)
class KeyNow:
    """Our key's nonces, and the newest block."""

    used: int
    """Mined transactions."""
    next: int
    """The first nonce behind those that wait."""
    base_fee: int
    time_s: int


@dataclass(slots=True)
class StuckNonces:
    """The stuck nonces of one key on one network. At most one is spent each `STUCK_S`."""

    rpc: Rpc
    network: Network
    signer: TransactionSigner
    prices: GasPrices
    _lowest: int = -1
    _since_s: int = 0
    _offered: FeePerGas = field(default=NO_FEE)
    """The offer for it before."""

    async def spend(self, nonce: int, fees: FeePerGas) -> None:
        """Send a transaction that does nothing; ignore a refusal by the node."""
        raw, _ = self.signer.sign(self._nothing(nonce, fees))
        with suppress(ChainUnavailable):
            await self.rpc.request(self.network, "eth_sendRawTransaction", (raw,))

    async def free(self, now: KeyNow) -> None:
        """Spend the lowest nonce that is not mined if it has not moved for `STUCK_S`.

        Raises `ChainUnavailable`.
        """
        if now.used >= now.next or now.used != self._lowest:
            self._lowest, self._since_s, self._offered = now.used, now.time_s, NO_FEE
            return
        if now.time_s - self._since_s < STUCK_S:
            return
        price = max(await self.prices.price(self.network.slug), now.base_fee)
        # Each time more than the last: the stuck transaction's offer is unknown.
        try:
            fees = self.prices.fees_of_nothing(self.network.slug, price, replacing(self._offered))
        except FeeAboveCap:
            return  # until gas costs less
        self._since_s, self._offered = now.time_s, fees
        await self.spend(now.used, fees)

    def _nothing(self, nonce: int, fees: FeePerGas) -> EvmTransaction:
        to, chain_id = self.signer.address, self.network.chain_id
        return EvmTransaction(chain_id, nonce, fees.priority, fees.most, GAS_OF_NOTHING, to, b"")


AT_ONCE = 32
"""Transactions of one batch."""

NONCE_TRIES = 10
NONCE_PAUSE_S = 0.05

CHEAP_TRIES = 2


@dataclass(slots=True, eq=False)
class _Waiting:
    """One settlement in a batch; `transaction` once it is signed."""

    entry: LedgerEntry
    note: Note
    sent: asyncio.Future[str | Undecided | NonceConflict]
    nonce: int = 0
    raw: str = ""
    transaction: str = ""
    price: int = 0
    """The least price that gas is known to have, whatever was said before."""
    fees: FeePerGas = NO_FEE


@dataclass(slots=True)
class TransactionSender:
    """The batches of one network. Every attempt is stored before it is sent."""

    rpc: Rpc
    network: Network
    signer: TransactionSigner
    prices: GasPrices
    _asked: SingleFlight[KeyNow] = field(default_factory=SingleFlight[KeyNow])
    _queue: list[_Waiting] = field(default_factory=list[_Waiting])
    _runner: asyncio.Task[None] | None = None
    _stuck: StuckNonces = field(init=False)

    def __post_init__(self) -> None:
        self._stuck = StuckNonces(self.rpc, self.network, self.signer, self.prices)

    async def send(self, entry: LedgerEntry, note: Note) -> str | Undecided:
        """Return the hash of the transaction that was sent; `Undecided` if perhaps none was.

        A settlement that is cancelled before its batch began is left out.
        """
        problem, price, cheap = "", 0, 0
        for signed in range(NONCE_TRIES):
            if not may_take_another_nonce(entry.attempt, signed):
                problem = problem or "it has had too many nonces"
                break
            outcome = await self._turn(entry, note, price)
            if not isinstance(outcome, NonceConflict):
                return outcome
            problem, cheap = outcome.problem, cheap + outcome.is_cheap
            if cheap >= CHEAP_TRIES:
                break
            if outcome.is_cheap:
                price = (await self._chain_now()).base_fee
            await asyncio.sleep(random.uniform(0, NONCE_PAUSE_S))  # noqa: S311 - who goes first
        return Undecided(f"not sent: {problem}")

    async def push(self, entry: LedgerEntry, note: Note) -> str | Undecided | None:
        """Send what was signed again, or its replacement, as `resend` does.

        Returns None if its nonce is used, or an earlier key's: its receipt decides.
        """
        chain = await self._chain_now()
        raw = entry.attempt.raw
        if not self.signer.has_signed(raw) or transaction_of(raw).nonce < chain.used:
            return None
        fixed = await self._fixed(entry, note, chain)
        if fixed is not None:
            return fixed
        (refused,) = await all_results([self._ask("eth_sendRawTransaction", entry.attempt.raw)])
        found = meaning(entry.attempt.transaction, refused)
        return (
            Undecided(f"not sent: {found.problem}") if isinstance(found, NonceConflict) else found
        )

    async def resend(self, entry: LedgerEntry, note: Note) -> str | Undecided | None:
        """Replace what was signed if it cannot be mined: too cheap now, or behind a gap.

        Returns None if nothing is to be done, or nothing may be signed any more. Raises
        `ChainUnavailable`.
        """
        return await self._fixed(entry, note, await self._chain_now())

    async def _fixed(self, entry: LedgerEntry, note: Note, chain: KeyNow) -> str | Undecided | None:
        signed = transaction_of(entry.attempt.raw)
        is_ours = self.signer.has_signed(entry.attempt.raw)
        if not is_ours or signed.nonce < chain.used or len(entry.attempt.earlier) >= ATTEMPTS_MAX:
            return None
        if signed.nonce > chain.next:
            may = may_take_another_nonce(entry.attempt)
            return await self.send(entry, note) if may else None
        if can_be_mined(signed.fee, chain.base_fee):
            return None
        price = max(await self.prices.price(self.network.slug), chain.base_fee)
        one = _Waiting(entry, note, asyncio.get_running_loop().create_future(), signed.nonce)
        least = replacing(FeePerGas(signed.priority_fee, signed.fee))
        try:
            one.fees = self.prices.fees(entry, price, least)
        except FeeAboveCap:
            return None
        self._sign(one)
        await note(SettlementAttempt(one.transaction, one.raw))
        (answer,) = await all_results([self._ask("eth_sendRawTransaction", one.raw)])
        found = meaning(one.transaction, answer)
        return (
            Undecided(f"not replaced: {found.problem}")
            if isinstance(found, NonceConflict)
            else found
        )

    async def _turn(
        self, entry: LedgerEntry, note: Note, price: int
    ) -> str | Undecided | NonceConflict:
        loop = asyncio.get_running_loop()
        waiting = _Waiting(entry, note, loop.create_future(), price=price)
        self._queue.append(waiting)
        if self._runner is None:
            self._runner = loop.create_task(self._run())
        return await waiting.sent

    async def _run(self) -> None:
        some: list[_Waiting] = []
        try:
            while self._queue:
                some, self._queue = self._queue[:AT_ONCE], self._queue[AT_ONCE:]
                some = [one for one in some if not one.sent.cancelled()]
                try:
                    await self._send_all(some)
                except Exception as error:  # noqa: BLE001 - raised in the task of each
                    _tell(some, error)
        finally:
            self._runner = None
            left, self._queue = (*some, *self._queue), []
            _tell(left, ChainUnavailable("Nothing is sent any more."))  # if this was cancelled

    async def _send_all(self, some: Sequence[_Waiting]) -> None:
        """Do one batch: nonces, signatures, the ledger, and only then the chain."""
        price = await self.prices.price(self.network.slug)
        first = quantity(await self._ask("eth_getTransactionCount", self.signer.address, "pending"))
        some = await self._recorded(self._priced(some, price), first)
        refused = await self._sent(some)
        pairs = zip(some, refused, strict=True)
        outcomes = [meaning(one.transaction, found) for one, found in pairs]
        await self._close_gaps(some, outcomes)
        for one, outcome in zip(some, outcomes, strict=True):
            _answer(one, outcome)

    async def _sent(self, some: Sequence[_Waiting]) -> list[object]:
        """Return the answer to each: all at once, then in order those that came too early.

        If batches are not accepted, a node may see a nonce before the one below it, and not all
        nodes keep it until then.
        """
        asked = [self._ask("eth_sendRawTransaction", one.raw) for one in some]
        refused: list[object] = [*await all_results(asked)]
        for place, one in enumerate(some):
            found = meaning(one.transaction, refused[place])
            if isinstance(found, NonceConflict) and not found.is_cheap:
                (refused[place],) = await all_results(
                    [self._ask("eth_sendRawTransaction", one.raw)]
                )
                if meaning(one.transaction, refused[place]) != one.transaction:
                    break  # it is missing, so nothing above it will be taken
        return refused

    def _priced(self, some: Sequence[_Waiting], price: int) -> Sequence[_Waiting]:
        """Return those that can be mined at their allowed cost: others would block the rest."""
        fine: list[_Waiting] = []
        for one in some:
            try:
                one.fees = self.prices.fees(one.entry, max(price, one.price))
            except FeeAboveCap as error:
                _answer(one, error)
            else:
                fine.append(one)
        return fine

    async def _recorded(self, some: Sequence[_Waiting], first: int) -> Sequence[_Waiting]:
        """Return those whose transactions are signed, without a gap, and stored."""
        while some:
            for place, one in enumerate(some):
                one.nonce = first + place
                self._sign(one)
            found = await all_results(
                [one.note(SettlementAttempt(one.transaction, one.raw)) for one in some]
            )
            fine: list[_Waiting] = []
            for one, error in zip(some, found, strict=True):
                if isinstance(error, Exception):
                    _answer(one, error)
                else:
                    fine.append(one)
            if len(fine) == len(some):
                break
            some = fine  # sign again: one that is left out must leave no gap
        return some

    def _sign(self, one: _Waiting) -> None:
        entry, fees = one.entry, one.fees
        data = transfer_data(authorization_of(entry.credential))
        one.raw, one.transaction = self.signer.sign(
            EvmTransaction(
                self.network.chain_id,
                one.nonce,
                fees.priority,
                fees.most,
                GAS_MAX,
                entry.asset,
                data,
            )
        )

    async def _close_gaps(
        self, some: Sequence[_Waiting], outcomes: Sequence[str | Undecided | NonceConflict]
    ) -> None:
        """Spend on nothing the nonces that were refused below one that was taken.

        Otherwise what was taken would wait for them. If a nonce was used after all, the node says
        so. If nothing is taken for it, the next batch begins at the gap.
        """
        pairs = list(zip(some, outcomes, strict=True))
        taken = max((one.nonce for one, found in pairs if isinstance(found, str)), default=-1)
        self.prices.note_sent(self.network.slug, taken)
        gaps = [one for one, found in pairs if isinstance(found, Undecided) and one.nonce < taken]
        await all_results([self._stuck.spend(one.nonce, one.fees) for one in gaps])

    async def _chain_now(self) -> KeyNow:
        """Return the key's state; concurrent callers share one question.

        A nonce that delays all behind it is spent on nothing meanwhile. Raises `ChainUnavailable`.
        """
        return await self._asked.run("now", self._ask_now)

    async def _ask_now(self) -> KeyNow:
        mine = self.signer.address
        counts = [("eth_getTransactionCount", (mine, tag)) for tag in ("latest", "pending")]
        asked = (*counts, ("eth_getBlockByNumber", ("latest", False)))
        used, following, block = await self.rpc.request_all(self.network, asked)
        if not is_object(block):
            raise ChainUnavailable("The chain gave no block.")
        base_fee, time_s = (quantity(block.get(name)) for name in ("baseFeePerGas", "timestamp"))
        now = KeyNow(quantity(used), quantity(following), _believable(base_fee), time_s)
        await self._stuck.free(now)
        return now

    async def _ask(self, method: str, *params: JsonValue) -> JsonValue:
        return await self.rpc.request(self.network, method, params)


def quantity(value: JsonValue) -> int:
    """Return a number below 2^64 as nodes write it. Raises `ChainUnavailable`."""
    try:
        return hex_number(value, 64)
    except NotANumber:
        raise ChainUnavailable("The chain gave no number.", detail=ascii(value)[:100]) from None


def _answer(one: _Waiting, outcome: str | Undecided | NonceConflict | Exception) -> None:
    if one.sent.done():
        return
    if isinstance(outcome, Unavailable):
        one.sent.set_result(Undecided(outcome.detail or outcome.message))
    elif isinstance(outcome, Exception):
        one.sent.set_exception(outcome)
    else:
        one.sent.set_result(outcome)


def _tell(some: Sequence[_Waiting], error: Exception) -> None:
    for one in some:
        _answer(one, error)
