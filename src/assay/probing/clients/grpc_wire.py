"""gRPC messages in HTTP/2 bodies, and gRPC statuses in trailers. Parses hostile bytes.

Source: gRPC over HTTP2 (Length-Prefixed-Message, Response, Status codes).
"""

import base64
import binascii
from collections.abc import AsyncIterator, Mapping
from typing import Final, TypeVar, cast

from a2a.utils.errors import A2A_REASON_TO_ERROR, JSON_RPC_ERROR_CODE_MAP
from google.protobuf.json_format import MessageToDict, SerializeToJsonError
from google.protobuf.message import DecodeError, Message
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status

from assay.common.json import JsonObject
from assay.net.body import BodyBroken, read_body
from assay.net.egress.ports import EgressResponse
from assay.probing.ports import AgentCallFailed

HEAD_BYTES = 5
"""One byte for whether the message is compressed, four for its length."""

MESSAGE_BYTES_MAX = 256 * 1024
"""Longest message that is read, as for other text answers."""

FIELDS_MAX = 10_000
"""A message with more fields is rejected: converting it to JSON would block the event loop."""

RATIO_MAX = 100

CODINGS = "identity, deflate, gzip"
"""The encodings that the stock client accepts."""

_OK, _UNKNOWN_SERVICE = "0", "12"
_DETAILS_MAX = 8

_LIKE_HTTP: Final[Mapping[str, int]] = {"16": 401, "7": 403, "8": 429, "14": 503}
"""Statuses with the meaning of an HTTP status. Source: gRPC's table of HTTP status codes."""

_LIKE_JSONRPC: Final[Mapping[str, int]] = {"3": -32602, "5": -32001, "9": -32004}
"""Mapping of A2A's errors if no detail names one. Source: A2A 1.0, section 5.4."""

M = TypeVar("M", bound=Message)


def framed(message: Message) -> bytes:
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


def as_json(message: Message) -> JsonObject:
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


def _has_fields_beyond(message: Message, most: int) -> bool:
    """Return whether a message has more values than `most`, at any depth."""
    left, open_messages = most, [message]
    while open_messages:
        for field, value in open_messages.pop().ListFields():
            many = field.is_repeated
            left -= len(value) if many else 1
            if left < 0:
                return True
            members = (value.values() if hasattr(value, "values") else value) if many else [value]
            open_messages += [one for one in members if isinstance(one, Message)]
    return False


def require_ok(reply: EgressResponse) -> None:
    """Raise `AgentCallFailed` if gRPC reports that the call failed."""
    said = {n: v for n, v in (*reply.headers, *reply.trailers) if n.startswith("grpc-")}
    status = said.get("grpc-status", "")
    if status == _OK:
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
