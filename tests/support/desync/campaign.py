"""The campaign: every case over one way to the service, and a victim on the same connections.

Ways: straight to the service, or through a real reverse proxy that keeps its connections to the
service alive. After each case the victim's requests follow over the same proxy. What counts:

- refused: the first answer is an error, or the connection ends without one.
- differing: the service and its caller disagree about the requests on the connection. Straight,
  the caller is the sender: the requests that reach the upstream are not those of the case. Behind
  a proxy, a request arrives that the proxy never sent, or one arrives twice, or a body that both
  took is another than the case's.
- leaked: bytes of the victim reach the sender or its upstream, or the sender's reach the victim's
  request or answer.
- disturbed: the victim's request had no answer or a proxy's own 5xx; nothing was overheard.
"""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests.support.desync.cases import HIDDEN_NAME, Case
from tests.support.desync.tenants import ATTACK, SECRET, Tenants
from tests.support.desync.wire import QUIET_S, Answered, Arrived, Exchange, Sender, connected
from tests.support.reverse_proxies import FORWARDED_AS, REVERSE_PROXIES, reverse_proxy

STRAIGHT = "straight"
WAYS = (STRAIGHT, *REVERSE_PROXIES)
PATIENCE_S = 0.25
"""How long an answer is waited for that need not come."""

CERTAIN_S = 30.0
"""How long one is waited for that must."""

_ERROR = 400
_FRAMED_ANYHOW = frozenset({"cl.te", "te.cl", "te.te", "0.cl"})


RESETS_MAX = 3
"""How often a case is sent again whose answer was lost in a reset."""


@dataclass
class Result:
    """What one case did over one way."""

    way: str
    case: Case
    status: int = 0
    statuses: tuple[int, ...] = ()
    closed: bool = False
    arrived: list[Arrived] = field(default_factory=list[Arrived])
    differing: list[str] = field(default_factory=list[str])
    leaked: list[str] = field(default_factory=list[str])
    disturbed: int = 0

    @property
    def refused(self) -> bool:
        return self.status == 0 or self.status >= _ERROR

    def __str__(self) -> str:
        """For people: what is wrong, and the bytes."""
        faults = "; ".join(self.differing + self.leaked + self.broken())
        pieces = " | ".join(repr(_short(piece)) for piece in self.case.pieces)
        return (
            f"{self.way}: {self.case.group}: {self.case.name}: {faults}\n"
            f"    sent {pieces}\n    answers {self.statuses} closed {self.closed}"
        )

    def broken(self) -> list[str]:
        """Our promises that the case breaks, where it was sent straight to the service."""
        if self.way != STRAIGHT:
            return []
        case, found = self.case, list[str]()
        if case.outcome == "served" and self.refused:
            found.append(f"refused with {self.status}")
        if case.outcome == "refused" and not self.refused:
            found.append(f"served with {self.status}")
        # What is sent to a connection that has ended resets it, and may take its last answer along.
        is_reset = not self.status and self.closed and len(case.pieces) > 1
        if case.statuses and self.status not in case.statuses and not is_reset:
            found.append(f"answered {self.status}, not {sorted(case.statuses)}")
        if case.closes and not self.closed:
            found.append("the connection was kept")
        if case.outcome == "served" and len(self.statuses) < case.answers:
            found.append(f"{len(self.statuses)} answers, not {case.answers}")
        return found


def _shown(mark: bytes) -> str:
    return mark[:12].decode("latin-1")


