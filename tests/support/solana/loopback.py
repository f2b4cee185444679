"""A loopback HTTP service in a thread of its own, and the ways in which it can fail its callers."""

import asyncio
import json
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from tests.support.raw_server import RawServer, Request, plain, serving
from tests.support.starting import HUNG_S

FOREVER_S = 3600.0
JSON = "Content-Type: application/json"


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes
    headers: tuple[str, ...] = (JSON,)

    def encoded(self, *more: str) -> bytes:
        line = f"{self.status} {HTTPStatus(self.status).phrase}"
        return plain(self.body, line, *self.headers, *more)

    def last(self) -> bytes:
        """As the last answer on its connection."""
        return self.encoded("Connection: close")


def as_json(value: object, status: int = 200) -> Answer:
    return Answer(status, json.dumps(value).encode())


Fault = Callable[[Request, Callable[[], Answer]], Iterable[bytes | float]]
"""Bytes to send and seconds to wait; then it hangs up.

It gets the request, and what would do it and answer honestly: a fault that never calls that
leaves the request undone.
"""


def hang() -> Fault:
    """Takes the request, does nothing and says nothing."""
    return lambda _request, _answer: [FOREVER_S]


def lost() -> Fault:
    """Does what it is asked, and the answer never comes."""

    def pieces(_request: Request, answer: Callable[[], Answer]) -> Iterator[float]:
        answer()
        yield FOREVER_S

    return pieces


def half_open() -> Fault:
    """Begins to answer and goes no further."""
    return lambda _request, _answer: [b"HTTP/1.1 200 OK\r\nContent-Ty", FOREVER_S]


def hang_up() -> Fault:
    """Closes the connection without a word."""
    return lambda _request, _answer: []


def status(code: int, *headers: str, body: bytes = b"") -> Fault:
    answer = Answer(code, body, headers)
    return lambda _request, _answer: [answer.last()]


def rate_limited(retry_after: int | str | None = None) -> Fault:
    """429 as a public node says it."""
    error = {"code": 429, "message": "Too many requests for a specific RPC call"}
    body = json.dumps({"jsonrpc": "2.0", "error": error, "id": None}).encode()
    extra = () if retry_after is None else (f"Retry-After: {retry_after}",)
    return status(429, JSON, *extra, body=body)


def unavailable() -> Fault:
    return status(503, "Content-Type: text/plain", body=b"Service unavailable")


def garbage(body: bytes = b"<html>Bad gateway</html>", content_type: str = JSON) -> Fault:
    """A success that is no JSON."""
    return status(200, content_type, body=body)


def huge(size: int = 100_000_000) -> Fault:
    """JSON that begins well and is longer than anybody should read."""
    piece = b"x" * 100_000

    def pieces(_request: Request, _answer: object) -> Iterator[bytes]:
        yield plain(b'{"jsonrpc":"2.0","id":1,"result":"', "200 OK", JSON).replace(
            b"Content-Length: 34", b"Content-Length: %d" % size
        )
        yield from (piece for _ in range(size // len(piece)))

    return pieces


def drip(gap_s: float = 0.2) -> Fault:
    """The honest answer, a byte at a time."""

    def pieces(_request: Request, answer: Callable[[], Answer]) -> Iterator[bytes | float]:
        for byte in answer().last():
            yield bytes([byte])
            yield gap_s

    return pieces


def cut(*, keep: float = 0.5) -> Fault:
    """The connection ends within the body."""

    def pieces(_request: Request, answer: Callable[[], Answer]) -> Iterator[bytes]:
        whole = answer()
        missing = len(whole.body) - int(len(whole.body) * keep)
        yield whole.encoded()[: -max(missing, 1)]

    return pieces


def slow(delay_s: float) -> Fault:
    """The honest answer, late."""
    return lambda _request, answer: [delay_s, answer().last()]


def rewritten(change: Callable[[Any], Any]) -> Fault:
    """The honest answer with its JSON changed."""

    def pieces(_request: Request, answer: Callable[[], Answer]) -> Iterator[bytes]:
        whole = answer()
        yield as_json(change(json.loads(whole.body)), whole.status).last()

    return pieces


@dataclass
class Rule:
    fault: Fault
    only: str | None
    left: int | None


@dataclass
class Faults:
    """What is wrong with a service at the moment; nothing, to begin with."""

    rules: list[Rule] = field(default_factory=list[Rule])

    def on(self, fault: Fault, *, only: str | None = None, times: int | None = None) -> None:
        """From now on; `only` one kind of request, or only so many `times`."""
        self.rules.append(Rule(fault, only, times))

    def off(self) -> None:
        self.rules.clear()

    @contextmanager
    def during(self, fault: Fault, *, only: str | None = None) -> Generator[None]:
        rule = Rule(fault, only, None)
        self.rules.append(rule)
        try:
            yield
        finally:
            self.rules.remove(rule)

    def of(self, kind: str) -> Fault | None:
        for rule in self.rules:
            if rule.only in {None, kind} and rule.left != 0:
                rule.left = None if rule.left is None else rule.left - 1
                return rule.fault
        return None


@dataclass(repr=False)
class Service:
    """A running service: where it is, what it was asked, what is wrong with it."""

    answer: Callable[[Request], "Answer | Fault"]
    kind: Callable[[Request], str] = lambda request: request.target
    """What `only` of a fault is compared with."""
    faults: Faults = field(default_factory=Faults)
    server: RawServer | None = None
    broken: list[Exception] = field(default_factory=list[Exception])

    @property
    def url(self) -> str:
        assert self.server is not None
        return self.server.url("")

    @property
    def requests(self) -> list[Request]:
        assert self.server is not None
        return self.server.requests

    async def respond(self, request: Request, writer: asyncio.StreamWriter) -> None:
        try:
            await self._respond(request, writer)
        except (ConnectionError, asyncio.CancelledError):
            raise  # the caller has gone, or the service ends
        except Exception as error:
            self.broken.append(error)  # the test's thread raises it in the end
            raise

    async def _respond(self, request: Request, writer: asyncio.StreamWriter) -> None:
        fault = self.faults.of(self.kind(request))
        answer = None if fault else self.answer(request)
        if isinstance(answer, Answer):
            whole = answer.encoded()
            body = 0 if request.method == "HEAD" else len(answer.body)
            writer.write(whole[: len(whole) - len(answer.body) + body])
            return await writer.drain()
        for piece in (fault or answer or hang_up())(request, lambda: self._honest(request)):
            if isinstance(piece, bytes):
                writer.write(piece)
                await writer.drain()
            else:
                await asyncio.sleep(piece)
        writer.close()
        return None

    def _honest(self, request: Request) -> Answer:
        answer = self.answer(request)
        assert isinstance(answer, Answer), "it has no honest answer"
        return answer


@asynccontextmanager
async def _listening(service: Service) -> AsyncGenerator[None]:
    async with serving(service.respond) as server:
        service.server = server
        yield


@contextmanager
def running(service: Service) -> Generator[None]:
    """On a free port of 127.0.0.1 until the end of the block, whatever loop the test has."""
    ready, over = threading.Event(), threading.Event()

    async def live() -> None:
        async with _listening(service):
            ready.set()
            await asyncio.to_thread(over.wait)

    thread = threading.Thread(target=lambda: asyncio.run(live()), daemon=True)
    thread.start()
    assert ready.wait(HUNG_S), "the loopback service did not start"
    try:
        yield
    finally:
        over.set()
        thread.join(HUNG_S)
    if service.broken:
        raise service.broken[0]
