"""Combines a network's JSON-RPC endpoints into one trusted client; implements `chains.rpc.Rpc`.

Source of the rules: evm-nodes.md#client-rules.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import count
from typing import TypeVar

from assay.chains.evm.calls import (
    BlockUnknown,
    ask_all,
    read_at,
    read_capped,
    read_newest,
)
from assay.chains.evm.rpc_endpoint import (
    Asked,
    EndpointFault,
    RpcEndpoint,
    RpcLimits,
    believe_height,
    contract_turns,
    identity_of,
)
from assay.chains.evm.rpc_wire import NodeError, RpcResponse, RpcResult, is_shaped, revert_of
from assay.chains.model import ChainUnavailable, Network
from assay.chains.rpc import ContractCall, Returned, Reverted, RpcRefused
from assay.common.cache import BoundedMap
from assay.common.circuit_breaker import Breaker
from assay.common.clock import Clock
from assay.common.costs import CostLedger
from assay.common.json import JsonValue
from assay.http1.client import UpstreamPool
from assay.net.egress.dial import UpstreamDialer

HEAD_FRESH_S = 5.0
"""Largest age of the known height before a request that pins no block refreshes it."""

LAG_BLOCKS = 8
"""Blocks to go back when the node behind a balancer does not have its neighbour's head yet."""

RETRY_AFTER_S = 5

SHARE_S = 1.25
"""Least share of the total time for one endpoint, in times of one exchange: a node that always
answers at the last moment must not use up the time of the others."""

COSTLY_CONTRACTS_KEPT = 10_000
"""Contracts remembered for not answering in time; a forgotten one is called again."""

IN_STEP = frozenset(
    {"eth_sendRawTransaction", "eth_getTransactionReceipt", "eth_getTransactionCount"}
)
"""Methods that many payments use at once and nodes answer at once: they are sent in batches."""

T = TypeVar("T")
Attempt = Callable[[RpcEndpoint, float], Awaitable[T]]


