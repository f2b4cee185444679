"""One JSON-RPC endpoint: its requests over HTTP, in turns and batches, and its trusted heights.

Fair turns at a chain's nodes: a flood from one caller does not block others.

Sends requests made to one endpoint in the same turn of the event loop as one batch.

Paid calls run in step: those whose ledger entries were committed together continue together. An
exchange costs ten times the processor time of a request inside it.

One JSON-RPC endpoint: its requests over HTTP, and what is known about it.

Decides which block numbers of an endpoint are trusted.

A number alone proves nothing, and one node's number does not disprove another's. A node that falls
behind its own number is stale. If two nodes contradict each other, or a number rose faster than any
chain does, the node that is about to be asked has to show its newest block, and our own clock
decides whether that is recent: an endpoint that exaggerates makes no other look stale.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from pydantic_core import to_json

from assay.chains.evm.rpc_wire import (
    MalformedRpcAnswer,
    NodeError,
    RpcResponse,
    answer_of,
    answers_of,
    decode,
    error_of,
    is_shaped,
    quantity_of,
    request_of,
)
from assay.chains.model import ChainUnavailable, Network
from assay.common.circuit_breaker import Breaker
from assay.common.clock import Clock
from assay.common.costs import Cost, CostLedger, current_bearer
from assay.common.errors import TooMany, Unavailable
from assay.common.fair_queue import FairQueue
from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.common.numbers import hex_number
from assay.http1.model import Upstream, UpstreamFailed
from assay.net.body import BodyBroken, ExchangeBounds, exchange

CONTRACTS_MAX: Final = 512
CONTRACTS_PER_CALLER: Final = 64
"""Waiting calls of contracts that callers name: in all, and of one operator or address."""

READS_MAX: Final = 10_000
"""Waiting exchanges with one endpoint; one caller may hold all of them while nobody else asks."""


class CallerTurns:
    """Allows a few exchanges at a time; the parties that bear the costs take turns.

    Parties without quotas (Pro operators, administrators, the service itself) have three turns of
    four.
    """

    def __init__(self, at_once: int, waiting_max: int, per_caller: int, what: str) -> None:
        """Create it; `what` names the waiting calls in refusals."""
        self._queue = FairQueue(at_once, waiting_max, per_caller, what)

    def one(self) -> AbstractAsyncContextManager[None]:
        """Hold a slot. Raises `TooMany` and `Unavailable` like `FairQueue.slot`."""
        bearer = current_bearer()
        return self._queue.slot(bearer.name, is_known=not bearer.is_limited)


def contract_turns(at_once: int) -> CallerTurns:
    """Return turns for contracts that callers name."""
    return CallerTurns(at_once, CONTRACTS_MAX, CONTRACTS_PER_CALLER, "calls of contracts")


def _read_turns(at_once: int) -> CallerTurns:
    """Return turns for exchanges with one endpoint."""
    return CallerTurns(at_once, READS_MAX, READS_MAX, "reads of a chain")


BATCH_MAX = 50
"""Requests in one batch, as in `rpc_calls.CALLS_PER_CHUNK`."""

Asked = tuple[str, Sequence[JsonValue]]
"""A method and its parameters."""

_Waiting = tuple[Asked, float, "asyncio.Future[RpcResponse]"]


class BatchLoader:
    """Sends requests singly or in batches; each caller gets its own answer or fault.

    If an endpoint refuses a batch size, later batches are half as large.
    """

    def __init__(
        self,
        ask: Callable[[Asked, float], Awaitable[RpcResponse]],
        ask_batch: Callable[[Sequence[Asked], float], Awaitable[list[RpcResponse] | None]],
    ) -> None:
        """Create it; `ask_batch` returns None if the endpoint refuses batches."""
        self._ask = ask
        self._ask_batch = ask_batch
        self._waiting: list[_Waiting] = []
        self._running: set[asyncio.Task[None]] = set()
        self.batch_max = BATCH_MAX

    def ask(self, asked: Asked, deadline_s: float) -> "asyncio.Future[RpcResponse]":
        """Return a future of the answer or exception; cancelling it does not affect others."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[RpcResponse] = loop.create_future()
        if not self._waiting:
            loop.call_soon(self._send)
        self._waiting.append((asked, deadline_s, answer))
        return answer

    def _send(self) -> None:
        some = [one for one in self._waiting if not one[2].cancelled()]
        self._waiting = []
        loop = asyncio.get_running_loop()
        for start in range(0, len(some), self.batch_max):
            task = loop.create_task(self._exchange(some[start : start + self.batch_max]))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def _exchange(self, some: list[_Waiting]) -> None:
        try:
            answers = await self._answers([one[0] for one in some], max(one[1] for one in some))
        except BaseException as error:  # noqa: BLE001 - each asker's, who waits for it
            for _, _, waits in some:
                if not waits.done():
                    waits.set_exception(_as_fault(error))
            return
        if answers is None:
            await self._singly(some)
            return
        for answer, (_, _, waits) in zip(answers, some, strict=True):
            if not waits.done():
                waits.set_result(answer)

    async def _answers(self, asked: Sequence[Asked], deadline_s: float) -> list[RpcResponse] | None:
        if len(asked) == 1:
            return [await self._ask(asked[0], deadline_s)]
        if self.batch_max == 1:
            return None
        return await self._ask_batch(asked, deadline_s)

    async def _singly(self, some: list[_Waiting]) -> None:
        """Send concurrently after a batch was refused; smaller batches may still be accepted."""
        self.batch_max = min(self.batch_max, max(1, len(some) // 2))
        async with asyncio.TaskGroup() as group:
            for one in some:
                group.create_task(self._exchange([one]))


def _as_fault(error: BaseException) -> BaseException:
    """Turn a cancellation of ours into a fault: as it is, it would cancel the caller's task."""
    if isinstance(error, asyncio.CancelledError):
        return ChainUnavailable("The connection to the chain was closed.")
    return error


LIMIT_EXCEEDED = -32005
FAIL_OVER_CODES = frozenset({LIMIT_EXCEEDED, -32603})
"""Errors of this node only: limit exceeded, internal error (EIP-1474;
evm-nodes.md#client-rules)."""

_RATIO_MAX = 1000
"""Zero-padded words compress a hundredfold, so the ratio means little here; the size of the reply
is what is bounded."""

_TEXT_SHOWN = 100
_PAIR = 2

_OK, _BAD_REQUEST, _TOO_MANY, _SERVER_ERROR = 200, 400, 429, 500


@dataclass(frozen=True, slots=True)
class RpcLimits:
    """Limits for reading a chain. Times in seconds. Source: evm-nodes.md#client-rules."""

    endpoint_s: float = 4.0
    """One exchange with one endpoint."""
    total_s: float = 9.0
    """All endpoints together; below the 10 s in which a gate answers."""
    untrusted_s: float = 2.0
    """A call of a contract that a caller named."""
    untrusted_at_once: int = 4
    """Concurrent calls of that kind: far fewer than an endpoint's `concurrency`, so that they alone
    never delay other reads."""
    reply_bytes_max: int = 8 * 1024 * 1024
    concurrency: int = 16
    """Concurrent exchanges with one endpoint."""
    verify_every_s: float = 300.0
    """How long an endpoint's chain id is trusted."""


class EndpointFault(Exception):
    """This endpoint gave no credible answer; another may.

    `blame`: it counts against the endpoint. `refusal`: the node's own error, if it answered with
    one. `no_reply`: no readable answer arrived, which an expensive request causes as well as a
    broken node.
    """

    def __init__(
        self,
        detail: str,
        *,
        blame: bool = True,
        refusal: NodeError | None = None,
        no_reply: bool = False,
    ) -> None:
        super().__init__(detail)
        self.blame = blame  # Cleared once it has counted.
        self.refusal = refusal
        self.no_reply = no_reply


@dataclass(frozen=True, slots=True)
class ChainIdentity:
    """The request that shows which chain an endpoint serves, and the expected answer."""

    method: str
    value: str


def identity_of(network: Network) -> ChainIdentity:
    """Return the chain id in decimal (EIP-695), or a Solana cluster's genesis hash."""
    if network.family == "solana":
        return ChainIdentity("getGenesisHash", network.genesis)
    return ChainIdentity("eth_chainId", str(network.chain_id))


@dataclass(frozen=True, slots=True)
class _HttpReply:
    status: int
    body: bytes


class RpcEndpoint:
    """An address of a network."""

    def __init__(  # noqa: PLR0913, PLR0917 - what it is, and what it shares with the others
        self,
        url: str,
        identity: ChainIdentity,
        client: Upstream,
        clock: Clock,
        limits: RpcLimits,
        ids: Iterator[int],
        costs: CostLedger,
    ) -> None:
        self.breaker = Breaker(clock)
        self.untrusted = 0
        """Concurrent calls of contracts that callers named: they may keep it from answering
        others."""
        self.has_multicall = True
        """True until a call to Multicall3 shows that it has no code."""
        self.takes_batches = True
        """True until it answers a batch with something else."""
        self.head: tuple[int, float] | None = None
        """The last trusted block number, and when (monotonic seconds) it was seen."""
        self.shown: tuple[int, float] | None = None
        """The last block it proved to be recent, and when."""
        self._url = url
        self._identity = identity
        self._client = client
        self.clock = clock
        self._limits = limits
        self._ids = ids
        self._costs = costs
        self._turns = _read_turns(limits.concurrency)
        self._verified_at: float | None = None
        self._batches = BatchLoader(self.ask, self._send_batch)

    @property
    def name(self) -> str:
        """Return its host: paths of RPC addresses often contain a key."""
        try:
            return urlsplit(self._url).hostname or "an endpoint without a host"
        except ValueError:
            return "an endpoint that is no address"

    def doubt(self) -> None:
        """Check its chain id again before the next answer is trusted."""
        self._verified_at = None

    async def verify(self, deadline_s: float) -> None:
        """Check that it serves the expected chain. Raises `EndpointFault`."""
        now = self.clock.monotonic_s()
        at = self._verified_at
        if at is not None and now - at < self._limits.verify_every_s:
            return
        method, expected = self._identity.method, self._identity.value
        if method == "eth_chainId":
            served = str(await self.ask_quantity(method, deadline_s))
        else:
            served = await self._ask_text(method, deadline_s)
        if served != expected:
            self.breaker.trip()
            raise EndpointFault(f"serves chain {served!r}, not {expected}", blame=False)
        self._verified_at = now

    async def ask_in_step(self, *asked: Asked, deadline_s: float) -> list[RpcResponse]:
        """Like `ask`, in one exchange with other requests of this turn of the loop.

        Only for methods that a node answers at once: the slowest delays the others. Raises
        `EndpointFault`; all requests of an exchange share one fault, which counts once.
        """
        if deadline_s - self.clock.monotonic_s() < self._limits.endpoint_s:
            # Within a batch it could take longer than the caller's deadline.
            return [await self.ask(one, deadline_s) for one in asked]
        waiting = [self._batches.ask(one, deadline_s) for one in asked]
        if len(waiting) == 1:
            return [await waiting[0]]
        try:
            await asyncio.wait(waiting)
        except asyncio.CancelledError:
            for one in waiting:
                one.cancel()
            raise
        # Retrieved so that the loop does not report it as unhandled.
        faults = [one.exception() for one in waiting]
        if fault := next((fault for fault in faults if fault is not None), None):
            raise fault
        return [one.result() for one in waiting]

    async def ask_quantity(self, method: str, deadline_s: float) -> int:
        """Call a method without parameters that returns a number. Raises `EndpointFault`."""
        answer = await self.ask((method, ()), deadline_s)
        if isinstance(answer, NodeError):
            raise EndpointFault(f"{method}: {answer.code} {answer.message}")
        try:
            return quantity_of(answer)
        except MalformedRpcAnswer as error:
            raise EndpointFault(f"{method}: {error}") from error

    async def _ask_text(self, method: str, deadline_s: float) -> str:
        answer = await self.ask((method, ()), deadline_s)
        if isinstance(answer, NodeError):
            raise EndpointFault(f"{method}: {answer.code} {answer.message}")
        if not isinstance(answer.value, str):
            raise EndpointFault(f"{method}: the answer is no text")
        return answer.value[:_TEXT_SHOWN]

    async def ask(self, asked: Asked, deadline_s: float) -> RpcResponse:
        """Send one request. Raises `EndpointFault`."""
        request_id = next(self._ids)
        reply = await self._post(request_of(request_id, *asked), deadline_s)
        try:
            answer = answer_of(decode(reply.body), request_id)
        except Exception as error:  # Whatever is wrong with a reply, another endpoint may answer.
            raise EndpointFault(f"status {reply.status}, {_said(error)}") from error
        if reply.status != _OK and not isinstance(answer, NodeError):
            raise EndpointFault(f"a result under status {reply.status}")
        return answer

    async def ask_batch(
        self, asked: Sequence[Asked], deadline_s: float
    ) -> list[RpcResponse] | None:
        """Send several requests in one body; return None if the endpoint does not accept batches.

        Raises `EndpointFault`.
        """
        ids = [next(self._ids) for _ in asked]
        requests = [request_of(i, *one) for i, one in zip(ids, asked, strict=True)]
        reply = await self._post(requests, deadline_s)
        try:
            decoded = decode(reply.body) if reply.status == _OK else None
            if is_array(decoded):
                return answers_of(decoded, ids)
            _raise_for_rate_limit(decoded)
        except EndpointFault:
            raise
        except Exception as error:  # Whatever is wrong with a reply, another endpoint may answer.
            raise EndpointFault(f"batch: {_said(error)}") from error
        self.takes_batches = False
        return None

    async def _send_batch(
        self, asked: Sequence[Asked], deadline_s: float
    ) -> list[RpcResponse] | None:
        if not self.takes_batches:
            return None
        answers = await self.ask_batch(asked, deadline_s)
        if answers is None and len(asked) > _PAIR:
            self.takes_batches = True  # It may only have been too large.
        return answers

    async def _post(self, payload: JsonValue, deadline_s: float) -> _HttpReply:
        left_s = min(self._limits.endpoint_s, deadline_s - self.clock.monotonic_s())
        if left_s <= 0:
            raise EndpointFault("no time left", blame=False)
        sent = False
        try:
            async with asyncio.timeout(left_s), self._turns.one():
                sent = True
                self._costs.charge(Cost.RPC_CALLS, len(payload) if is_array(payload) else 1)
                reply = await self._exchange(payload, left_s)
        except TimeoutError:
            # Waiting for our own other requests is not its fault.
            raise EndpointFault(f"no answer in {left_s:.1f} s", blame=sent, no_reply=True) from None
        except UpstreamFailed as error:
            raise EndpointFault(error.detail or error.message, no_reply=True) from error
        except (TooMany, Unavailable) as error:
            raise EndpointFault(error.message, blame=False) from error
        except (BodyBroken, ValueError) as error:
            raise EndpointFault(f"{type(error).__name__}: {error}") from error
        if reply.status == _TOO_MANY or not (
            reply.status == _OK or _BAD_REQUEST <= reply.status < _SERVER_ERROR
        ):
            raise EndpointFault(f"status {reply.status}", no_reply=reply.status != _TOO_MANY)
        return reply

    async def _exchange(self, payload: JsonValue, timeout_s: float) -> _HttpReply:
        content = to_json(payload)
        limit = self._limits.reply_bytes_max
        # Reads may be repeated, and a transaction sent twice is one transaction.
        bounds = ExchangeBounds(timeout_s, limit, _RATIO_MAX)
        status, body = await exchange(self._client, "POST", self._url, content, bounds)
        if body.truncated:
            raise BodyBroken(f"a reply of more than {limit} bytes")
        return _HttpReply(status, body.data)


def _said(error: Exception) -> str:
    return str(error) if isinstance(error, MalformedRpcAnswer) else type(error).__name__


def _raise_for_rate_limit(reply: JsonValue) -> None:
    """Raise for a rate limit: it says nothing about the support of batches."""
    if is_object(reply) and "error" in reply:
        error = error_of(reply["error"])
        if error.code == LIMIT_EXCEEDED:
            raise EndpointFault(f"batch: {error.code} {error.message}", refusal=error)


STALE_BLOCKS_MAX = 128
"""How far an endpoint may be behind the highest block seen: the states a full node keeps, 25
minutes on Ethereum, half a minute on the fastest chains. Source: geth, `--history.state`."""

HEAD_FORGOTTEN_S = 900.0
"""How long a height is compared with others."""

BLOCKS_PER_S_MAX = 100
"""More than any chain produces; the fastest produce one in 10 milliseconds."""

BLOCK_AGE_MAX_S = 120.0
"""Largest difference between the newest block's time and ours, where that decides: ten slots of
Ethereum, some of which stay empty."""

SHOWN_S = 60.0
"""How long a shown block vouches for those that follow it."""

_NEWEST = ("eth_getBlockByNumber", ("latest", False))


async def believe_height(
    endpoint: RpcEndpoint, block: int, others: Sequence[RpcEndpoint], deadline_s: float
) -> None:
    """Record the height an endpoint reports. Raises `EndpointFault` if it is not credible."""
    now = endpoint.clock.monotonic_s()
    own = _recent(endpoint, now)
    if own is not None and block < own[0] - STALE_BLOCKS_MAX:
        raise EndpointFault(f"block {block} is stale: it answered {own[0]} before")
    known = [head for one in others if (head := _recent(one, now)) is not None]
    known += [] if own is None else [own]
    if any(_contradict(block, seen, now - at) for seen, at in known) and not _was_shown(
        endpoint, block, now
    ):
        await _require_new(endpoint, block, deadline_s)
        endpoint.shown = (block, now)
    endpoint.head = (block, now)


def _recent(endpoint: RpcEndpoint, now: float) -> tuple[int, float] | None:
    head = endpoint.head
    return head if head is not None and now - head[1] <= HEAD_FORGOTTEN_S else None


def _contradict(block: int, seen: int, age_s: float) -> bool:
    """Return whether both cannot be heights of one chain, `seen` being `age_s` older."""
    return not -STALE_BLOCKS_MAX <= block - seen <= STALE_BLOCKS_MAX + age_s * BLOCKS_PER_S_MAX


def _was_shown(endpoint: RpcEndpoint, block: int, now: float) -> bool:
    if endpoint.shown is None:
        return False
    seen, at = endpoint.shown
    return now - at <= SHOWN_S and not _contradict(block, seen, now - at)


async def _require_new(endpoint: RpcEndpoint, block: int, deadline_s: float) -> None:
    """Raise `EndpointFault` unless its newest block is near that number and recent."""
    answer = await endpoint.ask(_NEWEST, deadline_s)
    shown: JsonObject = {}
    if not isinstance(answer, NodeError) and is_shaped(*_NEWEST, answer.value):
        shown = answer.value if is_object(answer.value) else {}
    if not shown:
        raise EndpointFault(f"it tells of block {block}, and does not show it")
    number = hex_number(shown.get("number"), 64)
    if abs(number - block) > STALE_BLOCKS_MAX:
        raise EndpointFault(f"it tells of block {block}, and shows {number}")
    made_s = hex_number(shown.get("timestamp"), 64)
    if abs(endpoint.clock.now().timestamp() - made_s) > BLOCK_AGE_MAX_S:
        raise EndpointFault(f"block {block} is stale: it was made at {made_s}")
