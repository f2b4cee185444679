"""Answers on their way are held in memory: an operator takes a small part of it."""

import asyncio
from typing import Any

import pytest

import assay.server.response_writer
from assay.app.web import build
from assay.common.fair_queue import LISTS
from assay.server.request_context import PARTS
from assay.server.response_writer import ANSWERS_BYTES
from tests.support.live_service import TestService, refused

PART = ANSWERS_BYTES // PARTS
WRAPPERS = 100
PATH = "/operator/endpoints"


class Reader:
    """A request whose answer is not read beyond its first bytes until it is let go."""

    def __init__(self, application: Any, headers: dict[str, str]) -> None:
        self.status = 0
        self.body = b""
        self.is_whole = False
        self.has_begun, self._read = asyncio.Event(), asyncio.Event()
        lines = [(name.encode(), value.encode()) for name, value in headers.items()]
        asked = {"type": "http", "method": "GET", "path": PATH, "query_string": b""}
        scope = {**asked, "headers": lines, "client": ("192.0.2.1", 1)}
        self.task = asyncio.ensure_future(application(scope, self._receive, self._send))

    async def _receive(self) -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.has_begun.set()
            return
        self.body += message["body"]
        self.is_whole = not message.get("more_body", False)
        if not self.is_whole:
            await self._read.wait()

    async def read_on(self) -> None:
        self._read.set()
        await self.task


@pytest.fixture
async def token(service: TestService) -> dict[str, str]:
    """Of an operator whose list of wrappers is some 2 MiB."""
    await service.operator()
    headers = await service.token()
    origins = [f"https://{number}.{'c' * 60}.{'c' * 60}.{'c' * 60}.example" for number in range(32)]
    for number in range(WRAPPERS):
        body = {"path": f"/p{number}", "pricePerCall": 0, "description": "\u20ac" * 1000}
        asked = {**body, "targetUrl": "https://example.com/" + "b" * 8000, "corsOrigins": origins}
        made = await service.http.post(PATH, headers=headers, json=asked)
        assert made.status_code == 200, made.text
    return headers


@pytest.mark.slow
async def test_an_operator_that_does_not_read_holds_a_sixteenth(
    service: TestService, token: dict[str, str]
) -> None:
    application: Any = build(service.app)
    readers = [Reader(application, token) for _ in range(10)]
    for one in readers:
        await one.has_begun.wait()
    size = len((await service.http.get(PATH, headers=token)).content)
    assert size > PART // 8
    assert len([one for one in readers if one.status == 200]) == PART // size
    assert {one.status for one in readers} == {200, 503}
    assert application.answers.reserved == PART // size * size
    other = await service.operator("other@example.com")
    assert (await service.http.get("/openapi.json", headers=other)).status_code == 200
    for one in readers:
        await one.read_on()
    assert all(one.is_whole and len(one.body) in range(100, size + 1) for one in readers)
    assert application.answers.reserved == 0


async def test_an_answer_that_is_not_read_in_its_time_is_given_up(
    service: TestService, token: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assay.server.response_writer, "UNREAD_S", 0.1)
    application: Any = build(service.app)
    reader = Reader(application, token)
    async with asyncio.timeout(20):
        await reader.task
    assert (reader.status, reader.is_whole, application.answers.reserved) == (200, False, 0)


@pytest.mark.parametrize("path", [PATH, "/operator/webhooks"])
async def test_429_an_operator_has_few_lists_made_at_once(service: TestService, path: str) -> None:
    await service.operator()
    app, token = service.app, await service.token()
    lists = app.endpoints.lists if path == PATH else app.webhooks.lists
    async with (
        asyncio.TaskGroup() as group,
        lists.slot("another", is_known=True),
        lists.slot("another", is_known=True),  # both that are made at once
    ):
        asked = [group.create_task(service.http.get(path, headers=token)) for _ in range(40)]
        done, waiting = set[asyncio.Task[Any]](), set(asked)
        while len(done) < 40 - LISTS[2]:
            some, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            done |= some
        for one in done:
            refused(one.result(), 429, "rate_limited")
    assert {one.result().status_code for one in waiting} == {200}
