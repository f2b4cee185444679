"""Envoy's `ext_authz` over gRPC: each check is a call of `/gate/check` in this process.

Envoy adds the operator's key to its own metadata, which callers cannot reach; a route names its
policy in `context_extensions`. Source: Envoy API v3,
service/auth/v3/external_auth.proto and attribute_context.proto.
"""

from collections.abc import AsyncGenerator, Iterable, Mapping, MutableMapping
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import Any, Final, TypeAlias

from assay.app import App
from assay.server.request_context import AsgiApp

SERVICE: Final = "envoy.service.auth.v3.Authorization"
CALLS_MAX: Final = 1000
"""At a time; more are refused, which Envoy takes for a failure of the check."""

STREAMS_MAX: Final = 250
"""Of one connection."""

REQUEST_BYTES_MAX: Final = 256 * 1024
STOP_S: Final = 10.0
_QUERY_CHARS_MAX = 8192

_CALLERS = frozenset(
    {
        *("x-agent-id", "x-agent-address", "x-agent-session", "x-agent-challenge"),
        *("x-agent-signature", "x-chain", "x-min-score", "x-request-id"),
        *("signature-agent", "signature-input", "signature"),
    }
)
"""Headers of the caller that a check reads."""

_PROOF = ("x-agent-session", "x-agent-challenge", "x-agent-signature")
_REFUSAL = frozenset(
    {
        *("content-type", "retry-after", "x-agent-challenge", "x-agent-session"),
        *("x-assay-error", "x-request-id"),
    }
)
_OK, _PERMISSION_DENIED = 0, 7
"""Codes of google.rpc.Code."""

_OVERWRITE = 2
"""HeaderAppendAction.OVERWRITE_IF_EXISTS_OR_ADD."""

_STRING, _INT, _MESSAGE = 9, 5, 11
"""Types of FieldDescriptorProto; an enumeration is written like a number."""

_MESSAGES: Final[Mapping[str, tuple[tuple[str, int, int, str], ...]]] = {
    "CheckRequest": (("attributes", 1, _MESSAGE, "Attributes"),),
    "Attributes": (
        ("request", 4, _MESSAGE, "Request"),
        ("context_extensions", 10, _MESSAGE, "*Entry"),
    ),
    "Request": (("http", 2, _MESSAGE, "Http"),),
    "Http": (("headers", 3, _MESSAGE, "*Entry"), ("path", 4, _STRING, "")),
    "Entry": (("key", 1, _STRING, ""), ("value", 2, _STRING, "")),
    "CheckResponse": (
        ("status", 1, _MESSAGE, "Status"),
        ("denied_response", 2, _MESSAGE, "Denied"),
        ("ok_response", 3, _MESSAGE, "Allowed"),
    ),
    "Status": (("code", 1, _INT, ""),),
    "Denied": (
        ("status", 1, _MESSAGE, "Status"),
        ("headers", 2, _MESSAGE, "*Option"),
        ("body", 3, _STRING, ""),
    ),
    "Allowed": (
        ("headers", 2, _MESSAGE, "*Option"),
        ("headers_to_remove", 5, _STRING, "*"),
        ("response_headers_to_add", 6, _MESSAGE, "*Option"),
    ),
    "Option": (("header", 1, _MESSAGE, "Entry"), ("append_action", 3, _INT, "")),
}
"""The fields that are used, as name, number, type and message; `*` means repeated. Messages have
names of our own, because names are not sent. A map is a repeated entry of key and value."""


_Message: TypeAlias = Any
"""Messages are classes that are made when the service starts."""


class ExtraMissing(RuntimeError):
    """gRPC is not installed."""


@lru_cache(maxsize=1)
def messages() -> Mapping[str, Any]:
    """Return the classes of the messages, by name."""
    from google.protobuf import (  # noqa: PLC0415 - heavy, and seldom used
        descriptor_pb2,
        descriptor_pool,
        message_factory,
    )

    file = descriptor_pb2.FileDescriptorProto(name="assay.proto", package="assay", syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, kind, of in fields:
            added = message.field.add(name=field, number=number, type=kind)
            added.label = added.LABEL_REPEATED if of.startswith("*") else added.LABEL_OPTIONAL
            if kind == _MESSAGE:
                added.type_name = f".assay.{of.removeprefix('*')}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"assay.{name}"))
        for name in _MESSAGES
    }


