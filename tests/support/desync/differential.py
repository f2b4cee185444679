"""How the service frames a stream of requests, compared with nginx, HAProxy and h11.

Three laws. Whenever the service takes a request and another reader takes it too, both frame the
same body and go on at the same byte, if they go on: to close early is no other framing. Whenever
nginx and h11 both refuse a request, so does the service, but for `EXCEPTIONS`. Into which pieces
the bytes are cut makes no difference to it.
"""

import asyncio
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Literal
from urllib.parse import urlsplit

import h11
import httpx2

from tests.support.assay import served
from tests.support.desync.grammar import PREFIX, stream
from tests.support.desync.wire import KeepingUpstream, connected
from tests.support.reverse_proxies import reverse_proxy
from tests.support.shop import NO_CHAIN, PASSWORD

PATIENCE_S = 0.25
CERTAIN_S = 3.0
"""How long a difference is looked at again before it counts as one."""

SETTLE_S = 0.5
"""How long late requests are let arrive, before a stream is read again."""

CUT = "the service, in pieces"
_ERROR = 400
State = Literal["taken", "refused", "waiting", "absent"]


@dataclass(frozen=True)
class Read:
    """One request as a reader sees it: `waiting` for the rest, or `absent` where there is none."""

    state: State
    body: bytes = b""


ABSENT, REFUSED, WAITING = Read("absent"), Read("refused"), Read("waiting")
Reader = Callable[[Sequence[bytes], float], Awaitable[list[Read]]]


def read_by_h11(data: bytes) -> list[Read]:
    """What h11 makes of it, less the empty lines that RFC 9112, section 2.2 has a server ignore."""
    found: list[Read] = []
    while True:
        while data.startswith(b"\r\n"):
            data = data[2:]
        if not data:
            return [*found, ABSENT]
        read, data = _one_by_h11(data)
        found.append(read)
        if read.state != "taken":
            return found


def _one_by_h11(data: bytes) -> tuple[Read, bytes]:
    """One request, answered with 204, and the bytes after it: none where h11 closes."""
    side = h11.Connection(h11.SERVER, max_incomplete_event_size=2**20)
    side.receive_data(data)
    body, method = b"", b""
    while True:
        try:
            event = side.next_event()
        except h11.RemoteProtocolError:
            return REFUSED, b""
        if isinstance(event, h11.Request):
            method = event.method
        elif isinstance(event, h11.Data):
            body += bytes(event.data)
        elif isinstance(event, h11.EndOfMessage):
            break
        else:
            return WAITING, b""
    if method == b"CONNECT":
        return REFUSED, b""
    rest = side.trailing_data[0]
    side.send(h11.Response(status_code=204, headers=[]))
    side.send(h11.EndOfMessage())
    return Read("taken", body), rest if side.our_state is h11.DONE else b""


def reads_from(
    statuses: list[int], bodies: list[bytes], *, closed: bool, pending: bool
) -> list[Read]:
    """What a server made of a stream, from its answers and from what its upstream got."""
    found: list[Read] = []
    arrived = iter(bodies)
    for status in statuses:
        if status >= _ERROR:
            return [*found, REFUSED]
        found.append(Read("taken", next(arrived, b"?")))
    if pending or not closed:
        return [*found, WAITING]
    return [*found, ABSENT if found else REFUSED]


@dataclass(frozen=True)
class Permitted:
    """What the service may take although nginx and h11 refuse it, and why that is harmless."""

    pattern: re.Pattern[bytes]
    why: str


EXCEPTIONS: tuple[Permitted, ...] = ()


@dataclass
class Finding:
    """A stream that breaks a law."""

    number: int
    law: str
    data: bytes
    reads: Mapping[str, list[Read]]

    def __str__(self) -> str:
        lines = [f"stream {self.number}: {self.law}", f"    {self.data!r}"]
        lines += [f"    {name}: {_shown(reads)}" for name, reads in self.reads.items()]
        return "\n".join(lines)


def _shown(reads: list[Read]) -> str:
    return ", ".join(f"{one.state} {one.body!r}" if one.body else one.state for one in reads)


