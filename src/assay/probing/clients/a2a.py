"""A2A conversations over guarded egress: by the official client library, and over gRPC (ADR 0040).

gRPC messages in HTTP/2 bodies, and gRPC statuses in trailers. Parses hostile bytes.

Source: gRPC over HTTP2 (Length-Prefixed-Message, Response, Status codes).

A2A conversations over gRPC, through the same guarded egress as all others (ADR 0040).

The messages are the official library's, of 0.3 and of 1.0. Its own client is not used: grpcio
resolves names and connects by itself, where the egress guard cannot check it.

Agents that offer only gRPC are handled by `a2a_grpc`.
"""

import asyncio
import base64
import binascii
import importlib.util
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar, cast
from urllib.parse import urljoin, urlsplit
from uuid import uuid4

import httpx
from a2a.client import A2AClientError, Client, ClientConfig, ClientFactory
from a2a.client.card_resolver import parse_agent_card
from a2a.compat.v0_3 import a2a_v0_3_pb2 as v03
from a2a.types import AgentCard, GetTaskRequest, Message, Part, Role, SendMessageRequest
from a2a.types import a2a_pb2 as v10
from a2a.utils.constants import TransportProtocol
from a2a.utils.errors import A2A_REASON_TO_ERROR, JSON_RPC_ERROR_CODE_MAP, A2AError
from google.protobuf.json_format import MessageToDict, SerializeToJsonError
from google.protobuf.message import DecodeError
from google.protobuf.message import Message as ProtobufMessage
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status

from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.net.body import BodyBroken, read_body
from assay.net.egress.guarded_transport import SafeHttpTransport
from assay.net.egress.ports import (
    EgressClient,
    EgressError,
    EgressResponse,
    Failure,
    Limits,
    OutboundRequest,
)
from assay.net.egress.url import GRPC, grpc_origins
from assay.probing.clients.transport import (
    LIMITS,
    RecordingTransport,
    TransportLog,
    failed,
    note_call,
)
from assay.probing.ports import AgentCallFailed, Callback
from assay.probing.probe_client import (
    decode,
    follow,
    interfaces,
    is_agent_card,
    retry_after_s,
    same_site,
)

HEAD_BYTES = 5
"""One byte for whether the message is compressed, four for its length."""

MESSAGE_BYTES_MAX = 256 * 1024
"""Longest message that is read, as for other text answers."""

FIELDS_MAX = 10_000
"""A message with more fields is rejected: converting it to JSON would block the event loop."""

RATIO_MAX = 100

CODINGS = "identity, deflate, gzip"
"""The encodings that the stock client accepts."""

_GRPC_OK, _UNKNOWN_SERVICE = "0", "12"
_DETAILS_MAX = 8

_LIKE_HTTP: Final[Mapping[str, int]] = {"16": 401, "7": 403, "8": 429, "14": 503}
"""Statuses with the meaning of an HTTP status. Source: gRPC's table of HTTP status codes."""

_LIKE_JSONRPC: Final[Mapping[str, int]] = {"3": -32602, "5": -32001, "9": -32004}
"""Mapping of A2A's errors if no detail names one. Source: A2A 1.0, section 5.4."""

M = TypeVar("M", bound=ProtobufMessage)


def framed(message: ProtobufMessage) -> bytes:
    """Return a message as it is sent, uncompressed."""
    data = message.SerializeToString()
    return b"\0" + len(data).to_bytes(4, "big") + data


async def read_message(body: bytes, encoding: str, into: type[M]) -> M:
    """Return the one message of an answer. Raises `AgentCallFailed`.

    Decompressed to at most `MESSAGE_BYTES_MAX` and 100 times the received bytes, whatever its head
    declares.
    """
    length = int.from_bytes(body[1:HEAD_BYTES], "big")
    data = body[HEAD_BYTES:]
    if len(body) < HEAD_BYTES or len(data) != length or body[0] > 1:
        raise AgentCallFailed("protocol", "the answer is not one message of gRPC")
    if body[0] == 1:
        data = await _expanded(data, encoding)
    message = into()
    try:
        message.ParseFromString(data)
    except (DecodeError, ValueError, RecursionError) as error:
        raise AgentCallFailed("protocol", f"the message is none: {error}"[:300]) from error
    if _has_fields_beyond(message, FIELDS_MAX):
        raise AgentCallFailed("protocol", "the message has too many fields")
    return message


def as_json(message: ProtobufMessage) -> JsonObject:
    """Return a message as JSON. Raises `AgentCallFailed` if JSON cannot express it.

    Such are times beyond the calendar, and NaN or infinity.
    """
    try:
        return cast("JsonObject", MessageToDict(message))
    except (ValueError, TypeError, OverflowError, SerializeToJsonError, RecursionError) as error:
        raise AgentCallFailed("protocol", f"the message is none: {error}"[:300]) from error


async def _expanded(data: bytes, encoding: str) -> bytes:
    if encoding.strip().lower() not in {"gzip", "deflate"}:
        raise AgentCallFailed("protocol", "the message is compressed in a way nobody asked for")
    try:
        body = await read_body(_whole(data), encoding, MESSAGE_BYTES_MAX, RATIO_MAX)
    except BodyBroken as error:
        raise AgentCallFailed("protocol", str(error)) from error
    if body.truncated:
        raise AgentCallFailed("protocol", "the message expands beyond what is read")
    return body.data


