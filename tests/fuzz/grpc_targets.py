"""What agents answer over gRPC, and what they deliver to callbacks."""

import asyncio
import json
from functools import cache
from typing import Any

from a2a.compat.v0_3 import a2a_v0_3_pb2 as v03
from a2a.types import a2a_pb2 as v10

from assay.common.shared_state import KEY_CHARS_MAX, VALUE_CHARS_MAX
from assay.net.body import BodyBroken, read_body
from assay.net.egress.http2 import READ_BYTES, Http2Exchange
from assay.net.egress.ports import EgressResponse
from assay.net.egress.url import URL_CHARS_MAX, grpc_origins
from assay.probing.clients.a2a import as_json, as_new, read_message, require_ok
from assay.probing.ports import AgentCallFailed
from assay.probing.result_callbacks import TASK_ID_CHARS_MAX, TEXT_CHARS_MAX, read_delivery
from tests.fuzz.target import Target, text

loop = cache(asyncio.new_event_loop)
"""Made when it is first needed: a process that was forked needs its own."""

CODINGS = ("identity", "gzip", "deflate", "")
INTO = (v10.SendMessageResponse, v10.Task, v03.SendMessageResponse, v03.Task)


def grpc_message(data: bytes) -> None:
    """A message is JSON that can be printed, whatever its version and coding."""
    chosen = data[0] if data else 0
    into = INTO[chosen % 4]
    body, coding = data[1:], CODINGS[chosen // 4 % 4]
    message = loop().run_until_complete(read_message(body, coding, into))
    json.dumps(as_new(as_json(message)), allow_nan=False)


def grpc_status(data: bytes) -> None:
    """Only a status of 0 is none of a failure."""
    status, message, details, pushback = [*text(data).split("\n", 3), "", "", ""][:4]
    said = {
        "grpc-status": status,
        "grpc-message": message,
        "grpc-status-details-bin": details,
        "grpc-retry-pushback-ms": pushback,
    }
    require_ok(
        EgressResponse(200, (), b"", truncated=False, elapsed_ms=0.0, trailers=tuple(said.items()))
    )
    assert status == "0"


def grpc_address(data: bytes) -> bool:
    """Origins without a path, in the clear only where TLS is not asked for."""
    url = text(data)[:URL_CHARS_MAX]
    found = grpc_origins(url)
    for origin in found:
        assert origin.count("/") == 2
        assert "@" not in origin
    if url.lower().startswith(("https:", "grpcs:")):
        assert not any(origin.startswith("http:") for origin in found)
    return bool(found)


class Recorded:
    """A connection whose host has said all that it says."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    async def read(self, max_bytes: int, _timeout_s: float | None = None) -> bytes:
        piece, self._data = self._data[:max_bytes], self._data[max_bytes:]
        assert max_bytes <= READ_BYTES
        return piece

    async def write(self, buffer: bytes, _timeout_s: float | None = None) -> None:
        del buffer


def http2_answer(data: bytes) -> None:
    """An answer has a status, and a body within its bound; all else is broken."""
    loop().run_until_complete(_http2_answer(data))


async def _http2_answer(data: bytes) -> None:
    stream: Any = Recorded(data)
    made = Http2Exchange(stream, 1024, 1.0)
    headers = [
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":authority", b"a"),
        (b":path", b"/"),
    ]
    await made.send(headers, b"x")
    body = await read_body(made.chunks(), "", 512, 100)
    assert 100 <= made.status <= 999
    assert len(body.data) <= min(512, len(data))


def push_delivery(data: bytes) -> bool:
    """What is kept of a delivery fits the shared state, and can be stored by any database."""
    found = read_delivery(data)
    if found is None:
        return False
    assert 0 < len(found.task_id) <= min(TASK_ID_CHARS_MAX, KEY_CHARS_MAX)
    assert len(found.text) <= TEXT_CHARS_MAX
    assert "\0" not in found.text + found.task_id
    kept = json.dumps([found.task_id, found.text, found.is_end, found.is_whole], ensure_ascii=False)
    assert len(kept.encode().decode()) <= VALUE_CHARS_MAX
    return True


TARGETS = (
    Target("grpc_message", grpc_message, (AgentCallFailed,)),
    Target("grpc_status", grpc_status, (AgentCallFailed,)),
    Target("grpc_address", grpc_address),
    Target("http2_answer", http2_answer, (BodyBroken,)),
    Target("push_delivery", push_delivery),
)