def _short(piece: bytes, limit: int = 1200) -> bytes:
    return piece if len(piece) <= limit else piece[: limit // 2] + b" ... " + piece[-limit // 2 :]


@asynccontextmanager
async def opened(way: str, tenants: Tenants) -> AsyncIterator[int]:
    """The port to send to."""
    if way == STRAIGHT:
        yield tenants.port
        return
    with reverse_proxy(way, [tenants.port]) as [address]:
        yield int(address.rpartition(":")[2])


class Campaign:
    """Cases over ways, one result each."""

    def __init__(self, tenants: Tenants, victims: int = 2) -> None:
        self._tenants, self._victims = tenants, victims
        self._sendings = self._victim_requests = 0
        self._by_tag: dict[bytes, Result] = {}
        self._by_victim: dict[int, Result] = {}
        self.results: list[Result] = []
        self.leaks_of_nobody: list[str] = []
        """What came where it must not, and names no request by which."""

    async def run(self, ways: Sequence[str], cases: Sequence[Case], abreast: int = 2) -> None:
        """All cases over all ways, the ways at the same time, and some cases of each."""
        async with asyncio.TaskGroup() as group:
            for way in ways:
                group.create_task(self._over(way, cases, abreast))
        self._blame()

    async def run_over(self, way: str, port: int, cases: Sequence[Case]) -> None:
        """All cases to this port, one after the other; `way` is only its name."""
        await self._some(way, port, cases)
        self._blame()

    async def _over(self, way: str, cases: Sequence[Case], abreast: int) -> None:
        async with opened(way, self._tenants) as port, asyncio.TaskGroup() as group:
            for lane in range(abreast):
                group.create_task(self._some(way, port, cases[lane::abreast]))

    async def _some(self, way: str, port: int, cases: Sequence[Case]) -> None:
        for case in cases:
            result = await self._one(way, port, case)
            for _ in range(RESETS_MAX):
                if not _was_reset(result):
                    break
                result = await self._one(way, port, case)
            self.results.append(result)

    def _blame(self) -> None:
        """What an upstream must not have got is held against the request that it names."""
        for mark, data in self._tenants.hostile_upstream.seen:
            numbers = {int(found) for found in re.findall(SECRET + rb"(\d+)\.", data)}
            said = f"the sender's upstream got {_shown(mark)} in {_short(data)!r}"
            self._hold([self._by_victim[number] for number in numbers], said)
        for mark, data in self._tenants.victim_upstream.seen:
            tags = set(re.findall(ATTACK + rb"\d{6}", data))
            said = f"the victim's upstream got {_shown(mark)} in {_short(data)!r}"
            self._hold([self._by_tag[tag] for tag in tags if tag in self._by_tag], said)

    def _hold(self, results: Sequence[Result], said: str) -> None:
        for result in results:
            result.leaked.append(said)
        if not results:
            self.leaks_of_nobody.append(said)

    async def _one(self, way: str, port: int, case: Case) -> Result:
        self._sendings += 1
        tag = ATTACK + b"%06d" % self._sendings
        case = case.named(self._tenants.hostile.id.encode(), tag)
        result = Result(way, case)
        self._by_tag[tag] = result
        upstream = self._tenants.hostile_upstream
        begun = len(upstream.arrived)
        bare = case.pieces[0].startswith(b"HEAD ")
        async with connected(port) as sender:
            await sender.send(case.pieces, bare=bare)
            got = await self._answers(sender, result, bare=bare)
            await self._victim(port, result)
        for _ in range(self._victims - 1):
            await self._victim(port, result)
        named = tag.decode()
        result.arrived = [one for one in upstream.arrived[begun:] if named in one.target]
        result.status, result.closed = got.status, got.closed
        result.statuses = tuple(one.status for one in got.answers)
        if SECRET in got.raw or b"victim answers" in got.raw:
            result.leaked.append("the sender was answered with what is the victim's")
        result.differing += list(_straight(result) if way == STRAIGHT else _behind(result))
        return result

    @staticmethod
    async def _answers(sender: Sender, result: Result, *, bare: bool) -> Exchange:
        case = result.case
        certain = result.way == STRAIGHT and (case.outcome == "served" or bool(case.statuses))
        patience = CERTAIN_S if certain else PATIENCE_S
        got = await sender.until(case.answers, patience, bare=bare)
        if result.way == STRAIGHT and case.closes and got.answers:
            return await sender.to_the_end(CERTAIN_S, bare=bare)
        if not got.closed:
            await sender.listen(QUIET_S)
        return await sender.until(0, 0, bare=bare)

    async def _victim(self, port: int, result: Result) -> None:
        """One request of the victim, on a connection of its own to the same port."""
        self._victim_requests += 1
        number = self._victim_requests
        self._by_victim[number] = result
        async with connected(port) as sender:
            await sender.send([self._tenants.victims_request(number)])
            got = await sender.to_the_end(CERTAIN_S)
        right = self._tenants.victims_answer(number)
        if ATTACK in got.raw or b"hostile" in got.raw:
            result.leaked.append(f"the victim was answered with what is the sender's: {got.raw!r}")
        elif len(got.answers) == 1 and right in got.answers[0].body:
            return
        elif any(_is_a_verdict(one) for one in got.answers):
            result.leaked.append(f"the victim was answered as another request: {got.raw!r}")
        else:
            result.disturbed += 1


def _was_reset(result: Result) -> bool:
    """Whether a case to be served ended without a byte of an answer, and did nothing it must not.

    Where bytes come behind the last request of a connection, the system may answer them with a
    reset, and with it drop an answer that is not read yet (RFC 9112, section 9.6).
    """
    is_harmless = not result.leaked and not result.differing
    return result.case.outcome == "served" and result.closed and not result.status and is_harmless


def _is_a_verdict(answer: Answered) -> bool:
    """Whether it is an answer to something the victim never sent, and no proxy's own 5xx."""
    return answer.status < 500


def _straight(result: Result) -> Iterable[str]:
    """What reached the upstream is what the case sends, in its order, or a beginning of it."""
    case, arrived = result.case, result.arrived
    bodies = [one.body for one in arrived]
    if any(HIDDEN_NAME in one.target for one in arrived):
        yield "the hidden request was run"
    if case.outcome == "refused":
        if any(one.is_whole for one in arrived):
            yield f"reached the upstream: {[_short(body, 80) for body in bodies]}"
        return
    if not result.refused and tuple(bodies) != case.bodies and case.bodies:
        yield f"bodies {[_short(body, 80) for body in bodies]}"
    if not case.bodies and len(arrived) > 1:
        yield f"{len(arrived)} requests arrived"


def _behind(result: Result) -> Iterable[str]:
    """Every request that arrived is one the proxy has sent, and has sent once."""
    case = result.case
    names = [one.all(FORWARDED_AS) for one in result.arrived]
    if case.group == "connection":  # a case may name the very header the proxy adds
        names = [name for name in names if name]
    if any(len(name) != 1 for name in names):
        yield "a request arrived that the proxy never sent"
    twice = [name for name, count in Counter(n[0] for n in names if n).items() if count > 1]
    if twice:
        yield "one request of the proxy arrived twice"
    served = case.outcome == "served" and not result.refused and not _is_a_tunnel(result)
    bodies = tuple(one.body for one in result.arrived if one.is_whole)
    if served and case.group not in _FRAMED_ANYHOW and bodies[:1] != case.bodies[:1]:
        yield f"bodies {[_short(body, 80) for body in bodies]}"


def _is_a_tunnel(result: Result) -> bool:
    """Whether Envoy takes the case for a WebSocket: it then passes the head on without a coding.

    Envoy answers such a request by itself, with 503, unless the service answers 101 or an error.
    """
    data = b"".join(result.case.pieces).lower()
    wants = b"\r\nupgrade: websocket" in data and b"\r\ntransfer-encoding: chunked" in data
    return result.way == "envoy" and wants


def table(results: Sequence[Result]) -> str:
    """By class and way: tried, refused, differing, leaked."""
    ways = list(dict.fromkeys(result.way for result in results))
    groups = list(dict.fromkeys(result.case.group for result in results))
    lines = ["tried/refused/differing/leaked".ljust(32) + "".join(way.rjust(18) for way in ways)]
    for group in [*groups, "all"]:
        cells: list[str] = []
        for way in ways:
            some = [one for one in results if one.way == way and group in {one.case.group, "all"}]
            counts = (
                len(some),
                sum(one.refused for one in some),
                sum(bool(one.differing) for one in some),
                sum(bool(one.leaked) for one in some),
            )
            cells.append("/".join(map(str, counts)).rjust(18))
        lines.append(group.ljust(32) + "".join(cells))
    disturbed = {way: sum(one.disturbed for one in results if one.way == way) for way in ways}
    lines.append(
        "victim without an answer".ljust(32) + "".join(str(n).rjust(18) for n in disturbed.values())
    )
    return "\n".join(lines)
