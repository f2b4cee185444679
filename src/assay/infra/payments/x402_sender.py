"""Sending settlements from our key: all that wait on a network take their nonces in one turn.

Nonces are asked for, never counted from one turn to the next: a transaction that was refused
leaves no gap. Source: facts, payments 2 and 6, row 15.
"""

import asyncio
import random
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field

from assay.chains.model import ChainUnavailable, Network
from assay.chains.ports import Rpc, RpcRefused
from assay.infra.crypto.transactions import Transaction, TransactionSigner
from assay.infra.payments.eip3009_contract import transfer_data
from assay.infra.payments.gas_price import GasPrices
from assay.kit.errors import Unavailable
from assay.kit.json import JsonValue
from assay.kit.numbers import NotANumber, hex_number
from assay.payments.gas_rules import GAS_MAX, FeePerGas
from assay.payments.model import Attempt, Entry, Undecided
from assay.payments.ports import Note
from assay.payments.x402_wire import authorization_of

GAS_OF_NOTHING = 21_000
"""Of a transaction that does nothing. Source: Yellow Paper, appendix G."""

AT_ONCE = 32
"""Transactions of one turn."""

NONCE_TRIES = 10
NONCE_PAUSE_S = 0.05

NONCE_TROUBLE = ("nonce", "replacement transaction underpriced")
"""What nodes say when another process with our key was faster; in whatever words around it."""
_ALREADY_SENT = ("already known", "already imported", "known transaction")


@dataclass(frozen=True, slots=True)
class _Again:
    """The nonce was somebody else's: another turn."""

    problem: str


@dataclass(slots=True, eq=False)
class _Waiting:
    """One settlement in a turn; `transaction` once it is signed."""

    entry: Entry
    note: Note
    sent: asyncio.Future[str | Undecided | _Again]
    nonce: int = 0
    raw: str = ""
    transaction: str = ""


@dataclass(slots=True)
class Sender:
    """One network's turns. Every attempt is written down before it is sent."""

    rpc: Rpc
    network: Network
    signer: TransactionSigner
    prices: GasPrices
    _queue: list[_Waiting] = field(default_factory=list[_Waiting])
    _runner: asyncio.Task[None] | None = None

    async def send(self, entry: Entry, note: Note) -> str | Undecided:
        """The hash of the transaction that went out; `Undecided` when perhaps none did.

        Whoever is cancelled before his turn began is left out of it.
        """
        problem = ""
        for _ in range(NONCE_TRIES):
            outcome = await self._turn(entry, note)
            if not isinstance(outcome, _Again):
                return outcome
            problem = outcome.problem
            await asyncio.sleep(random.uniform(0, NONCE_PAUSE_S))  # noqa: S311 - who goes first
        return Undecided(f"not sent: {problem}")

    async def _turn(self, entry: Entry, note: Note) -> str | Undecided | _Again:
        loop = asyncio.get_running_loop()
        waiting = _Waiting(entry, note, loop.create_future())
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
        outcomes = [_outcome(one, found) for one, found in zip(some, refused, strict=True)]
        await self._close_gaps(some, outcomes, price)
        for one, outcome in zip(some, outcomes, strict=True):
            _answer(one, outcome)

    async def _sent(self, some: Sequence[_Waiting]) -> list[Exception | None]:
        """What each was refused for: all at once, then in their order those that came too early.

        Where batches are not taken, a node may hear of a nonce before the one below it, and not all
        keep it until then.
        """
        refused = await _each([self._ask("eth_sendRawTransaction", one.raw) for one in some])
        for place, one in enumerate(some):
            if isinstance(_outcome(one, refused[place]), _Again):
                (refused[place],) = await _each([self._ask("eth_sendRawTransaction", one.raw)])
                if _outcome(one, refused[place]) != one.transaction:
                    break  # it is not there, so nothing above it will be taken
        return refused

    async def _noted(self, some: Sequence[_Waiting], first: int, price: int) -> Sequence[_Waiting]:
        """Those whose transactions are signed, without a gap, and written down."""
        while some:
            for place, one in enumerate(some):
                one.nonce = first + place
                self._sign(one, price)
            found = await _each([one.note(Attempt(one.transaction, one.raw)) for one in some])
            fine: list[_Waiting] = []
            for one, error in zip(some, found, strict=True):
                if error is None:
                    fine.append(one)
                else:
                    _answer(one, error)
            if len(fine) == len(some):
                break
            some = fine  # signed anew: who is left out must leave no gap
        return some

    def _sign(self, one: _Waiting, price: int) -> None:
        data = transfer_data(authorization_of(one.entry.credential))
        fees = self.prices.fees(one.entry, price)
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
        outcomes: Sequence[str | Undecided | _Again],
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
        await _each(asked)  # refused too: the next turn begins at the gap

    async def _ask(self, method: str, *params: JsonValue) -> JsonValue:
        return await self.rpc.request(self.network, method, params)


def quantity(value: JsonValue) -> int:
    """A number below 2^64 as nodes write it. Raises `ChainUnavailable`."""
    try:
        return hex_number(value, 64)
    except NotANumber:
        raise ChainUnavailable("The chain gave no number.", detail=ascii(value)[:100]) from None


def _outcome(one: _Waiting, error: Exception | None) -> str | Undecided | _Again:
    """What became of sending it."""
    if isinstance(error, RpcRefused):
        problem = error.rpc_message.lower()
        if any(words in problem for words in _ALREADY_SENT):
            return one.transaction
        if any(words in problem for words in NONCE_TROUBLE):
            return _Again(problem)
        return Undecided(f"not sent: {problem}")  # the node will not have it: no gas money, say
    if isinstance(error, Unavailable):
        return Undecided(error.detail or error.message)
    return one.transaction if error is None else Undecided(repr(error))


async def _each(works: Sequence[Awaitable[object]]) -> list[Exception | None]:
    """Do all side by side, begun in their order; what each raised."""

    async def told(work: Awaitable[object]) -> Exception | None:
        try:
            await work
        except Exception as error:  # noqa: BLE001 - a value: a group would end the others for it
            return error
        return None

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(told(work)) for work in works]
    return [task.result() for task in tasks]


def _answer(one: _Waiting, outcome: str | Undecided | _Again | Exception) -> None:
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