class JsonRpc:
    """Asks the endpoints in order and returns the first credible answer.

    It fails over on an endpoint's own errors and never on a revert, which is an answer.
    """

    def __init__(
        self, clock: Clock, limits: RpcLimits | None = None, costs: CostLedger | None = None
    ) -> None:
        self._clock = clock
        self._costs = CostLedger(clock) if costs is None else costs
        self._limits = limits or RpcLimits()
        self._ids = count(1)
        self._dialer = UpstreamDialer(None)
        self._client = UpstreamPool(self._dialer.connect, clock, has_breaker=False)
        self.endpoints: dict[tuple[str, str], RpcEndpoint] = {}
        """Endpoints used so far, by network (CAIP-2) and URL."""
        self._contracts: BoundedMap[tuple[str, str], Breaker] = BoundedMap(COSTLY_CONTRACTS_KEPT)
        self._untrusted = contract_turns(self._limits.untrusted_at_once)

    async def call(
        self, network: Network, calls: Sequence[ContractCall]
    ) -> Sequence[Returned | Reverted]:
        async def attempt(endpoint: RpcEndpoint, deadline_s: float) -> list[Returned | Reverted]:
            await endpoint.verify(deadline_s)
            head = await self._fetch_head(network, endpoint, deadline_s)
            multicall = network.multicall3
            try:
                return await read_at(endpoint, calls, head, deadline_s, multicall=multicall)
            except BlockUnknown:
                # Not at `latest`: several calls must see one block of bounded age.
                block = max(head - LAG_BLOCKS, 0)
                return await read_at(endpoint, calls, block, deadline_s, multicall=multicall)

        return await self._first_believable(network, attempt) if calls else ()

    async def call_newest(
        self, network: Network, calls: Sequence[ContractCall]
    ) -> Sequence[Returned | Reverted]:
        async def attempt(endpoint: RpcEndpoint, deadline_s: float) -> list[Returned | Reverted]:
            await endpoint.verify(deadline_s)
            head, found = await read_newest(
                endpoint, calls, deadline_s, multicall=network.multicall3
            )
            await believe_height(endpoint, head, self._others(network, endpoint), deadline_s)
            return found

        return await self._first_believable(network, attempt) if calls else ()

    async def call_at(
        self, network: Network, calls: Sequence[ContractCall], block: int
    ) -> Sequence[Returned | Reverted]:
        async def attempt(endpoint: RpcEndpoint, deadline_s: float) -> list[Returned | Reverted]:
            await endpoint.verify(deadline_s)
            multicall = network.multicall3
            try:
                return await read_at(endpoint, calls, block, deadline_s, multicall=multicall)
            except BlockUnknown as fault:  # A short delay does not count against it.
                raise EndpointFault(str(fault), blame=False, refusal=fault.refusal) from fault

        return await self._first_believable(network, attempt) if calls else ()

    async def call_untrusted(
        self, network: Network, call: ContractCall, gas: int
    ) -> Returned | Reverted:
        contract = (network.caip2, call.to)
        breaker = self._contracts.get(contract)
        if breaker is not None and not breaker.lets_through():
            return Reverted(b"", "left alone after it did not answer in time")

        async def attempt(endpoint: RpcEndpoint, deadline_s: float) -> Returned | Reverted | None:
            await endpoint.verify(deadline_s)
            head = await self._fetch_head(network, endpoint, deadline_s)
            until_s = min(deadline_s, self._clock.monotonic_s() + self._limits.untrusted_s)
            endpoint.untrusted += 1
            try:
                return await _read_untrusted(endpoint, call, head, until_s, gas)
            except EndpointFault as fault:
                if not fault.no_reply:
                    raise
                # If the node still reports its height, it is healthy and the contract is at fault.
                # Otherwise it may be busy with the contract: other reads will find out.
                await _without_blame(self._fetch_head(network, endpoint, deadline_s))
                return None
            finally:
                endpoint.untrusted -= 1

        try:
            async with asyncio.timeout(self._limits.total_s), self._untrusted.one():
                outcome = await self._first_believable(network, attempt)
        except TimeoutError:
            raise _unreadable(network, "too many calls of contracts under way") from None
        if outcome is None:
            breaker = breaker or Breaker(self._clock)
            breaker.failed()
            self._contracts.put(contract, breaker)
            return Reverted(b"", "it did not answer in time")
        self._contracts.pop(contract)
        return outcome

    async def request(
        self, network: Network, method: str, params: Sequence[JsonValue]
    ) -> JsonValue:
        async def attempt(endpoint: RpcEndpoint, deadline_s: float) -> RpcResponse:
            await endpoint.verify(deadline_s)
            await self._refresh_head(network, endpoint, deadline_s)
            asked = (method, params)
            if method in IN_STEP:
                (answer,) = await endpoint.ask_in_step(asked, deadline_s=deadline_s)
            else:
                answer = await endpoint.ask(asked, deadline_s)
            if not isinstance(answer, NodeError):
                _require_shape(asked, answer)
                return answer
            if revert_of(answer) is not None:
                return answer
            # Does not count against the node: too wide a query is the caller's doing.
            detail = f"{answer.code} {answer.message}"
            raise EndpointFault(detail, blame=False, refusal=answer)

        answer = await self._first_believable(network, attempt)
        if isinstance(answer, NodeError):
            raise _refused(network, answer)
        return answer.value

    async def request_all(
        self, network: Network, requests: Sequence[tuple[str, Sequence[JsonValue]]]
    ) -> Sequence[JsonValue]:
        async def attempt(endpoint: RpcEndpoint, deadline_s: float) -> list[JsonValue]:
            await endpoint.verify(deadline_s)
            await self._refresh_head(network, endpoint, deadline_s)
            answers = await ask_all(endpoint, requests, deadline_s)
            refusals = [answer for answer in answers if isinstance(answer, NodeError)]
            if len(refusals) == len(answers):
                detail = f"it refused everything: {refusals[0].code} {refusals[0].message}"
                raise EndpointFault(detail, blame=False, refusal=refusals[0])
            return [
                None if isinstance(answer, NodeError) else _require_shape(asked, answer)
                for asked, answer in zip(requests, answers, strict=True)
            ]

        try:
            return await self._first_believable(network, attempt) if requests else ()
        except RpcRefused:
            return [None] * len(requests)

    async def aclose(self) -> None:
        """Close every connection."""
        await self._client.aclose()
        self._dialer.close()

    async def _first_believable(self, network: Network, attempt: Attempt[T]) -> T:
        deadline_s = self._clock.monotonic_s() + self._limits.total_s
        faults: list[str] = []
        refusal: NodeError | None = None
        endpoints = self._endpoints_of(network)
        for place, endpoint in enumerate(endpoints):
            if not endpoint.breaker.lets_through():
                faults.append(f"{endpoint.name}: left alone after failures")
                continue
            try:
                until_s = self._share_of(deadline_s, len(endpoints) - place)
                answer = await attempt(endpoint, until_s)
            except EndpointFault as fault:
                faults.append(f"{endpoint.name}: {fault}")
                refusal = fault.refusal or refusal
                _hold_against(endpoint, fault)
            else:
                endpoint.breaker.succeeded()
                return answer
        if refusal is not None:
            raise _refused(network, refusal)
        raise _unreadable(network, "; ".join(faults) or "no endpoint is configured")

    async def _refresh_head(
        self, network: Network, endpoint: RpcEndpoint, deadline_s: float
    ) -> None:
        if network.family == "solana":  # Its answers carry their own slot.
            return
        now = self._clock.monotonic_s()
        if endpoint.head is None or now - endpoint.head[1] > HEAD_FRESH_S:
            await self._fetch_head(network, endpoint, deadline_s)

    def _share_of(self, deadline_s: float, endpoints: int) -> float:
        """Return the deadline for the first of the remaining endpoints."""
        now = self._clock.monotonic_s()
        share_s = max((deadline_s - now) / endpoints, SHARE_S * self._limits.endpoint_s)
        return min(deadline_s, now + share_s)

    async def _fetch_head(self, network: Network, endpoint: RpcEndpoint, deadline_s: float) -> int:
        """Return its current block number, refused if it cannot be the newest (`rpc_heights`)."""
        block = await endpoint.ask_quantity("eth_blockNumber", deadline_s)
        await believe_height(endpoint, block, self._others(network, endpoint), deadline_s)
        return block

    def _others(self, network: Network, endpoint: RpcEndpoint) -> list[RpcEndpoint]:
        return [one for one in self._endpoints_of(network) if one is not endpoint]

    def _endpoints_of(self, network: Network) -> list[RpcEndpoint]:
        return [self._endpoint(network, url) for url in network.rpc_urls]

    def _endpoint(self, network: Network, url: str) -> RpcEndpoint:
        known = self.endpoints.get((network.caip2, url))
        if known is None:
            identity, client, limits = identity_of(network), self._client, self._limits
            known = RpcEndpoint(url, identity, client, self._clock, limits, self._ids, self._costs)
            self.endpoints[network.caip2, url] = known
        return known


