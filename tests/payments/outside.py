"""What is outside a process of the service: time, upstream, and who pays.

The chain and its nodes are those of `tests.simulation`, with real signatures.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextvars import Context
from dataclasses import dataclass, field
from queue import SimpleQueue
from random import Random
from typing import Any, TypeVar

from coincurve import PrivateKey
from typing_extensions import override

from assay.chains.evm.signing import address_of
from assay.common.http_heads import HeaderPairs
from assay.common.json import JsonObject
from assay.http1.model import UpstreamFailed, UpstreamRequest, anonymous_at
from assay.identity.model import AgentHeaders
from assay.payments.ports import Authorization
from assay.payments.x402.codec import credential_of, encoded
from assay.payments.x402.eip3009 import sign_authorization
from assay.wrappers.model import InboundRequest
from tests.payments.boundary import Boundary
from tests.simulation.chain import NETWORK
from tests.simulation.loop import SimulatedLoop

T = TypeVar("T")

OPERATOR = "op"
PATH = "/quote"
PRICE = 10_000
PAYEE = "0x" + "5e" * 20
SOLD = b"what is sold"
HOME = "192.0.2.7"
"""Where the buyer calls from."""


class InlineLoop(SimulatedLoop):
    """Virtual time, one order of events, and executors' work done where it is asked for."""

    def __init__(self) -> None:
        super().__init__(Random(0), in_order=True)
        self.waits_for_thread = 0
        """How many wait for a thread of the database's driver: time stands still meanwhile."""
        self._from_threads: SimpleQueue[asyncio.Handle] = SimpleQueue()

    @override
    def call_soon_threadsafe(
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._from_threads.put(handle)
        return handle

    @override
    def _jump(self) -> None:
        if self.waits_for_thread:
            self._ready.append(self._from_threads.get(timeout=60))
        else:
            super()._jump()

    @override
    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> Any:
        del executor
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - its caller's
            future.set_exception(error)
        return future


@dataclass(slots=True)
class FakeReply:
    """Implements `http1.model.UpstreamResponse`."""

    status: int = 200
    headers: HeaderPairs = ((b"content-type", b"text/plain"),)
    content: bytes = SOLD
    is_closed: bool = False

    @property
    def whole(self) -> bytes | None:
        return self.content

    async def body(self) -> AsyncGenerator[bytes]:
        yield self.content

    def close(self) -> None:
        self.is_closed = True


@dataclass(slots=True)
class FakeUpstream:
    """The seller's API: it outlives our processes, and remembers by which keys it was asked."""

    keys: list[bytes] = field(default_factory=list[bytes])
    script: list[FakeReply | Exception | float] = field(default_factory=list[Any])
    """What it does next, once each; a number is how many seconds it takes first."""
    asked: Callable[[], None] = lambda: None
    """Told of every request, before it is answered."""

    async def answer(self, request: UpstreamRequest) -> FakeReply:
        self.keys.append(dict(request.headers).get(b"idempotency-key", b""))
        self.asked()
        while self.script:
            found = self.script.pop(0)
            if isinstance(found, Exception):
                raise found
            if isinstance(found, FakeReply):
                return found
            await asyncio.sleep(found)
        return FakeReply()


@dataclass(frozen=True, slots=True)
class UpstreamClient:
    """Implements `http1.model.Upstream`, as one process reaches it."""

    upstream: FakeUpstream
    boundary: Boundary

    def prepare(self, request: UpstreamRequest) -> Any:
        raise NotImplementedError  # paid calls are never prepared

    async def send(self, request: UpstreamRequest) -> FakeReply:
        return await self.boundary.cross(
            "upstream", lambda: self.upstream.answer(request), lambda: UpstreamFailed("It failed.")
        )


@dataclass(frozen=True, slots=True)
class Payer:
    """A wallet, and what it signs."""

    key: str = "0x" + "0c" * 32

    @property
    def address(self) -> str:
        return address_of(PrivateKey(bytes.fromhex(self.key[2:])).public_key)

    def signs(
        self, ends_s: float, *, to: str = PAYEE, value: int = PRICE, nonce: int = 1
    ) -> Authorization:
        """An authorisation good until then, in seconds since 1970."""
        unsigned = Authorization(self.address, to, value, 0, int(ends_s), f"0x{nonce:064x}", "")
        return sign_authorization(self.key, unsigned, NETWORK)


def payment(
    signed: Authorization,
    *,
    version: int = 2,
    token: str = "",
    extensions: JsonObject | None = None,
) -> tuple[bytes, bytes]:
    """The header that pays with it."""
    payload = credential_of(signed)
    if version == 1:
        v1 = {"x402Version": 1, "scheme": "exact", "network": NETWORK.id, "payload": payload}
        return b"x-payment", encoded(v1)
    accepted = {
        "scheme": "exact",
        "network": NETWORK.id,
        "asset": NETWORK.asset.address,
        "amount": str(signed.value),
        "payTo": signed.to,
        **({"extra": {"token": token}} if token else {}),
    }
    v2 = {"x402Version": 2, "accepted": accepted, "payload": payload}
    if extensions is not None:
        v2["extensions"] = extensions
    return b"payment-signature", encoded(v2)


def incoming(
    *headers: tuple[bytes, bytes],
    client: str = HOME,
    path: str = PATH,
    method: str = "GET",
    query: str | None = None,
    content: bytes = b"",
) -> InboundRequest:
    """A request as the web server hands it over."""

    async def body(_most: int) -> AsyncIterator[bytes]:
        yield content

    return InboundRequest(
        method=method,
        path=path,
        query=query,
        headers=headers,
        agent=AgentHeaders(),
        agent_id=None,
        chain=None,
        client_address=client,
        request_id="r",
        content_length=len(content),
        caller=anonymous_at(client),
        body=body,
    )