def broken_law(data: bytes, reads: Mapping[str, list[Read]]) -> str:
    """Which law these readings break; empty for none."""
    ours = reads["service"]
    for name, theirs in reads.items():
        said = "" if name == "service" else _first_difference(ours, theirs)
        said = said or (_other_verdict(ours, theirs) if name == CUT else "")
        if said:
            return f"the service and {name} differ: {said}"
    for place, mine in enumerate(ours):
        both = [_at(reads[name], place).state for name in ("nginx", "h11")]
        alone = mine.state == "taken" and both == ["refused", "refused"]
        if alone and not any(one.pattern.search(data) for one in EXCEPTIONS):
            return f"nginx and h11 refuse what the service takes: request {place}"
    return ""


def _first_difference(ours: list[Read], theirs: list[Read]) -> str:
    """Where the two part, if they do not part by a refusal."""
    for place, (mine, other) in enumerate(zip(ours, theirs, strict=False)):
        said = _difference(mine, other)
        if said:
            return f"request {place}: {said}"
        if mine.state != "taken" or other.state != "taken":
            break
    return ""


def _other_verdict(ours: list[Read], cut: list[Read]) -> str:
    """Where the service refuses in one piece what it takes in several, or the other way round."""
    for place, (mine, other) in enumerate(zip(ours, cut, strict=False)):
        if {mine.state, other.state} == {"taken", "refused"}:
            return f"request {place}: {mine.state} whole, {other.state} in pieces"
    return ""


def _at(reads: list[Read], place: int) -> Read:
    """The reading of that request; who has refused an earlier one has never judged it."""
    return reads[place] if place < len(reads) else ABSENT


def _difference(mine: Read, other: Read) -> str:
    if mine.state == other.state == "taken" and mine.body != other.body:
        return "another body"
    if mine.state == "taken" and other.state == "waiting":
        return "taken, where the other one waits for more"
    if mine.state == "waiting" and other.state == "taken":
        return "waiting for more, where the other one has it whole"
    return ""


@dataclass
class Lane:
    """One stream after the other, over upstreams of its own. All readers get the same bytes."""

    prefix: bytes
    readers: dict[str, Reader]


@dataclass
class Outcome:
    """What a run came to."""

    seed: int
    streams: int = 0
    taken: Counter[str] = field(default_factory=Counter[str])
    findings: list[Finding] = field(default_factory=list[Finding])

    def __str__(self) -> str:
        counts = ", ".join(f"{name} {count}" for name, count in sorted(self.taken.items()))
        return (
            f"seed {self.seed}: {self.streams} streams; first request taken by {counts}; "
            f"{len(self.findings)} findings"
        )


class Differential:
    """Streams by number, each read by all four."""

    def __init__(self, lanes: list[Lane], seed: int) -> None:
        self._lanes, self._numbers = lanes, iter(range(10**9))
        self.outcome = Outcome(seed)

    async def run(self, *, seconds: float = 1e9, streams: int = 10**9) -> Outcome:
        """Until the time is over or so many streams are read."""
        deadline = time.monotonic() + seconds

        async def work(lane: Lane) -> None:
            while time.monotonic() < deadline:
                number = next(self._numbers)
                if number >= streams:
                    return
                await self._one(lane, number)

        async with asyncio.TaskGroup() as group:
            for lane in self._lanes:
                group.create_task(work(lane))
        return self.outcome

    async def _one(self, lane: Lane, number: int) -> None:
        data = stream(self.outcome.seed, number).replace(PREFIX, lane.prefix)
        pieces = _cut(data, Random(f"{self.outcome.seed}:{number}:cuts"))
        for patience_s in (PATIENCE_S, CERTAIN_S, CERTAIN_S):
            reads = await _read_by_all(lane, data, pieces, patience_s)
            law = broken_law(data, reads)
            if not law:
                break
            # On a busy machine something may have come late: look again, when all has arrived.
            await asyncio.sleep(SETTLE_S)
        self.outcome.streams += 1
        self.outcome.taken.update(n for n, found in reads.items() if found[0].state == "taken")
        if law:
            self.outcome.findings.append(Finding(number, law, data, reads))


