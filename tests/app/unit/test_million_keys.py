"""A million keys that a stranger chose: as many entries as the bound, and memory to match.

Each prints the memory it has grown by (`pytest -s`).
"""

import gc
from collections.abc import Callable, Mapping, Sized
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from assay.accounts.allowance import REMEMBERED_MAX as ALLOWANCE_MAX
from assay.accounts.allowance import Allowance
from assay.accounts.logins import REMEMBERED_MAX as NOTES_MAX
from assay.accounts.logins import LoginNotes
from assay.accounts.model import Operator, Plan, Role
from assay.accounts.password_proof import NETWORKS_MAX as QUOTA_MAX
from assay.accounts.password_proof import REMEMBERED_MAX, LoginThrottle, RequestQuota
from assay.analytics.log import WAITING_MAX, CallLog
from assay.analytics.model import CallKind, CallLogEntry
from assay.caller_behaviour.observations import WAITING_MAX as CONDUCT_MAX
from assay.caller_behaviour.observations import ObservationLog
from assay.common.cache import BoundedMap, Cache
from assay.common.costs import BEARERS_MAX, Bearer, Cost, CostLedger
from assay.common.errors import Unavailable
from assay.common.shared_state import ENTRIES_MAX, MemorySharedState
from assay.http1.model import ResponseHead
from assay.http1.response_heads import HEADS_MAX, ResponseHeadCache
from assay.identity.model import Session
from assay.identity.service import Sessions
from assay.net.egress.credentials import NAMES_REMEMBERED, FieldFilter
from assay.registries.model import OnchainAgent, RegistrationFile
from assay.server.rate_limits import CALLERS_MAX, RateLimit
from assay.wrappers.buffers import WRAPPERS_MAX, BufferBudget
from assay.wrappers.matching import FOUND_MAX, RouteRow, RouteTable
from assay.wrappers.response_fields import ResponseFields
from assay.wrappers.stages.limit import CALLERS_MAX as WINDOWS_MAX
from assay.wrappers.stages.limit import LimitStage
from tests.support.fakes.clock import FrozenClock

MILLION = 1_000_000
SOME = 120_000
"""More than the bounds of what waits."""

RSS_MAX_BYTES = 400 * 1024 * 1024
NOW = datetime(2026, 3, 1, tzinfo=UTC)
CLOCK = FrozenClock()


@dataclass(frozen=True)
class Filled:
    """Takes one more key; `held` is everything that grew, and no more than `bound` each."""

    put: Callable[[int], object]
    held: tuple[Sized, ...]
    bound: int


def inside(thing: object, *names: str) -> tuple[Sized, ...]:
    return tuple(getattr(thing, name) for name in names)


def address(number: int) -> str:
    return f"2001:db8:{number >> 16:x}:{number & 65535:x}::1"


def bounded_map() -> Filled:
    kept: BoundedMap[int, int] = BoundedMap(1000)
    return Filled(lambda n: kept.put(n, n), (kept,), 1000)


