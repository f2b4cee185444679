"""Somebody's x402 facilitator, with a key of its own, behind the HTTP client's transport."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import httpx2
from typing_extensions import override

from assay.common.json import JsonObject
from assay.payments.ports import Authorization
from assay.payments.x402.codec import authorization_of
from tests.payments.boundary import Boundary
from tests.simulation.chain import Chain

ADDRESS = "0x" + "fa" * 20
WAIT_S = 4.0

Script = Callable[[str, JsonObject], httpx2.Response | None]
"""What it answers to a path and a body; None where it does its work."""


def honest(_path: str, _body: JsonObject) -> None:
    """It does its work."""


@dataclass(slots=True)
class FakeFacilitator:
    """The service: it outlives our processes."""

    chain: Chain
    script: Script = honest
    asked: list[tuple[str, JsonObject]] = field(default_factory=list[tuple[str, JsonObject]])

    async def answer(self, path: str, body: JsonObject) -> httpx2.Response:
        self.asked.append((path, body))
        scripted = self.script(path, body)
        if scripted is not None:
            return scripted
        payload: Any = body["paymentPayload"]
        signed = authorization_of(payload["payload"])
        if path.endswith("/verify"):
            is_good = self.chain.would_move(signed, self.chain.state, self.chain.head.time_s)
            said: dict[str, Any] = {"isValid": is_good, "payer": signed.payer}
            return said_so(said if is_good else {**said, "invalidReason": "insufficient_funds"})
        return await self._settled(signed)

    async def _settled(self, signed: Authorization) -> httpx2.Response:
        chain, key = self.chain, (signed.payer, signed.nonce)
        is_sent = any(sent.action == signed for sent in chain.pool.values())
        if not is_sent and chain.would_move(signed, chain.state, chain.head.time_s):
            chain.submit_plain(ADDRESS, signed)
        for _ in range(int(WAIT_S)):
            use = chain.state.used.get(key)
            if use is not None and use.to == signed.to:
                return said_so({"success": True, "transaction": use.transaction})
            await asyncio.sleep(1.0)
        return said_so({"success": False, "errorReason": "insufficient_funds"})


@dataclass(slots=True)
class Transport(httpx2.AsyncBaseTransport):
    """The way to it from one process."""

    facilitator: FakeFacilitator
    boundary: Boundary

    @override
    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        body = json.loads(request.content) if request.content else {}
        path, host = request.url.path, request.url.host
        if host != "facilitator.test":
            path = host + path
        return await self.boundary.cross(
            path, lambda: self.facilitator.answer(path, body), lambda: httpx2.ReadTimeout("timeout")
        )


def said_so(body: object, status: int = 200) -> httpx2.Response:
    """A JSON answer."""
    return plain(json.dumps(body).encode(), status)


def plain(content: bytes, status: int = 200) -> httpx2.Response:
    """An answer of these bytes."""
    return httpx2.Response(status, stream=_Once(content))


@dataclass(slots=True)
class _Once(httpx2.AsyncByteStream):
    content: bytes

    @override
    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self.content
