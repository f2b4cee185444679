"""A2A conversations through the official client library, over guarded egress.

Agents that offer only gRPC are handled by `a2a_grpc`.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast
from urllib.parse import urljoin, urlsplit
from uuid import uuid4

import httpx
from a2a.client import A2AClientError, Client, ClientConfig, ClientFactory
from a2a.client.card_resolver import parse_agent_card
from a2a.types import AgentCard, GetTaskRequest, Message, Part, Role, SendMessageRequest
from a2a.utils.constants import TransportProtocol
from a2a.utils.errors import JSON_RPC_ERROR_CODE_MAP, A2AError
from google.protobuf.json_format import MessageToDict

from assay.common.json import JsonObject, is_object
from assay.net.egress.guarded_transport import SafeHttpTransport
from assay.net.egress.ports import (
    EgressClient,
    EgressError,
    EgressResponse,
    Failure,
    OutboundRequest,
)
from assay.probing.clients.a2a_grpc import GrpcA2a, grpc_service
from assay.probing.clients.transport import (
    LIMITS,
    RecordingTransport,
    TransportLog,
    failed,
    note_call,
)
from assay.probing.ports import AgentCallFailed, Callback
from assay.probing.probe_client import decode, retry_after_s
from assay.probing.redirects import follow, is_agent_card

WELL_KNOWN = (".well-known/agent-card.json", ".well-known/agent.json")
"""Where cards are served. Sources: A2A 1.0, section 8.2 (and RFC 8615); A2A 0.2 for the second."""

_OK = 200
_GONE = frozenset({404, 405, 410})


class StockA2a:
    """An agent whose card was read; implements `A2aConversation`."""

    def __init__(
        self, card: JsonObject, card_url: str, parsed: AgentCard, wire: RecordingTransport
    ) -> None:
        self.card = card
        self.card_url = card_url
        self.has_answered = False
        self._parsed = parsed
        self._wire = wire

    async def send_text(
        self,
        text: str,
        context_id: str = "",
        *,
        wait_s: float | None = None,
        callback: Callback | None = None,
    ) -> JsonObject:
        message = Message(
            # As its clients do: an id with a time in it would identify us.
            message_id=str(uuid4()),
            role=Role.ROLE_USER,
            parts=[Part(text=text)],
            context_id=context_id,
        )
        request = SendMessageRequest(message=message)
        if callback is not None:
            push = request.configuration.task_push_notification_config
            push.url, push.token = callback.url, callback.token
        log = note_call(wait_s)
        try:
            async with self._client() as client:
                async for event in client.send_message(request):
                    self.has_answered = True
                    return cast("JsonObject", MessageToDict(event))
        except Exception as error:  # Hostile answers raise undeclared errors.
            raise failed(log, error, _code(error)) from error
        raise AgentCallFailed("protocol", "the answer holds neither a message nor a task")

    async def get_task(self, task_id: str) -> JsonObject:
        log = note_call()
        try:
            async with self._client() as client:
                task = await client.get_task(GetTaskRequest(id=task_id))
                return {"task": cast("JsonObject", MessageToDict(task))}
        except Exception as error:  # Hostile answers raise undeclared errors.
            raise failed(log, error, _code(error)) from error

    @asynccontextmanager
    async def _client(self) -> AsyncGenerator[Client]:
        async with httpx.AsyncClient(
            transport=SafeHttpTransport(self._wire, LIMITS), trust_env=False
        ) as sender:
            bindings: list[str] = [TransportProtocol.JSONRPC, TransportProtocol.HTTP_JSON]
            config = ClientConfig(
                streaming=False,
                httpx_client=sender,
                supported_protocol_bindings=bindings,
            )
            yield ClientFactory(config).create(self._parsed)


@asynccontextmanager
async def dial_a2a(
    url: str, http: EgressClient, parsing: asyncio.Lock
) -> AsyncGenerator[StockA2a | GrpcA2a]:
    """Read the card; raises `AgentCallFailed` or `BudgetExhausted`.

    The library takes 0.3 s for a large card, all of it in Python: in a thread, and one at a time
    (`parsing`), so that the event loop can run meanwhile.
    """
    logging.getLogger("a2a").setLevel(logging.CRITICAL)  # It logs what agents send, verbatim.
    card_url, reply = await _fetch_card(url, http)
    card = decode(reply.body)
    if not is_object(card):
        raise AgentCallFailed("protocol", "the card is not a JSON object")
    try:
        # It changes its input; parsing the text again is faster than a deep copy.
        given = cast("dict[str, Any]", decode(reply.body))
        async with parsing:
            parsed = await asyncio.to_thread(parse_agent_card, given)
    except Exception as error:  # Hostile cards raise undeclared errors.
        raise AgentCallFailed("protocol", f"{type(error).__name__}: {error}"[:300]) from error
    service = grpc_service(card, card_url)
    if service is not None:
        yield GrpcA2a(card, card_url, service, http)
    else:
        yield StockA2a(card, card_url, parsed, RecordingTransport(http))


async def _fetch_card(url: str, http: EgressClient) -> tuple[str, EgressResponse]:
    """Return the first address that serves a card, and its reply.

    The candidates are the declared address itself, the well-known path below it, and that of its
    host: published registrations use all three.
    """
    reply: EgressResponse | None = None
    for candidate in _candidates(url):
        found, reply = await _get(candidate, http)
        if reply.status == _OK and (candidate != url or _is_card(reply)):
            return found, reply
        if reply.status not in _GONE and candidate != url:
            break
    status = reply.status if reply else 0
    log = TransportLog(status=status, retry_s=reply and retry_after_s(reply))
    refusal = failed(log, LookupError(f"the card is answered with {status}"), status)
    raise refusal


def _candidates(url: str) -> list[str]:
    bare = urlsplit(url)._replace(query="", fragment="").geturl()
    if bare.endswith(".json"):
        return [url]
    below = [urljoin(bare.rstrip("/") + "/", path) for path in WELL_KNOWN[:1]]
    of_host = [urljoin(url, "/" + path) for path in WELL_KNOWN]
    return list(dict.fromkeys([url, *below, *of_host]))


def _is_card(reply: EgressResponse) -> bool:
    card = decode(reply.body)
    return is_object(card) and is_agent_card(card)


async def _get(url: str, http: EgressClient) -> tuple[str, EgressResponse]:
    """Return the reply after redirects that stay on the site, and its address."""
    try:
        url, reply = await follow(http, OutboundRequest("GET", url, {}), LIMITS)
    except EgressError as error:
        raise failed(TransportLog(failure=error.failure), error, None) from error
    if reply.truncated:
        raise failed(
            TransportLog(failure=Failure.PROTOCOL), ValueError("the card is too long"), None
        )
    return url, reply


def _code(error: Exception) -> int | None:
    """Return the number of the protocol error that the agent answered with."""
    if isinstance(error, A2AError) and not isinstance(error, A2AClientError):
        return JSON_RPC_ERROR_CODE_MAP.get(type(error))
    return None
