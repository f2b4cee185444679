"""Queries indexers of the 8004 registry on Solana; implements `registries.ports.AgentIndex`.

Queries to an indexer of the 8004 registry, in both forms, and their answers. Pure.

Source: solana-registry.md#indexer and its recorded requests.

Each speaks GraphQL, some also an older REST form; the first of several addresses that answers is
used. Wire formats: solana-registry.md#indexer (8004-solana-indexer 998c2e1, npm 8004-solana 0.8.3).
"""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Context, Decimal
from typing import TypeVar

from assay.chains.model import ChainUnavailable, Network, is_public_key
from assay.common.circuit_breaker import Breaker
from assay.common.clock import Clock
from assay.common.json import JsonObject, JsonValue, is_array, is_nested_beyond, is_object
from assay.http1.client import UpstreamPool
from assay.http1.model import UpstreamFailed
from assay.net.body import BodyBroken, ExchangeBounds, configured, exchange
from assay.net.egress.dial import UpstreamDialer
from assay.registries.model import Feedback
from assay.registries.ports import too_much_feedback

AGENTS_MAX = 16
PAGE = 250
"""Rows requested at once; an indexer may return fewer before the end."""

_VALUE = re.compile(r"-?[0-9]{1,39}")
_I128_MAX = 2**127
_EXACT = Context(prec=60)
"""Digits for any i128 with 18 decimals."""

_DECIMALS_MAX, _SCORE_MAX = 18, 100
_TEXT_CHARS_MAX = 256
_INDEX_MAX = 2**63


class MalformedIndexAnswer(Exception):
    """The indexer's answer does not match the query."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query: as GraphQL, and as a path of the REST form."""

    name: str
    graphql: str
    variables: Mapping[str, JsonValue]
    rest: str

    def rows(self, answer: JsonValue, *, graphql: bool) -> Sequence[JsonValue]:
        """Return the rows of an answer. Raises `MalformedIndexAnswer`."""
        if graphql:
            if not is_object(answer) or answer.get("errors"):
                raise MalformedIndexAnswer("the answer is an error")
            data = answer.get("data")
            answer = data.get(self.name) if is_object(data) else None
        if not is_array(answer):
            raise MalformedIndexAnswer("the answer is no list")
        return answer


def _by_number(number: int) -> Query:
    """Query the agent of a sequential id."""
    return Query(
        "agents",
        "query($number: BigInt!) { agents(first: 1, where: { agentId: $number }) { id agentId } }",
        {"number": str(number)},
        f"/agents?agent_id=eq.{number}",
    )


def _by_wallet(wallet: str) -> Query:
    """Query agents that name a wallet as theirs, newest first."""
    return _agents("agentWallet", "agent_wallet", wallet, "desc")


def _by_owner(owner: str) -> Query:
    """Query agents of an owner, oldest first: anyone can send it more."""
    return _agents("owner", "owner", owner, "asc")


def _agents(field: str, column: str, value: str, order: str) -> Query:
    return Query(
        "agents",
        f"query($value: String!) {{ agents(first: {AGENTS_MAX}, where: {{ {field}: $value }},"
        f" orderBy: createdAt, orderDirection: {order}) {{ id }} }}",
        {"value": value},
        f"/agents?{column}=eq.{value}&order=created_at.{order}&limit={AGENTS_MAX}",
    )


def feedback_page(asset: str, skip: int) -> Query:
    """Query unrevoked entries of an agent, newest first."""
    return Query(
        "feedbacks",
        f"query($where: FeedbackFilter) {{ feedbacks(first: {PAGE}, skip: {skip}, where: $where,"
        " orderBy: createdAt, orderDirection: desc) { agent { id } clientAddress feedbackIndex"
        " tag1 tag2 createdAt solana { valueRaw valueDecimals score } } }",
        {"where": {"agent": asset, "isRevoked": False}},
        f"/feedbacks?asset=eq.{asset}&order=feedback_id.desc&limit={PAGE}&offset={skip}"
        "&is_revoked=eq.false",
    )


