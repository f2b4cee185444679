"""Queries indexers of the 8004 registry on Solana; implements `registries.ports.AgentIndex`.

Each speaks GraphQL, some also an older REST form; the first of several addresses that answers is
used. Wire formats: solana-registry.md#indexer (8004-solana-indexer 998c2e1, npm 8004-solana 0.8.3).
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from assay.chains.model import ChainUnavailable, Network
from assay.common.circuit_breaker import Breaker
from assay.common.clock import Clock
from assay.common.json import JsonValue, is_nested_beyond
from assay.http1.client import UpstreamPool
from assay.http1.model import UpstreamFailed
from assay.net.body import BodyBroken
from assay.net.bounded_exchange import ExchangeBounds, exchange
from assay.net.configured_address import configured
from assay.net.egress.dial import UpstreamDialer
from assay.registries.model import Feedback
from assay.registries.refusals import too_much_feedback
from assay.registries.solana_index_wire import (
    AGENTS_MAX,
    MalformedIndexAnswer,
    Query,
    asset_of_number,
    assets_of,
    by_number,
    by_owner,
    by_wallet,
    entries_of,
    feedback_page,
)

EXCHANGE_S, TOTAL_S = 3.0, 7.0
"""Time limits of one exchange, and of one query to all indexers; below the 10 s in which a gate
answers."""

BODY_BYTES_MAX = 4 * 1024 * 1024
FEEDBACK_MAX = 5000
"""Most entries read of one agent: beyond that its reputation is unknown, because a partial list
could be any part."""

RETRY_AFTER_S = 5

_BOUNDS = ExchangeBounds(EXCHANGE_S, BODY_BYTES_MAX, ratio_max=200)
_DEPTH_MAX = 16
_OK = 200

T = TypeVar("T")


class _Fault(Exception):
    """This indexer gave no credible answer; another may. The message is for logs."""


class _Unreached(_Fault):
    """It did not answer at all, so trying the other wire form is pointless."""


class _Indexer:
    """An indexer address."""

    def __init__(self, url: str, client: UpstreamPool, clock: Clock) -> None:
        self.breaker = Breaker(clock)
        self.name = configured(url).target.host
        self._url = url.rstrip("/")
        self._client = client
        self._speaks_graphql = True

    async def ask(self, query: Query) -> Sequence[JsonValue]:
        """Return the rows, in either wire form. Raises `_Fault`."""
        if self._speaks_graphql:
            try:
                return query.rows(await self._post(query), graphql=True)
            except _Unreached:
                raise
            except (_Fault, MalformedIndexAnswer) as error:
                first = error
            try:
                rows = query.rows(await self._get(query), graphql=False)
            except (_Fault, MalformedIndexAnswer):
                raise _Fault(str(first)) from first
            self._speaks_graphql = False
            return rows
        try:
            return query.rows(await self._get(query), graphql=False)
        except (_Fault, MalformedIndexAnswer) as error:
            self._speaks_graphql = True
            raise _Fault(str(error)) from error

    async def _post(self, query: Query) -> JsonValue:
        said = {"query": query.graphql, "variables": dict(query.variables)}
        body = json.dumps(said, separators=(",", ":")).encode("ascii")
        return await self._exchange("POST", f"{self._url}/v2/graphql", body)

    async def _get(self, query: Query) -> JsonValue:
        return await self._exchange("GET", f"{self._url}/rest/v1{query.rest}", b"")

    async def _exchange(self, method: str, url: str, body: bytes) -> JsonValue:
        try:
            async with asyncio.timeout(EXCHANGE_S):
                return await self._send(method, url, body)
        except TimeoutError:
            raise _Unreached(f"no answer in {EXCHANGE_S:g} s") from None
        except UpstreamFailed as error:
            raise _Unreached(error.detail or error.message) from error
        except (BodyBroken, ValueError) as error:
            raise _Fault(f"{type(error).__name__}: {error}") from error

    async def _send(self, method: str, url: str, body: bytes) -> JsonValue:
        status, found = await exchange(self._client, method, url, body, _BOUNDS)
        if status != _OK or found.truncated:
            raise _Fault(f"status {status}, {len(found.data)} bytes")
        if is_nested_beyond(found.data, _DEPTH_MAX):
            raise _Fault("the answer is nested too deep")
        return json.loads(found.data)


class HttpAgentIndex:
    """Queries the indexers of a network in their order."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._dialer = UpstreamDialer(None)
        self._client = UpstreamPool(self._dialer.connect, clock, has_breaker=False)
        self._indexers: dict[str, _Indexer] = {}

    async def find_number(self, network: Network, number: int) -> str | None:
        query = by_number(number)

        async def ask(indexer: _Indexer) -> str | None:
            return asset_of_number(await indexer.ask(query), number)

        return await self._first_answer(network, ask)

    async def find_wallet(self, network: Network, wallet: str) -> Sequence[str]:
        return await self._assets(network, by_wallet(wallet))

    async def find_owner(self, network: Network, owner: str) -> Sequence[str]:
        return await self._assets(network, by_owner(owner))

    async def fetch_feedback(self, network: Network, asset: str) -> tuple[Feedback, ...]:
        async def read(indexer: _Indexer) -> tuple[Feedback, ...]:
            found: dict[tuple[str, int], Feedback] = {}
            skip = 0
            while rows := await indexer.ask(feedback_page(asset, skip)):
                # Entries added meanwhile shift the rest, so some are read twice.
                found |= {(e.client, e.index): e for e in entries_of(rows, asset)}
                skip += len(rows)
                if skip > FEEDBACK_MAX:
                    raise too_much_feedback(network)
            return tuple(sorted(found.values(), key=lambda e: (e.index, e.client)))

        return await self._first_answer(network, read)

    async def check(self, network: Network) -> str:
        """Return the host of the first indexer that answers. Raises `ChainUnavailable`."""

        async def ask(indexer: _Indexer) -> str:
            await indexer.ask(by_number(1))
            return indexer.name

        return await self._first_answer(network, ask)

    async def aclose(self) -> None:
        """Close every connection."""
        await self._client.aclose()
        self._dialer.close()

    async def _assets(self, network: Network, query: Query) -> Sequence[str]:
        async def ask(indexer: _Indexer) -> Sequence[str]:
            return assets_of(await indexer.ask(query))[:AGENTS_MAX]

        return await self._first_answer(network, ask)

    async def _first_answer(self, network: Network, ask: Callable[[_Indexer], Awaitable[T]]) -> T:
        faults: list[str] = []
        try:
            async with asyncio.timeout(TOTAL_S):
                for url in network.index_urls:
                    indexer = self._indexer(url)
                    if not indexer.breaker.lets_through():
                        faults.append(f"{indexer.name}: left alone after failures")
                        continue
                    try:
                        answer = await ask(indexer)
                    except (_Fault, MalformedIndexAnswer) as fault:
                        faults.append(f"{indexer.name}: {fault}")
                        indexer.breaker.failed()
                    else:
                        indexer.breaker.succeeded()
                        return answer
        except TimeoutError:
            faults.append(f"no answer in {TOTAL_S:g} s")
        raise ChainUnavailable(
            f"The index of {network.name} cannot be read right now.",
            detail="; ".join(faults) or "no indexer is configured",
            retry_after_s=RETRY_AFTER_S,
        )

    def _indexer(self, url: str) -> _Indexer:
        known = self._indexers.get(url)
        if known is None:
            known = self._indexers[url] = _Indexer(url, self._client, self._clock)
        return known
