"""A million keys of strangers at the services that remember by them: their bounds, and memory.

Each prints the memory it has grown by (`pytest -s`). With the clock standing still: nothing is
forgotten for its age.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence, Sized
from dataclasses import dataclass
from datetime import datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from assay.accounts.api_keys import API_KEY_PREFIX, REFUSED_MAX, ApiKeys, KeyTags
from assay.accounts.model import ApiKey, InvalidCredentials, Operator
from assay.analytics.rollup import RollupTally
from assay.analytics.store_rollups import RollupWriter
from assay.common.quota_lease import KEYS_MAX, Grant, QuotaLease, WindowRequest
from assay.evaluation.model import Evaluation, Evidence, SignalName, SignalResult, SignalScore
from assay.evaluation.scoring import DEFAULT_WEIGHTS, ScoringPolicy, tiers_from
from assay.gate.model import Decision, GateInput
from assay.gate.routes import Renderer
from assay.gate.service import Asker, Gate, GateCaller, GateDependencies
from assay.registries.model import Subject
from assay.wrappers.fast_path import REPEATS_MAX, ParsedRequest, ParsedRequestCache
from assay.wrappers.model import WrapperNotFound
from assay.wrappers.route_table import REMEMBERED_BYTES, ROW_BYTES, Routes
from tests.app.unit.test_million_keys import MILLION, NOW, RSS_MAX_BYTES, inside, rss_bytes
from tests.support.fakes.chain import NETWORK
from tests.support.fakes.clock import FrozenClock

MORE = 50_000
"""Keys beyond a bound where a million would take minutes."""

TIERS = tiers_from()
BEHAVED = SignalResult(
    SignalName.SANDBOX, Evidence({"seen": 50}), SignalScore(50.0, 1.0, ("It answers.",))
)

Put = Callable[[int], Awaitable[object]]


@dataclass(frozen=True)
class Filled:
    """Takes one more key; `held` is everything that grew, each with its bound."""

    put: Put
    held: Sequence[tuple[Sized, int]]
    keys: int = MILLION


class Lending:
    """A shared count that gives one unit to whoever asks."""

    async def ask(self, asks: Sequence[WindowRequest]) -> Sequence[Grant]:
        return [Grant(units=max(2, ask.want), left=5, reset_s=60.0, second=1) for ask in asks]

    async def check(self) -> None:
        return


def quota_lease() -> Filled:
    made = QuotaLease(Lending(), FrozenClock(), lambda _: None)
    slices, ending, asking = inside(made, "_slices", "_ending", "_asking")
    waiting: list[asyncio.Task[object]] = []

    async def put(number: int) -> None:
        waiting.append(asyncio.get_running_loop().create_task(made.take(f"a {number}", 60)))
        if len(waiting) == 1_000:
            await asyncio.sleep(0)
            await made.round()
            for one in waiting:
                await one
            waiting.clear()

    return Filled(put, ((slices, KEYS_MAX), (ending, KEYS_MAX), (asking, KEYS_MAX)))


def leases_nobody_answers() -> Filled:
    """The shared count hangs: whoever waits goes away, and his question stays."""
    made = QuotaLease(Lending(), FrozenClock(), lambda _: None)
    (asking,) = inside(made, "_asking")

    async def put(number: int) -> None:
        if number < KEYS_MAX:
            taking = asyncio.get_running_loop().create_task(made.take(f"a {number}", 60))
            await asyncio.sleep(0)
            taking.cancel()
        else:
            assert await made.take(f"a {number}", 60) is None

    return Filled(put, ((asking, KEYS_MAX),), KEYS_MAX + MORE)


def routes() -> Filled:
    """The operator in a wrapper's address is any text."""

    class Store:
        async def active(self, operator_id: str) -> Sequence[Any]:
            del operator_id
            return ()

    endpoints = cast("Any", SimpleNamespace())
    made = Routes(cast("Any", Store()), endpoints, cast("Any", None), FrozenClock())

    async def put(number: int) -> None:
        with pytest.raises(WrapperNotFound):
            await made.find(f"operator-{number}", "GET", "/")

    (memory,) = inside(made, "_memory")
    return Filled(put, ((memory, REMEMBERED_BYTES // ROW_BYTES),))


class Keys:
    """A store that knows every key, or none."""

    def __init__(self, *, known: bool) -> None:
        self.known = known

    async def find_by_hash(self, key_hash: str) -> ApiKey | None:
        found = ApiKey(key_hash, "op", "p", None, revoked=False, last_used=None, created_at=NOW)
        return found if self.known else None

    async def find(self, operator_id: str) -> Operator:
        return cast("Any", SimpleNamespace(id=operator_id, is_suspended=False))

    async def touch(self, last_used: Mapping[str, datetime]) -> None:
        del last_used


def api_keys_that_are_guessed() -> Filled:
    store = cast("Any", Keys(known=False))
    tags = KeyTags(("secret",))
    made = ApiKeys(store, store, FrozenClock(), tags)

    async def put(number: int) -> None:
        with pytest.raises(InvalidCredentials):
            await made.authenticate(f"{API_KEY_PREFIX}{number}")

    memory, last_used = inside(made, "_memory", "_last_used")
    (refused,) = inside(cast("Any", made)._refused, "_refused")
    return Filled(put, ((memory, 0), (last_used, 0), (refused, REFUSED_MAX)))


def api_keys_that_hold() -> Filled:
    """Keys of the store: as many as accounts have, which sign-up bounds. Flushed as it is run."""
    store = cast("Any", Keys(known=True))
    tags = KeyTags(("secret",))
    made = ApiKeys(store, store, FrozenClock(), tags)

    async def put(number: int) -> None:
        await made.authenticate(f"{API_KEY_PREFIX}{number}")
        if number % 1000 == 0:
            await made.flush_last_used()

    (memory,) = inside(made, "_memory")
    (known,) = inside(tags, "_known")
    return Filled(put, ((memory, 100_000), (known, 100_000)))


def rollup_writer() -> Filled:
    made = RollupWriter("sqlite")

    async def put(number: int) -> None:
        tally = RollupTally()
        tally.see(("operator", f"0x{number:040x}"), number, None)
        made.written(tally)

    (known,) = inside(made, "_known")
    return Filled(put, ((known, 200_000),))


def repeats() -> Filled:
    made = ParsedRequestCache()
    (known,) = inside(made, "_known")

    async def put(number: int) -> None:
        data = b"GET /wrap/op/%d HTTP/1.1\r\nhost: a\r\n\r\n" % number
        repeat = ParsedRequest(cast("Any", None), ((b"host", b"a"),), None, keep_alive=True)
        made.remember(data, repeat)
        assert made.find(data) is repeat

    return Filled(put, ((known, REPEATS_MAX),))


def evaluation(address: str) -> Evaluation:
    grade = TIERS.grade(50.0)
    return Evaluation(
        id=address,
        subject_key=f"key/{address}",
        chain="n",
        agent_id=address,
        wallet=address,
        collected=(BEHAVED,),
        unavailable={},
        score=50.0,
        grade=grade,
        evaluated_at=FrozenClock().now(),
        rung=0,
    )


class Known:
    """Subjects and evaluations of every key agent."""

    async def find(self, network: Any, agent_id: str) -> Subject:
        return Subject(network, agent_id, agent_id, None)

    def reader(self, network: Any) -> "Known":
        del network
        return self

    async def fetch_agents_of(self, network: Any, address: str) -> tuple[()]:
        del network, address
        return ()

    async def newest(self, key: str, since: datetime) -> Evaluation:
        del since
        return evaluation(key.removeprefix("key/"))

    async def with_personhood(self, subject: Subject, found: Evaluation) -> Evaluation:
        del subject
        return found


def gatekeeper() -> Gate:
    known = cast("Any", Known())
    rules = ScoringPolicy(DEFAULT_WEIGHTS, TIERS)
    needs = GateDependencies(
        *(known, known, known, cast("Any", None), rules, frozenset[SignalName]()),
        "",
        10.0,
        FrozenClock(),
    )
    return Gate(needs)


def gate_memory() -> Filled:
    made = gatekeeper()

    async def put(number: int) -> None:
        await made.assess(NETWORK, f"0x{number:040x}", GateInput(), Asker("op"))

    (memory,) = inside(made, "_memory")
    return Filled(put, ((memory, 50_000),), 50_000 + MORE)


def gate_answers() -> Filled:
    """As the lane keeps them: each has its token and its body."""
    made = gatekeeper()

    def issue(*told: object) -> str:
        del told
        return "t" * 500

    tokens = SimpleNamespace(issue=issue)
    renderer = Renderer(cast("Any", tokens), FrozenClock())

    async def put(number: int) -> None:
        address = f"0x{number:040x}"
        decision: Decision = await made.assess(NETWORK, address, GateInput(), Asker("op"))
        caller = GateCaller(cast("Any", SimpleNamespace(id="op")), address, proven=True)
        assert decision.cached
        renderer.render(decision, caller, GateInput())

    (answers,) = inside(renderer, "_answers")
    return Filled(put, ((answers, 20_000),), 20_000 + MORE)


FILLS = {
    fill.__name__: fill
    for fill in (
        *(
            quota_lease,
            leases_nobody_answers,
            routes,
            api_keys_that_are_guessed,
            api_keys_that_hold,
        ),
        *(rollup_writer, repeats, gate_memory, gate_answers),
    )
}


async def fill(name: str, keys: int | None) -> None:
    before = rss_bytes()
    filled = FILLS[name]()
    bound = max(bound for _, bound in filled.held)
    count = min(keys or bound * 11 // 10 + 5_000, filled.keys)
    for number in range(count):
        await filled.put(number)
    for held, most in filled.held:
        assert len(held) <= most
    grown = rss_bytes() - before
    print(f"\n{name}: {count:,} keys, {grown / 2**20:.0f} MiB")  # noqa: T201
    assert grown < RSS_MAX_BYTES


SLOW = {"gate_answers", "gate_memory", "leases_nobody_answers", "quota_lease", "routes"}
"""Take minutes together with their own bounds."""


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in FILLS if name not in SLOW])
async def test_services_keep_no_keys_beyond_their_bounds(name: str) -> None:
    await fill(name, None)


async def test_a_gate_keeps_no_evaluation_beyond_its_bound() -> None:
    """With a tenth of its own bound, which the long suite fills."""
    made = gatekeeper()
    (memory,) = inside(made, "_memory")
    cast("Any", memory).weight_max = 5_000
    for number in range(6_000):
        await made.assess(NETWORK, f"0x{number:040x}", GateInput(), Asker("op"))
    assert 0 < len(memory) <= 5_000


@pytest.mark.long
@pytest.mark.parametrize("name", FILLS)
async def test_services_do_not_keep_a_million_keys(name: str) -> None:
    await fill(name, MILLION)
