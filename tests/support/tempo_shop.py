"""A shop paid over MPP on a local Tempo chain, and credentials as stock clients make them."""

import base64
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import httpx2
from mpp.client import PaymentTransport
from mpp.methods.tempo import client as tempo_client
from mpp.methods.tempo.account import TempoAccount

from tests.support.assay import served
from tests.support.shop import EARLY, NO_CHAIN, Shop, Upstream, upstream
from tests.support.tempo import KEY, Tempo

SELLER = "0x" + "ab" * 20
CENT = 10_000


@dataclass
class TempoShop:
    shop: Shop
    up: Upstream
    tempo: Tempo

    def wrap(self, path: str, **fields: object) -> str:
        given = {"paymentProtocol": "mpp", "paymentNetwork": self.tempo.network}
        return self.shop.wrap(path, **{**given, "payoutAddress": SELLER, **fields})


@contextmanager
def opened(
    tempo: Tempo, folder: Path, *, rpc_url: str = "", port: int = 0, **settings: str
) -> Iterator[TempoShop]:
    """Its way to the chain is `rpc_url`; with a `port`, a public address may be configured."""
    # A local chain's transactions may be valid for 30 seconds at most: so must challenges be.
    given = {
        "ASSAY_PORT": str(port),
        "ASSAY_PAYMENT_RPC": json.dumps({tempo.network: [rpc_url or tempo.url]}),
        "ASSAY_MPP_CHALLENGE_S": "25",
        **settings,
    }
    with (
        upstream() as up,
        served(folder, NO_CHAIN, **given) as server,
        httpx2.Client(timeout=40, trust_env=False, limits=EARLY) as http,
    ):
        if port:
            server.address = f"http://127.0.0.1:{port}"
        http.base_url = server.address
        shop = Shop(server, http, None, up)  # type: ignore[arg-type] - no dollars here
        shop.sign_up()
        yield TempoShop(shop, up, tempo)


def credential_parts(header: str) -> dict[str, Any]:
    text = header.partition(" ")[2]
    return json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


def header_of(parts: Mapping[str, Any]) -> str:
    text = base64.urlsafe_b64encode(json.dumps(parts).encode()).rstrip(b"=").decode()
    return f"Payment {text}"


async def signed(url: str, tempo: Tempo, method: str = "GET", body: bytes = b"") -> str:
    """The credential a stock client would send, caught before it is sent."""
    caught: list[str] = []

    class Catching(httpx.AsyncBaseTransport):
        def __init__(self) -> None:
            self.inner = httpx.AsyncHTTPTransport()

        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            if "authorization" in request.headers:
                caught.append(request.headers["authorization"])
                return httpx.Response(200)
            return await self.inner.handle_async_request(request)

        async def aclose(self) -> None:
            await self.inner.aclose()

    account = TempoAccount.from_key(KEY)
    charge = tempo_client.charge(account=account, rpc_url=tempo.url, chain_id=tempo.chain_id)
    async with httpx.AsyncClient(transport=PaymentTransport([charge], Catching())) as client:
        await client.request(method, url, content=body)
    assert caught
    return caught[0]
