"""Sending settlements from our key: all that wait on a network take their nonces in one turn.

Nonces are asked for, never counted from one turn to the next: a transaction that was refused
leaves no gap. What cannot be mined at its price is replaced under its nonce. However many of a
payment's transactions are mined, its authorisation moves money once. Source: facts, payments 2 and
6, row 15; ADR 0018.
"""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from assay.chains.model import ChainUnavailable, Network
from assay.chains.ports import Rpc
from assay.infra.crypto.transactions import Transaction, TransactionSigner, transaction_of
from assay.infra.payments.eip3009_contract import transfer_data
from assay.infra.payments.gas_price import FeeAboveCap, GasPrices, believable
from assay.infra.payments.offered_fees import can_be_mined, replacing
from assay.infra.payments.send_answers import Again, meaning
from assay.kit.errors import Unavailable
from assay.kit.json import JsonValue, is_object
from assay.kit.numbers import NotANumber, hex_number
from assay.kit.singleflight import SingleFlight
from assay.kit.tasks import all_results
from assay.payments.attempts import ATTEMPTS_MAX
from assay.payments.gas_rules import GAS_MAX, NO_FEE, FeePerGas
from assay.payments.model import Entry
from assay.payments.outcomes import Attempt, Undecided
from assay.payments.ports import Note
from assay.payments.x402_wire import authorization_of

GAS_OF_NOTHING = 21_000
"""Of a transaction that does nothing. Source: Yellow Paper, appendix G."""

AT_ONCE = 32
"""Transactions of one turn."""

NONCE_TRIES = 10
NONCE_PAUSE_S = 0.05

CHEAP_TRIES = 2


@dataclass(slots=True, eq=False)
class _Waiting:
    """One settlement in a turn; `transaction` once it is signed."""

    entry: Entry
    note: Note
    sent: asyncio.Future[str | Undecided | Again]
    nonce: int = 0
    raw: str = ""
    transaction: str = ""
    price: int = 0
    """Least that a gas is known to cost, whatever was said before."""


@dataclass(frozen=True, slots=True)
class _Now:
    """How many nonces of our key are mined, the next one with those that wait; and the base fee."""

    used: int
    next: int
    base_fee: int


