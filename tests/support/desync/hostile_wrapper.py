"""A free wrapper, and its upstream: small answers, large ones as fast as they go, slow ones."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2

from tests.support.shop import PASSWORD
from tests.support.wire_upstream import Asked, Wire, wire_upstream

ANSWER_BYTES = 4 * 2**20


async def _large(wire: Wire, _asked: Asked) -> None:
    await wire.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % ANSWER_BYTES)
    for _ in range(64):
        await wire.send(b"x" * (ANSWER_BYTES // 64))


async def _slow(wire: Wire, _asked: Asked) -> None:
    """Later than a caller's going away is listened for."""
    await asyncio.sleep(0.12)
    await wire.send(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")


@contextmanager
def free_wrapper(address: str) -> Iterator[str]:
    """The id of a new operator with a free wrapper of everything."""
    with wire_upstream() as up, httpx2.Client(base_url=address, timeout=30) as http:
        up.plays |= {"/large": _large, "/slow": _slow}
        account = {"email": "free@example.com", "password": PASSWORD, "name": "Free"}
        assert http.post("/operator/register", json=account).status_code == 200
        login = http.post("/operator/login", json=account).json()
        body = {"path": "/*", "method": "*", "pricePerCall": 0, "targetUrl": up.url}
        token = {"authorization": f"Bearer {login['token']}"}
        made = http.post("/operator/endpoints", json=body, headers=token)
        assert made.status_code == 200, made.text
        yield str(login["operator"]["id"])