async def _read_untrusted(
    endpoint: RpcEndpoint, call: ContractCall, head: int, until_s: float, gas: int
) -> Returned | Reverted:
    try:
        return await read_capped(endpoint, call, head, until_s, gas)
    except BlockUnknown:
        return await read_capped(endpoint, call, max(head - LAG_BLOCKS, 0), until_s, gas)


async def _without_blame(work: Awaitable[object]) -> None:
    try:
        await work
    except EndpointFault as fault:
        raise EndpointFault(str(fault), blame=False) from fault


def _require_shape(asked: Asked, answer: RpcResult) -> JsonValue:
    """Return the result if it fits the method. Raises `EndpointFault`."""
    if not is_shaped(*asked, answer.value):
        raise EndpointFault(f"{asked[0]}: the answer is of another form")
    return answer.value


def _hold_against(endpoint: RpcEndpoint, fault: EndpointFault) -> None:
    if fault.no_reply and endpoint.untrusted:
        fault.blame = False  # It may be a contract that keeps the node from answering.
    if fault.blame:
        fault.blame = False  # One exchange, however many shared it.
        endpoint.doubt()
        endpoint.breaker.failed()
    elif fault.refusal is not None:
        endpoint.breaker.succeeded()


def _unreadable(network: Network, detail: str) -> ChainUnavailable:
    message = f"{network.name} cannot be read right now"
    return ChainUnavailable(message, detail=detail, retry_after_s=RETRY_AFTER_S)


def _refused(network: Network, error: NodeError) -> RpcRefused:
    message = f"{network.name} refused what was asked of it"
    return RpcRefused(message, rpc_code=error.code, rpc_message=error.message)