def weighed_map() -> Filled:
    """As agents are kept: by the size of their registration files."""
    agent = OnchainAgent(
        cast("Any", None), "7", "0x", None, "", RegistrationFile(size_bytes=256 * 1024), None
    )
    kept: BoundedMap[int, OnchainAgent] = BoundedMap(1000, lambda one: one.weight)
    return Filled(lambda n: kept.put(n, agent), (kept,), 1000 // 65)


def rate_limit() -> Filled:
    limit = RateLimit(60, CLOCK)
    return Filled(lambda n: limit.take(address(n)), inside(limit, "_full_at_s"), CALLERS_MAX)


def wrapper_limit() -> Filled:
    limit, config = LimitStage(CLOCK), cast("Any", SimpleNamespace(id="w", rate_limit=5))
    return Filled(lambda n: limit.count(config, address(n)), inside(limit, "_windows"), WINDOWS_MAX)


def login_throttle() -> Filled:
    throttle = LoginThrottle(CLOCK)
    return Filled(
        lambda n: throttle.begin(f"{n}@example.com", address(n)),
        inside(throttle._pairs, "_known"),
        REMEMBERED_MAX,
    )


def login_notes() -> Filled:
    notes = LoginNotes(CLOCK)
    return Filled(
        lambda n: notes.count("login.failed", f"{n}", address(n)),
        inside(notes, "_counts"),
        NOTES_MAX,
    )


def request_quota() -> Filled:
    quota = RequestQuota(CLOCK)
    return Filled(lambda n: quota.require(address(n)), inside(quota, "_asked"), QUOTA_MAX)


def costs() -> Filled:
    ledger = CostLedger(CLOCK)
    return Filled(
        lambda n: ledger.charge(Cost.ROWS, 1, Bearer(f"address {n}")), (ledger,), BEARERS_MAX
    )


def conduct() -> Filled:
    log = ObservationLog(cast("Any", None))

    def put(number: int) -> None:
        kind = CallKind("op", f"w{number}", "GET", "/", payer=f"0x{number:040x}")
        log.note(CallLogEntry(kind, NOW, "r", "127.0.0.1", 429, "rate_limit_exceeded", 1, 0))

    return Filled(put, inside(log, "_recent", "_waiting"), CONDUCT_MAX)


def wrappers_of_one_address() -> Filled:
    log = ObservationLog(cast("Any", None))

    def put(number: int) -> None:
        kind = CallKind("op", f"w{number}", "GET", "/", payer="0x" + "1" * 40)
        log.note(CallLogEntry(kind, NOW, "r", "127.0.0.1", 429, "rate_limit_exceeded", 1, 0))

    put(0)
    recent = next(iter(cast("Any", log)._recent.values()))
    return Filled(put, (recent.limited_at,), 16)


def call_log() -> Filled:
    log, kind = CallLog(cast("Any", None)), CallKind("op", "w", "GET", "/")
    return Filled(
        lambda n: log.add(CallLogEntry(kind, NOW, f"{n}", address(n), 200, "forwarded", 1, 0)),
        inside(log, "_waiting"),
        WAITING_MAX,
    )


def sizes() -> Filled:
    held = BufferBudget(1024)
    return Filled(lambda n: held.learn(f"w{n}", n), inside(held, "_sizes"), WRAPPERS_MAX)


def paths() -> Filled:
    table = RouteTable([RouteRow("GET", "/shop/*", 1)])
    return Filled(
        lambda n: table.match("GET", f"/shop/{n}" + "x" * (n % 2000)),
        inside(table, "_found"),
        FOUND_MAX,
    )


def header_names() -> Filled:
    names = FieldFilter(frozenset(), ())
    return Filled(
        lambda n: names.passes(b"x-%d" % n + b"y" * (n % 2000)),
        inside(names, "_known"),
        NAMES_REMEMBERED,
    )


def answered_names() -> Filled:
    fields = ResponseFields()
    return Filled(
        lambda n: fields.passes(b"x-%d" % n + b"y" * (n % 2000)),
        inside(fields, "_known"),
        NAMES_REMEMBERED,
    )


def upstream_heads() -> Filled:
    heads = ResponseHeadCache()

    def put(number: int) -> None:
        lines = (("content-length", "0"), ("x-n", f"{number}"))
        raw = "".join(f"{name}: {value}\r\n" for name, value in lines)
        head = ResponseHead(200, tuple((n.encode(), v.encode()) for n, v in lines))
        heads.remember(f"HTTP/1.1 200 OK\r\n{raw}\r\n".encode(), head)

    return Filled(put, inside(heads, "_known"), HEADS_MAX)


FILLS: Mapping[str, Callable[[], Filled]] = {
    fill.__name__: fill
    for fill in (
        *(bounded_map, weighed_map, rate_limit, wrapper_limit, login_throttle, login_notes, costs),
        request_quota,
        *(
            conduct,
            wrappers_of_one_address,
            call_log,
            sizes,
            paths,
            header_names,
            answered_names,
            upstream_heads,
        ),
    )
}


def rss_bytes() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * 4096


def fill(name: str, keys: int | None = None) -> None:
    """With so many keys, or a tenth more than the bound."""
    before = rss_bytes()
    filled = FILLS[name]()
    count = keys or filled.bound * 11 // 10 + 5_000
    for number in range(count):
        filled.put(number)
    assert all(0 < len(one) <= filled.bound for one in filled.held)
    grown = rss_bytes() - before
    print(f"\n{name}: {count:,} keys, {grown / 2**20:.0f} MiB")  # noqa: T201
    assert grown < RSS_MAX_BYTES


@pytest.mark.slow
@pytest.mark.parametrize("name", FILLS)
def test_keys_beyond_the_bound_are_not_kept(name: str) -> None:
    fill(name)


@pytest.mark.long
@pytest.mark.parametrize("name", FILLS)
def test_a_million_keys_are_not_kept(name: str) -> None:
    fill(name, MILLION)


async def load_cache(keys: int) -> None:
    cache: Cache[int] = Cache(CLOCK, 60.0, 1000)

    async def load() -> int:
        return 1

    for number in range(keys):
        await cache.get(f"{number}", load)
    assert len(cache) == 1000


async def confirm_sessions(keys: int) -> None:
    class Tokens:
        def read(self, token: str, now: datetime) -> Session:
            return Session(token, "0x1", now.replace(year=now.year + 1), token)

    state = MemorySharedState(CLOCK)
    sessions = Sessions(cast("Any", Tokens()), state, CLOCK)
    for number in range(keys):
        assert await sessions.check("0x1", f"{number}")
    (held,) = inside(sessions, "_confirmed")
    assert len(held) == 100_000


async def shared_state(keys: int) -> None:
    """It refuses: forgetting would let a used challenge be used again."""
    state, refused = MemorySharedState(CLOCK), 0
    for number in range(keys):
        try:
            await state.put_if_absent(f"{number}", "1", 300)
        except Unavailable:
            refused += 1
    assert refused == keys - ENTRIES_MAX
    assert all(len(one) <= 2 * ENTRIES_MAX for one in inside(state, "_entries", "_ends"))


async def allowances(keys: int) -> None:
    class Store:
        async def used(self, operator_id: str, month: str) -> int:
            del operator_id, month
            return 0

        async def add(self, counts: Mapping[tuple[str, str], int]) -> Mapping[tuple[str, str], int]:
            return dict(counts)

    allowance = Allowance(cast("Any", Store()), CLOCK, "https://example.com")
    one = Operator(
        "0", "e", "n", Role.OPERATOR, Plan.FREE, cast("Any", 0), created_at=NOW, updated_at=NOW
    )
    for number in range(keys):
        await allowance.reserve(replace(one, id=f"{number}"))
        if number % 10_000 == 0:
            await allowance.flush()
    await allowance.flush()
    assert all(len(one) <= ALLOWANCE_MAX for one in inside(allowance, "_written", "_unwritten"))


ASYNC = (load_cache, confirm_sessions, shared_state, allowances)


@pytest.mark.slow
@pytest.mark.parametrize("work", ASYNC, ids=lambda work: work.__name__)
async def test_keys_beyond_the_bound_are_not_kept_by_what_waits(work: Any) -> None:
    await work(SOME)


@pytest.mark.long
@pytest.mark.parametrize("work", ASYNC, ids=lambda work: work.__name__)
async def test_a_million_keys_are_not_kept_by_what_waits(work: Any) -> None:
    before = rss_bytes()
    await work(MILLION)
    assert rss_bytes() - before < RSS_MAX_BYTES