async def _whole(data: bytes) -> AsyncIterator[bytes]:
    yield data


def _has_fields_beyond(message: ProtobufMessage, most: int) -> bool:
    """Return whether a message has more values than `most`, at any depth."""
    left, open_messages = most, [message]
    while open_messages:
        for field, value in open_messages.pop().ListFields():
            many = field.is_repeated
            left -= len(value) if many else 1
            if left < 0:
                return True
            members = (value.values() if hasattr(value, "values") else value) if many else [value]
            open_messages += [one for one in members if isinstance(one, ProtobufMessage)]
    return False


def require_ok(reply: EgressResponse) -> None:
    """Raise `AgentCallFailed` if gRPC reports that the call failed."""
    said = {n: v for n, v in (*reply.headers, *reply.trailers) if n.startswith("grpc-")}
    status = said.get("grpc-status", "")
    if status == _GRPC_OK:
        return
    detail = f"gRPC status {status[:8]}: {said.get('grpc-message', '')}"[:300]
    if not (status.isascii() and status.isdigit()):
        raise AgentCallFailed("protocol", "the answer has no status of gRPC")
    if status == "4":
        raise AgentCallFailed("timeout", detail)
    named = _named_error(said)
    if named is None and status == _UNKNOWN_SERVICE:
        raise AgentCallFailed("protocol", detail)
    code = named or _LIKE_HTTP.get(status) or _LIKE_JSONRPC.get(status, -32603)
    raise AgentCallFailed("error", detail, code, retry_s=_retry_s(said))


def _retry_s(said: Mapping[str, str]) -> float | None:
    """Return the retry delay. Source: gRPC proposal A6 (`grpc-retry-pushback-ms`)."""
    text = said.get("grpc-retry-pushback-ms", "")
    is_number = text.isascii() and text.isdigit() and len(text) < 9  # noqa: PLR2004 - a day
    return int(text) / 1000 if is_number else None


def _named_error(said: Mapping[str, str]) -> int | None:
    """Return the JSON-RPC number of the A2A error in a status, in the form of 1.0 or 0.3."""
    name = said.get("grpc-message", "").partition(":")[0].strip()
    for error, code in JSON_RPC_ERROR_CODE_MAP.items():
        if error.__name__ == name:
            return code
    text = said.get("grpc-status-details-bin", "")
    try:
        status = Status.FromString(base64.b64decode(text + "=" * (-len(text) % 4)))
        for detail in status.details[:_DETAILS_MAX]:
            info = ErrorInfo()
            if detail.Unpack(info) and (error := A2A_REASON_TO_ERROR.get(info.reason)):
                return JSON_RPC_ERROR_CODE_MAP.get(error)
    except (binascii.Error, DecodeError, ValueError, RecursionError):
        return None
    return None


GRPC_LIMITS = Limits(
    connect_s=LIMITS.connect_s,
    total_s=LIMITS.total_s,
    body_bytes_max=HEAD_BYTES + MESSAGE_BYTES_MAX,
    header_bytes_max=16 * 1024,
)
"""Limits of one call. gRPC's own clients accept 16 KiB of headers."""

STOCK_CLIENT = "grpc-python-asyncio/1.85.3 grpc-c/58.0.0 (linux; chttp2)"
"""The user agent of the client library under the official A2A client."""

_OK = 200
_PACKAGES: Final = {"0.3": "a2a.v1", "1.0": "lf.a2a.v1"}


@dataclass(frozen=True, slots=True)
class GrpcService:
    """An interface as a card declares it."""

    origins: Sequence[str]
    version: str
    """`0.3` or `1.0`."""
    tenant: str = ""


def _grpc_service(card: JsonObject, card_url: str) -> GrpcService | None:
    """Return the first gRPC interface on the card's own site, if there is no other binding.

    Other bindings have precedence, so that earlier proofs over them stay comparable.
    """
    declared = interfaces(card)
    if any(b in {"JSONRPC", "HTTP+JSON"} and same_site(u, card_url) for b, u in declared):
        return None
    for binding, url in declared:
        origins = [one for one in grpc_origins(url) if same_site(one, card_url)]
        if binding == GRPC and origins:
            return GrpcService(origins, *_version_and_tenant(card, url))
    return None


def _version_and_tenant(card: JsonObject, url: str) -> tuple[str, str]:
    listed = card.get("supportedInterfaces")
    for row in listed if is_array(listed) else ():
        if is_object(row) and row.get("url") == url and row.get("protocolBinding") == GRPC:
            version, tenant = row.get("protocolVersion"), row.get("tenant")
            is_old = isinstance(version, str) and version.startswith("0.")
            return "0.3" if is_old else "1.0", tenant if isinstance(tenant, str) else ""
    return "0.3", ""