def _cut(data: bytes, rng: Random) -> list[bytes]:
    """The bytes in two to four pieces, cut anywhere or beside the end of a line."""
    near = [at + rng.choice((0, 1, 2)) for at in range(len(data)) if data[at : at + 1] == b"\r"]
    places = {rng.choice(near) if near and rng.random() < 0.5 else rng.randrange(len(data))}
    places |= {rng.choice(near or [1]) for _ in range(rng.choice((0, 1, 2)))}
    edges = [0, *sorted(places - {0, len(data)}), len(data)]
    return [data[edges[at] : edges[at + 1]] for at in range(len(edges) - 1)]


async def _read_by_all(
    lane: Lane, data: bytes, pieces: Sequence[bytes], patience_s: float
) -> dict[str, list[Read]]:
    async with asyncio.TaskGroup() as group:
        tasks = {
            name: group.create_task(_awaited(reader([data], patience_s)))
            for name, reader in lane.readers.items()
        }
    reads = {name: task.result() for name, task in tasks.items()}
    reads[CUT] = await lane.readers["service"](pieces, patience_s)  # its upstream is free by now
    return reads | {"h11": read_by_h11(data)}


async def _awaited(read: Awaitable[list[Read]]) -> list[Read]:
    return await read


def _over(port: int, upstream: KeepingUpstream) -> Reader:
    """A reader that is a server on this port, in front of that upstream."""

    async def read(pieces: Sequence[bytes], patience_s: float) -> list[Read]:
        upstream.arrived.clear()
        async with connected(port) as sender:
            await sender.send(pieces)
            got = await sender.to_the_end(patience_s)
        statuses = [one.status for one in got.answers]
        arrived = list(upstream.arrived)
        bodies = [one.body for one in arrived]
        pending = any(not one.is_whole for one in arrived)
        return reads_from(statuses, bodies, closed=got.closed, pending=pending)

    return read


@asynccontextmanager
async def differential(folder: Path, seed: int, lanes: int = 4) -> AsyncIterator[Differential]:
    """Everything started: the service, nginx and HAProxy, with upstreams for each lane."""
    async with AsyncExitStack() as stack:
        ups = {
            name: [
                await stack.enter_async_context(KeepingUpstream(name, is_mute=True).running())
                for _ in range(lanes)
            ]
            for name in ("service", "nginx", "haproxy")
        }
        server = stack.enter_context(
            served(
                folder,
                NO_CHAIN,
                ASSAY_WRAPPER_PER_MINUTE="100000000",
                ASSAY_WRAPPER_UNREAD_MIB="1000000",
                ASSAY_ANONYMOUS_PER_MINUTE="100000000",
                ASSAY_TRUSTED_PROXIES="127.0.0.0/8",
            )
        )
        operator = await _wrapped(server.address, [up.url for up in ups["service"]])
        port = urlsplit(server.address).port
        assert port is not None
        ports = {
            kind: [
                int(address.rpartition(":")[2])
                for address in stack.enter_context(
                    reverse_proxy(proxy, [up.port for up in ups[kind]])
                )
            ]
            for kind, proxy in (("nginx", "nginx-plain"), ("haproxy", "haproxy"))
        }
        made: list[Lane] = []
        for place in range(lanes):
            prefix = f"/wrap/{operator}/lane{place}/".encode()
            readers = {"service": _over(port, ups["service"][place])}
            for kind in ("nginx", "haproxy"):
                readers[kind] = _over(ports[kind][place], ups[kind][place])
            made.append(Lane(prefix, readers))
        yield Differential(made, seed)


async def _wrapped(address: str, urls: list[str]) -> str:
    """The id of an operator with one free wrapper for each upstream."""
    async with httpx2.AsyncClient(base_url=address, timeout=30, trust_env=False) as http:
        body = {"email": "op@example.com", "password": PASSWORD, "name": "Op"}
        await http.post("/operator/register", json=body)
        del body["name"]
        login = (await http.post("/operator/login", json=body)).json()
        headers = {"authorization": f"Bearer {login['token']}"}
        for place, url in enumerate(urls):
            asked = {"path": f"/lane{place}/*", "method": "*", "pricePerCall": 0, "targetUrl": url}
            answer = await http.post("/operator/endpoints", json=asked, headers=headers)
            assert answer.status_code == 200, answer.text
    return login["operator"]["id"]
