"""Bodies on their way are held in memory: one address takes a small part of it."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from assay.app.web import build
from assay.server.request_context import (
    ANONYMOUS_BYTES,
    CREDENTIAL_BODY_BYTES,
    CREDENTIAL_IN_BODY,
    KEYED_BYTES,
    PARTS,
    SMALL_BYTES,
)
from tests.support.live_service import TestService, refused

MIB = 1024 * 1024
PART = ANONYMOUS_BYTES // PARTS
PATH = "/operator/register"


class Upload:
    """A request whose body stops short of its end."""

    def __init__(
        self,
        application: Any,
        address: str,
        size: int,
        headers: Mapping[str, str],
        path: str = PATH,
    ) -> None:
        self.status = 0
        self.retry_after = b""
        self._gone = asyncio.Event()
        self.left = size
        lines = {"content-length": f"{size + 10}", **headers}
        scope = {
            "type": "http",
            "method": "POST",
            "path": path,
            "query_string": b"",
            "headers": [(name.encode(), value.encode()) for name, value in lines.items()],
            "client": (address, 1),
        }
        self.task = asyncio.ensure_future(application(scope, self._receive, self._send))

    async def _receive(self) -> dict[str, Any]:
        if self.left:
            size = min(self.left, 64 * 1024)
            self.left -= size
            return {"type": "http.request", "body": b"x" * size, "more_body": True}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.retry_after = dict(message["headers"]).get(b"retry-after", b"")

    async def leave(self) -> None:
        self._gone.set()
        await self.task


async def all_sent(uploads: list[Upload]) -> None:
    """Until each has sent all that it may; a token is looked up in the database on the way."""
    async with asyncio.timeout(60):
        while any(one.left and not one.task.done() for one in uploads):  # noqa: ASYNC110 - it has none
            await asyncio.sleep(0.001)
    for _ in range(20):  # the last pieces are taken
        await asyncio.sleep(0)


async def test_one_address_holds_a_sixteenth_and_all_hold_no_more_than_there_is(
    service: TestService,
) -> None:
    application: Any = build(service.app)
    room = application.bodies.anonymous
    uploads = [Upload(application, "192.0.2.1", MIB - 10, {}) for _ in range(50)]
    await all_sent(uploads)
    assert room.reserved <= PART
    kept = [one for one in uploads if not one.status]
    assert {one.status for one in uploads} == {0, 503}
    assert len(kept) == PART // (MIB - 10)
    assert all(one.retry_after == b"1" for one in uploads if one.status)
    others = [Upload(application, f"192.0.2.{2 + n % 40}", MIB - 10, {}) for n in range(80)]
    await all_sent(others)
    assert not others[0].status
    assert PART < room.reserved <= ANONYMOUS_BYTES
    for one in (*uploads, *others):
        await one.leave()
    assert room.reserved == 0


async def test_operators_have_a_room_of_their_own(service: TestService) -> None:
    await service.operator()
    token = await service.token()
    application: Any = build(service.app)
    strangers = [Upload(application, f"198.51.100.{n}", MIB - 10, {}) for n in range(80)]
    await all_sent(strangers)
    operators = [Upload(application, "198.51.100.1", MIB - 10, token) for _ in range(20)]
    await all_sent(operators)
    assert len([one for one in operators if not one.status]) == KEYED_BYTES // PARTS // (MIB - 10)
    for one in (*strangers, *operators):
        await one.leave()
    assert (application.bodies.anonymous.reserved, application.bodies.keyed.reserved) == (0, 0)


async def test_small_bodies_are_never_refused_for_others(service: TestService) -> None:
    application: Any = build(service.app)
    large = [Upload(application, "192.0.2.1", MIB - 10, {}) for _ in range(20)]
    await all_sent(large)
    small = Upload(application, "192.0.2.1", SMALL_BYTES, {})
    await all_sent([small])
    assert not small.status
    for one in (*large, small):
        await one.leave()


@pytest.mark.parametrize("path", sorted(CREDENTIAL_IN_BODY))
async def test_where_a_credential_comes_in_the_body_it_is_short(
    service: TestService, path: str
) -> None:
    answer = await service.http.post(path, content=b"x" * (CREDENTIAL_BODY_BYTES + 1))
    assert refused(answer, 413, "payload_too_large")["maxBytes"] == CREDENTIAL_BODY_BYTES
    answer = await service.http.post(path, content=b" " * 16_000)
    assert answer.status_code == 400