class GrpcA2a:
    """An agent that speaks gRPC and whose card was read; implements `A2aConversation`."""

    def __init__(
        self, card: JsonObject, card_url: str, service: GrpcService, http: EgressClient
    ) -> None:
        self.card = card
        self.card_url = card_url
        self.has_answered = False
        self._service = service
        self._origins = [*service.origins]
        self._http = http

    async def send_text(
        self,
        text: str,
        context_id: str = "",
        *,
        wait_s: float | None = None,
        callback: Callback | None = None,
    ) -> JsonObject:
        if self._service.version == "0.3":
            found = await self._call(
                "SendMessage", _old_request(text, context_id, callback), wait_s
            )
            old = await read_message(*found, v03.SendMessageResponse)
            answer = as_new(as_json(old))
        else:
            request = _request(text, context_id, callback)
            request.tenant = self._service.tenant
            found = await self._call("SendMessage", request, wait_s)
            new = await read_message(*found, v10.SendMessageResponse)
            answer = as_json(new)
        if not is_object(answer.get("task")) and not is_object(answer.get("message")):
            raise AgentCallFailed("protocol", "the answer holds neither a message nor a task")
        self.has_answered = True
        return answer

    async def get_task(self, task_id: str) -> JsonObject:
        if self._service.version == "0.3":
            old = v03.GetTaskRequest(name=f"tasks/{task_id}")
            found = await self._call("GetTask", old, None)
            task = await read_message(*found, v03.Task)
            return {"task": as_new(as_json(task))}
        request = v10.GetTaskRequest(id=task_id, tenant=self._service.tenant)
        found = await self._call("GetTask", request, None)
        return {"task": as_json(await read_message(*found, v10.Task))}

    async def _call(
        self, method: str, request: ProtobufMessage, wait_s: float | None
    ) -> tuple[bytes, str]:
        """Return the answer's body and its message's compression. Raises `AgentCallFailed`."""
        if importlib.util.find_spec("h2") is None:
            raise AgentCallFailed("no_grpc", "gRPC needs the extra `grpc` (h2)")
        path = f"/{_PACKAGES[self._service.version]}.A2AService/{method}"
        while True:
            try:
                return await self._called(self._origins[0] + path, framed(request), wait_s)
            except EgressError as error:
                # The card does not mention TLS, and the service does not speak it.
                if len(self._origins) > 1 and error.failure in {Failure.TLS, Failure.PROTOCOL}:
                    self._origins.pop(0)
                    continue
                raise failed(TransportLog(failure=error.failure), error, None) from error

    async def _called(self, url: str, body: bytes, wait_s: float | None) -> tuple[bytes, str]:
        limits = GRPC_LIMITS if wait_s is None else replace(GRPC_LIMITS, total_s=wait_s)
        headers = {
            "content-type": "application/grpc",
            "grpc-accept-encoding": CODINGS,
            "user-agent": STOCK_CLIENT,
            "a2a-version": self._service.version,
        }
        reply = await self._http.send(
            OutboundRequest("POST", url, headers, body, is_http2=True), limits
        )
        if reply.status != _OK:
            error = ConnectionError(f"answered with HTTP status {reply.status}")
            raise failed(TransportLog(status=reply.status), error, None)
        if not (reply.header("content-type") or "").startswith("application/grpc"):
            raise AgentCallFailed("protocol", "the answer is not gRPC")
        require_ok(reply)
        if reply.truncated:
            raise AgentCallFailed("protocol", "the answer is longer than what is read")
        self._origins = self._origins[:1]
        return reply.body, reply.header("grpc-encoding") or ""


def _request(text: str, context_id: str, callback: Callback | None) -> v10.SendMessageRequest:
    message = v10.Message(
        message_id=str(uuid4()),  # As its clients do: an id with a time in it would identify us.
        role=v10.ROLE_USER,
        parts=[v10.Part(text=text)],
        context_id=context_id,
    )
    request = v10.SendMessageRequest(message=message)
    request.configuration.SetInParent()
    if callback is not None:
        push = request.configuration.task_push_notification_config
        push.url, push.token = callback.url, callback.token
    return request


def _old_request(text: str, context_id: str, callback: Callback | None) -> v03.SendMessageRequest:
    message = v03.Message(
        message_id=str(uuid4()),
        role=v03.ROLE_USER,
        content=[v03.Part(text=text)],
        context_id=context_id,
    )
    request = v03.SendMessageRequest(request=message)
    request.configuration.blocking = True
    if callback is not None:
        push = request.configuration.push_notification
        push.url, push.token = callback.url, callback.token
    return request


def as_new(value: JsonObject) -> JsonObject:
    """Rename the members of a 0.3 message or task as in 1.0."""
    return {_NEW.get(name, name): _renamed(one) for name, one in value.items()}


def _renamed(value: JsonValue) -> JsonValue:
    if is_object(value):
        return as_new(value)
    return [_renamed(one) for one in value] if is_array(value) else value


_NEW: Final = {"msg": "message", "content": "parts", "update": "message"}


WELL_KNOWN = (".well-known/agent-card.json", ".well-known/agent.json")
"""Where cards are served. Sources: A2A 1.0, section 8.2 (and RFC 8615); A2A 0.2 for the second."""


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
    service = _grpc_service(card, card_url)
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