@dataclass(slots=True)
class Sender:
    """One network's turns. Every attempt is written down before it is sent."""

    rpc: Rpc
    network: Network
    signer: TransactionSigner
    prices: GasPrices
    _asked: SingleFlight[_Now] = field(default_factory=SingleFlight["_Now"])
    _queue: list[_Waiting] = field(default_factory=list[_Waiting])
    _runner: asyncio.Task[None] | None = None

    async def send(self, entry: Entry, note: Note) -> str | Undecided:
        """The hash of the transaction that went out; `Undecided` when perhaps none did.

        Whoever is cancelled before his turn began is left out of it.
        """
        problem, price, cheap = "", 0, 0
        for _ in range(NONCE_TRIES):
            outcome = await self._turn(entry, note, price)
            if not isinstance(outcome, Again):
                return outcome
            problem, cheap = outcome.problem, cheap + outcome.is_cheap
            if cheap >= CHEAP_TRIES:
                break
            if outcome.is_cheap:
                price = (await self._chain_now()).base_fee
            await asyncio.sleep(random.uniform(0, NONCE_PAUSE_S))  # noqa: S311 - who goes first
        return Undecided(f"not sent: {problem}")

    async def push(self, entry: Entry, note: Note) -> str | Undecided | None:
        """Send what was signed once more, or what has to replace it, as `mend` does.

        None where its nonce is used: it is mined, or another transaction with that nonce.
        """
        chain = await self._chain_now()
        if transaction_of(entry.attempt.raw).nonce < chain.used:
            return None
        mended = await self._mended(entry, note, chain)
        if mended is not None:
            return mended
        (refused,) = await all_results([self._ask("eth_sendRawTransaction", entry.attempt.raw)])
        found = meaning(entry.attempt.transaction, refused)
        return Undecided(f"not sent: {found.problem}") if isinstance(found, Again) else found

    async def mend(self, entry: Entry, note: Note) -> str | Undecided | None:
        """Replace what was signed where it cannot be mined: too cheap now, or behind a gap.

        None where nothing is to be done, or nothing may be signed any more. Raises
        `ChainUnavailable`.
        """
        return await self._mended(entry, note, await self._chain_now())

    async def _mended(self, entry: Entry, note: Note, chain: _Now) -> str | Undecided | None:
        signed = transaction_of(entry.attempt.raw)
        if len(entry.attempt.earlier) >= ATTEMPTS_MAX or signed.nonce < chain.used:
            return None
        if signed.nonce > chain.next:
            return await self.send(entry, note)
        if can_be_mined(signed.fee, chain.base_fee):
            return None
        price = max(await self.prices.price(self.network.slug), chain.base_fee)
        one = _Waiting(entry, note, asyncio.get_running_loop().create_future(), signed.nonce)
        try:
            self._sign(one, price, replacing(FeePerGas(signed.priority_fee, signed.fee)))
        except FeeAboveCap:
            return None
        await note(Attempt(one.transaction, one.raw))
        (answer,) = await all_results([self._ask("eth_sendRawTransaction", one.raw)])
        found = meaning(one.transaction, answer)
        return Undecided(f"not replaced: {found.problem}") if isinstance(found, Again) else found

    async def _turn(self, entry: Entry, note: Note, price: int) -> str | Undecided | Again:
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
                except Exception as error:  # noqa: BLE001 - told to each, in their own tasks
                    _tell(some, error)
        finally:
            self._runner = None
            left, self._queue = (*some, *self._queue), []
            _tell(left, ChainUnavailable("Nothing is sent any more."))  # if this was called off

    async def _send_all(self, some: Sequence[_Waiting]) -> None:
        """One turn: nonces, signatures, the ledger, and only then the chain."""
        price = await self.prices.price(self.network.slug)
        first = quantity(await self._ask("eth_getTransactionCount", self.signer.address, "pending"))
        some = await self._noted(some, first, price)
        refused = await self._sent(some)
        pairs = zip(some, refused, strict=True)
        outcomes = [meaning(one.transaction, found) for one, found in pairs]
        await self._close_gaps(some, outcomes, price)
        for one, outcome in zip(some, outcomes, strict=True):
            _answer(one, outcome)

    async def _sent(self, some: Sequence[_Waiting]) -> list[object]:
        """What each was answered: all at once, then in their order those that came too early.

        Where batches are not taken, a node may hear of a nonce before the one below it, and not all
        keep it until then.
        """
        asked = [self._ask("eth_sendRawTransaction", one.raw) for one in some]
        refused: list[object] = [*await all_results(asked)]
        for place, one in enumerate(some):
            found = meaning(one.transaction, refused[place])
            if isinstance(found, Again) and not found.is_cheap:
                (refused[place],) = await all_results(
                    [self._ask("eth_sendRawTransaction", one.raw)]
                )
                if meaning(one.transaction, refused[place]) != one.transaction:
                    break  # it is not there, so nothing above it will be taken
        return refused

    async def _noted(self, some: Sequence[_Waiting], first: int, price: int) -> Sequence[_Waiting]:
        """Those whose transactions are signed, without a gap, and written down."""
        while some:
            for place, one in enumerate(some):
                one.nonce = first + place
                self._sign(one, max(price, one.price))
            found = await all_results([one.note(Attempt(one.transaction, one.raw)) for one in some])
            fine: list[_Waiting] = []
            for one, error in zip(some, found, strict=True):
                if isinstance(error, Exception):
                    _answer(one, error)
                else:
                    fine.append(one)
            if len(fine) == len(some):
                break
            some = fine  # signed anew: who is left out must leave no gap
        return some

    def _sign(self, one: _Waiting, price: int, at_least: FeePerGas = NO_FEE) -> None:
        data = transfer_data(authorization_of(one.entry.credential))
        fees = self.prices.fees(one.entry, price, at_least)
        transaction = self._transaction(one.nonce, fees, GAS_MAX, one.entry.asset, data)
        one.raw, one.transaction = self.signer.sign(transaction)

    def _transaction(
        self, nonce: int, fees: FeePerGas, gas: int, to: str, data: bytes
    ) -> Transaction:
        chain_id = self.network.chain_id
        return Transaction(chain_id, nonce, fees.priority, fees.most, gas, to, data)

    async def _close_gaps(
        self,
        some: Sequence[_Waiting],
        outcomes: Sequence[str | Undecided | Again],
        price: int,
    ) -> None:
        """Spend on nothing the nonces that were refused below one that was taken.

        What was taken would else wait for them. Where a nonce was used after all, the node says so.
        """
        pairs = list(zip(some, outcomes, strict=True))
        taken = max((one.nonce for one, found in pairs if isinstance(found, str)), default=-1)
        gaps = [one for one, found in pairs if isinstance(found, Undecided) and one.nonce < taken]
        to, prices = self.signer.address, self.prices
        nothing = [
            self._transaction(one.nonce, prices.fees(one.entry, price), GAS_OF_NOTHING, to, b"")
            for one in gaps
        ]
        asked = [self._ask("eth_sendRawTransaction", self.signer.sign(t)[0]) for t in nothing]
        await all_results(asked)  # refused too: the next turn begins at the gap

    async def _chain_now(self) -> _Now:
        """Asked once by all who ask at the same time. Raises `ChainUnavailable`."""
        return await self._asked.run("now", self._ask_now)

    async def _ask_now(self) -> _Now:
        mine = self.signer.address
        counts = [("eth_getTransactionCount", (mine, tag)) for tag in ("latest", "pending")]
        asked = (*counts, ("eth_getBlockByNumber", ("latest", False)))
        used, following, block = await self.rpc.request_all(self.network, asked)
        base_fee = block.get("baseFeePerGas") if is_object(block) else None
        return _Now(quantity(used), quantity(following), believable(quantity(base_fee)))

    async def _ask(self, method: str, *params: JsonValue) -> JsonValue:
        return await self.rpc.request(self.network, method, params)


def quantity(value: JsonValue) -> int:
    """A number below 2^64 as nodes write it. Raises `ChainUnavailable`."""
    try:
        return hex_number(value, 64)
    except NotANumber:
        raise ChainUnavailable("The chain gave no number.", detail=ascii(value)[:100]) from None


def _answer(one: _Waiting, outcome: str | Undecided | Again | Exception) -> None:
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