@asynccontextmanager
async def serving_ext_authz(app: App, application: AsgiApp) -> AsyncGenerator[None]:
    """Serve checks at the setting's address, if there is one.

    Raises `ExtraMissing`, and `OSError` if the address is taken.
    """
    bind = app.settings.ext_authz_bind
    if bind is None:
        yield
        return
    try:
        import grpc.aio  # noqa: PLC0415 - an extra, and seldom set
    except ImportError:
        message = "ASSAY_EXT_AUTHZ_BIND needs the extra `envoy`: install assay[envoy]"
        raise ExtraMissing(message) from None
    made = messages()
    handler = grpc.unary_unary_rpc_method_handler(
        _Check(application).check,
        request_deserializer=made["CheckRequest"].FromString,
        response_serializer=made["CheckResponse"].SerializeToString,
    )
    server = grpc.aio.server(
        maximum_concurrent_rpcs=CALLS_MAX,
        options=[
            ("grpc.max_receive_message_length", REQUEST_BYTES_MAX),
            ("grpc.max_concurrent_streams", STREAMS_MAX),
            ("grpc.so_reuseport", int(app.settings.workers > 1)),  # else a taken port is shared
        ],
    )
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(SERVICE, {"Check": handler}),)
    )
    try:
        server.add_insecure_port(bind)
    except RuntimeError as error:
        raise OSError(f"ASSAY_EXT_AUTHZ_BIND: {bind} cannot be used: {error}") from None
    await server.start()
    try:
        yield
    finally:
        await server.stop(STOP_S)


class _Check:
    """Answers checks."""

    def __init__(self, application: AsgiApp) -> None:
        self._application = application

    async def check(self, asked: _Message, context: _Message) -> _Message:
        """Return the response to a CheckRequest."""
        http, made = asked.attributes.request.http, messages()
        keys = [one for one in context.invocation_metadata() if one[0] == "authorization"]
        extensions = {one.key: one.value for one in asked.attributes.context_extensions}
        policy = extensions.get("policy", "default").replace("/", " ")
        status, headers, body = await _called(
            self._application,
            f"/gate/check/{policy}",
            http.path.partition("?")[2][:_QUERY_CHARS_MAX],
            [*keys, *((one.key, one.value) for one in http.headers if one.key in _CALLERS)],
            _address(context.peer()),
        )
        answer = made["CheckResponse"]()
        if status == 200:  # noqa: PLR2004 - allow
            answer.status.code = _OK
            allowed = answer.ok_response
            decision = frozenset(one for one in headers if one.startswith("x-assay-"))
            _add(allowed.headers, headers, decision)
            _add(allowed.response_headers_to_add, headers, frozenset({"x-agent-session"}))
            allowed.headers_to_remove.extend(_PROOF)
            return answer
        answer.status.code = _PERMISSION_DENIED
        answer.denied_response.status.code = status
        _add(answer.denied_response.headers, headers, _REFUSAL)
        answer.denied_response.body = body.decode("utf-8", "replace")
        return answer


async def _called(
    application: AsgiApp, path: str, query: str, headers: Iterable[tuple[str, str]], client: str
) -> tuple[int, dict[str, str], bytes]:
    """Call the application; return status, headers and body. A fault of ours is 503."""
    said: dict[str, Any] = {"status": 503, "headers": ()}
    body = bytearray()

    async def send(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            said.update(message)
        body.extend(message.get("body", b""))

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "query_string": query.encode("utf-8", "replace"),
        "headers": [
            (name.encode("ascii"), value.encode("latin-1", "replace")) for name, value in headers
        ],
        "client": (client, 0),
    }
    await application(scope, receive, send)
    sent = {name.decode("latin-1"): value.decode("latin-1") for name, value in said["headers"]}
    return said["status"], sent, bytes(body)


def _add(options: _Message, headers: Mapping[str, str], names: frozenset[str]) -> None:
    for name in sorted(names & headers.keys()):
        option = options.add(append_action=_OVERWRITE)
        option.header.key, option.header.value = name, headers[name]


def _address(peer: str) -> str:
    """Return the address of `ipv4:127.0.0.1:1234` or `ipv6:[::1]:1234` (percent-encoded)."""
    kind, _, rest = peer.partition(":")
    return rest.rpartition(":")[0].strip("[]").replace("%5B", "").replace("%5D", "") if kind else ""
