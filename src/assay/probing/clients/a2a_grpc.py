"""A2A conversations over gRPC, through the same guarded egress as all others (ADR 0040).

The messages are the official library's, of 0.3 and of 1.0. Its own client is not used: grpcio
resolves names and connects by itself, where the egress guard cannot check it.
"""

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final
from uuid import uuid4

from a2a.compat.v0_3 import a2a_v0_3_pb2 as v03
from a2a.types import a2a_pb2 as v10
from google.protobuf.message import Message

from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.net.egress.grpc_address import GRPC, grpc_origins
from assay.net.egress.ports import EgressClient, EgressError, Failure, Limits, OutboundRequest
from assay.probing.clients.grpc_wire import (
    CODINGS,
    HEAD_BYTES,
    MESSAGE_BYTES_MAX,
    as_json,
    framed,
    read_message,
    require_ok,
)
from assay.probing.clients.transport import LIMITS, TransportLog, failed
from assay.probing.ports import AgentCallFailed, Callback
from assay.probing.probe_client import interfaces, same_site

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


def grpc_service(card: JsonObject, card_url: str) -> GrpcService | None:
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

    async def _call(self, method: str, request: Message, wait_s: float | None) -> tuple[bytes, str]:
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
