"""One JSON-RPC endpoint: its requests over HTTP, and what is known about it."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from pydantic_core import to_json

from assay.chains.evm.caller_turns import read_turns
from assay.chains.evm.rpc_batching import Asked, BatchLoader
from assay.chains.evm.rpc_wire import (
    MalformedRpcAnswer,
    NodeError,
    RpcResponse,
    answer_of,
    answers_of,
    decode,
    error_of,
    quantity_of,
    request_of,
)
from assay.chains.model import Network
from assay.common.circuit_breaker import Breaker
from assay.common.clock import Clock
from assay.common.costs import Cost, CostLedger
from assay.common.errors import TooMany, Unavailable
from assay.common.json import JsonValue, is_array, is_object
from assay.http1.model import Upstream, UpstreamFailed
from assay.net.body import BodyBroken
from assay.net.bounded_exchange import ExchangeBounds, exchange

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
        self._turns = read_turns(limits.concurrency)
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