def asset_of_number(rows: Sequence[JsonValue], number: int) -> str | None:
    """Return the asset of a sequential id, or None. Raises `MalformedIndexAnswer`.

    A row with another number means that the indexer misunderstood the query: nothing on chain could
    show that its agent is the wrong one.
    """
    for row in rows[:1]:
        since_textnt_id = row.get("agentId", row.get("agent_id")) if is_object(row) else None
        if _whole(since_textnt_id, _INDEX_MAX) != number:
            raise MalformedIndexAnswer("an agent of another number")
        return _asset(row)
    return None


def assets_of(rows: Sequence[JsonValue]) -> Sequence[str]:
    """Return the assets of agents' rows, in their order. Raises `MalformedIndexAnswer`."""
    return [_asset(row) for row in rows]


def _asset(row: JsonValue) -> str:
    value = row.get("id", row.get("asset")) if is_object(row) else None
    if not isinstance(value, str) or not is_public_key(value):
        raise MalformedIndexAnswer("an agent without its asset")
    return value


def entries_of(rows: Sequence[JsonValue], asset: str) -> Sequence[Feedback]:
    """Return the entries of feedback rows, all about `asset`. Raises `MalformedIndexAnswer`."""
    return [_entry(row, asset) for row in rows]


def _entry(row: JsonValue, asset: str) -> Feedback:
    if not is_object(row):
        raise MalformedIndexAnswer("an entry that is no object")
    about = row.get("agent")
    if (about.get("id") if is_object(about) else row.get("asset")) != asset:
        raise MalformedIndexAnswer("an entry about another agent")
    nested = row.get("solana")
    own: JsonObject = nested if is_object(nested) else row
    client = row.get("clientAddress", row.get("client_address"))
    decimals = _whole(own.get("valueDecimals", own.get("value_decimals")), _DECIMALS_MAX)
    index = _whole(row.get("feedbackIndex", row.get("feedback_index")), _INDEX_MAX)
    raw = str(own.get("valueRaw", own.get("value")))
    if not isinstance(client, str) or not is_public_key(client) or not _VALUE.fullmatch(raw):
        raise MalformedIndexAnswer("an entry without its client or value")
    value = int(raw)
    if decimals is None or index is None or not -_I128_MAX <= value < _I128_MAX:
        raise MalformedIndexAnswer("an entry whose numbers are out of range")
    return Feedback(
        client=client,
        index=index,
        value=Decimal(value).scaleb(-decimals, _EXACT),
        decimals=decimals,
        tag1=_text(row.get("tag1")),
        tag2=_text(row.get("tag2")),
        given_s=_time(row.get("createdAt", row.get("created_at"))),
        score=_whole(own.get("score"), _SCORE_MAX),
        is_scored=True,
    )


def _whole(value: JsonValue, largest: int) -> int | None:
    """Return a number from 0 to `largest`, given as number or text."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 20:  # noqa: PLR2004 - digits of a u64
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= largest:
        return value
    return None


def _text(value: JsonValue) -> str:
    """Return a text without lone surrogates, which JSON can spell and UTF-8 cannot encode."""
    text = value[:_TEXT_CHARS_MAX] if isinstance(value, str) else ""
    return text.encode("utf-8", "replace").decode("utf-8")


def _time(value: JsonValue) -> int | None:
    """Return Unix seconds from seconds as text (GraphQL) or an ISO time (REST)."""
    seconds = _whole(value, _INDEX_MAX)
    if seconds is not None or not isinstance(value, str):
        return seconds
    try:
        return int(datetime.fromisoformat(value).timestamp())
    except (ValueError, OverflowError):
        return None


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
        query = _by_number(number)

        async def ask(indexer: _Indexer) -> str | None:
            return asset_of_number(await indexer.ask(query), number)

        return await self._first_answer(network, ask)

    async def find_wallet(self, network: Network, wallet: str) -> Sequence[str]:
        return await self._assets(network, _by_wallet(wallet))

    async def find_owner(self, network: Network, owner: str) -> Sequence[str]:
        return await self._assets(network, _by_owner(owner))

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
            await indexer.ask(_by_number(1))
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
