"""A serving Assay with two operators who share nothing, each with an upstream of its own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx2

from tests.support.assay import Served, served
from tests.support.desync.wire import KeepingUpstream
from tests.support.shop import NETWORK, NO_CHAIN, PASSWORD, SELLER

SECRET = b"VICTIMSECRET"
ATTACK = b"ZQ"
"""How the name of every sending of a hostile request begins."""

SMALL_BYTES = 64
PADDING = b"p" * 200


@dataclass(frozen=True)
class Operator:
    """One of the two."""

    id: str
    email: str
    token: str
    key: str


@dataclass(frozen=True)
class Tenants:
    """The service's port, the hostile operator, the one it is after, and their upstreams."""

    server: Served
    port: int
    hostile: Operator
    victim: Operator
    hostile_upstream: KeepingUpstream
    victim_upstream: KeepingUpstream

    def victims_request(self, number: int) -> bytes:
        """What the victim sends, all its credentials with it: by turns three kinds."""
        kind = number % 3
        mark = SECRET + b"%d." % number
        lines = [
            b"Host: x",
            b"Authorization: Bearer " + self.victim.token.encode(),
            b"X-Victim: " + mark,
            b"Cookie: session=" + mark,
            b"X-Agent-Session: " + mark,
            b"X-Padding: " + PADDING,
            b"Connection: close",
        ]
        if kind != 2:  # the dashboard takes the token alone
            lines += [b"X-Api-Key: " + self.victim.key.encode(), b"X-Payment: " + mark]
        place = b"/wrap/" + self.victim.id.encode() + b"/open/%d?s=%b" % (number, mark)
        body = b""
        start = b"GET " + place
        if kind == 1:
            body = b"card=" + mark + b"&" + PADDING
            start = b"POST " + place
            lines.append(b"Content-Length: %d" % len(body))
        elif kind == 2:
            start = b"GET /operator/me"
        return b"\r\n".join([start + b" HTTP/1.1", *lines, b"", b""]) + body

    def victims_answer(self, number: int) -> bytes:
        """What the whole answer to that request contains and no other does."""
        if number % 3 == 2:
            return self.victim.email.encode()
        return b"victim answers /open/%d?" % number


@asynccontextmanager
async def tenants(folder: Path) -> AsyncIterator[Tenants]:
    """Both operators have signed up and wrap their upstreams; no limit is in the way."""
    settings = {
        "ASSAY_WRAPPER_PER_MINUTE": "100000000",
        "ASSAY_WRAPPER_UNREAD_MIB": "1000000",
        "ASSAY_ANONYMOUS_PER_MINUTE": "100000000",
        "ASSAY_KEYED_PER_MINUTE": "100000000",
        "ASSAY_TRUSTED_PROXIES": "127.0.0.0/8",
    }
    hostile_up, victim_up = KeepingUpstream("hostile"), KeepingUpstream("victim")
    async with hostile_up.running(), victim_up.running():
        with served(folder, NO_CHAIN, **settings) as server:
            async with httpx2.AsyncClient(
                base_url=server.address, timeout=30, trust_env=False
            ) as http:
                hostile = await sign_up(http, "hostile@example.com", hostile_up)
                victim = await sign_up(http, "victim@example.com", victim_up)
            port = urlsplit(server.address).port
            assert port is not None
            hostile_up.watched = (SECRET, victim.token.encode(), victim.key.encode())
            victim_up.watched = (ATTACK, hostile.id.encode(), b"X-Taken", b"x-taken")
            yield Tenants(server, port, hostile, victim, hostile_up, victim_up)


async def sign_up(http: httpx2.AsyncClient, email: str, up: KeepingUpstream) -> Operator:
    """An operator whose wrappers are `/open`, free, and three others."""
    body = {"email": email, "password": PASSWORD, "name": "Op"}
    made = (await http.post("/operator/register", json=body)).json()
    del body["name"]
    login = (await http.post("/operator/login", json=body)).json()
    headers = {"authorization": f"Bearer {login['token']}"}
    paid = {"pricePerCall": 0.01, "paymentNetwork": NETWORK, "payoutAddress": SELLER.address}
    wrappers: dict[str, dict[str, object]] = {
        "/open": {},
        "/paid": paid,
        "/trusted": {"trustEnabled": True},
        "/small": {"maxBodyBytes": SMALL_BYTES},
    }
    for path, more in wrappers.items():
        asked = {"path": path + "/*", "method": "*", "pricePerCall": 0, "targetUrl": up.url}
        answer = await http.post("/operator/endpoints", json=asked | more, headers=headers)
        assert answer.status_code == 200, answer.text
    return Operator(login["operator"]["id"], email, login["token"], made["apiKey"])
