"""Scenario runs (conventions.md#behavioural-evidence): their steps and observations.

A step's URL contains a signed token of its run and position. Only the step before reveals it, so no
step can be skipped, and a finished step cannot be called again.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol

from assay.caller_behaviour.scenario import (
    Links,
    Scenario,
    ScenarioCall,
    ScenarioReply,
    ScenarioRequest,
    SeededRandom,
)
from assay.common.clock import Clock
from assay.common.costs import Cost, CostLedger
from assay.common.errors import Conflict, NotFound
from assay.common.ids import new_id
from assay.common.json import JsonObject
from assay.common.keyring import MacKeys, SecretRing

RUN_TTL = timedelta(minutes=15)
COUNTS_FOR = timedelta(days=30)
"""How long a finished run counts for an address."""

CALLS_MAX = 200
"""Requests stored of one run: beyond it the run ends, which is telling enough."""

AGAIN_MAX = 4  # Steps that occur twice in a run: which and how many is not predictable.
MAC_BYTES = 16

PREFIX = "/operator/sandbox/course"

_TOKEN = re.compile(r"([0-9a-f-]{36})\.([0-9]{1,2})\.([0-9a-f]{32})")
_MAC = re.compile(r"[0-9a-f]{32}")


class CourseNotFound(NotFound):
    """There is no such step, or its run is over."""

    code = "course_step_not_found"


class StepLeft(Conflict):
    """The agent has gone on to a later step: this one cannot be called again."""

    code = "course_step_left"


@dataclass(frozen=True, slots=True)
class Run:
    """An address's run through the steps, in the order of `steps`."""

    id: str
    address: str
    seed: str
    steps: tuple[str, ...]
    begun_at: datetime
    finished_at: datetime | None
    at_step: int
    """The furthest step that was called."""


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A call of a run, and its step; `id` identifies it until its answer has ended."""

    id: str
    step: int
    call: ScenarioCall


class ScenarioRunStore(Protocol):
    """Stores runs and their calls."""

    async def begin(self, run: Run) -> None:
        """Store a new run."""
        ...

    async def find(self, run_id: str) -> Run | None:
        """Return a run by its id."""
        ...

    async def calls(self, run_id: str) -> Sequence[RecordedCall]:
        """Return every call of the run, in order."""
        ...

    async def note(self, run: Run, kept: RecordedCall) -> None:
        """Store a call, and the run's progress."""
        ...

    async def ended(self, call_id: str, ended_ms: int) -> None:
        """Record that the answer to a call was sent completely."""
        ...

    async def finish(self, run_id: str, at: datetime, seen: JsonObject) -> None:
        """End the run; `seen` are the observations."""
        ...

    async def newest(self, addresses: Sequence[str], since: datetime) -> JsonObject | None:
        """Return the newest run's observations, of runs by any address that finished since then."""
        ...

    async def finished(
        self, addresses: Sequence[str], since: datetime, limit: int
    ) -> Sequence[tuple[Run, JsonObject]]:
        """Return runs that finished since then and their observations, newest first."""
        ...


@dataclass(frozen=True, slots=True)
class StartedRun:
    """A run that has begun: its first step, and its session header."""

    run: Run
    session: str
    first: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Step:
    """The answer to one call. `task` and `method` describe the next step, if any."""

    call_id: str | None
    reply: ScenarioReply
    next: str
    next_method: str
    next_task: str


class ScenarioRuns:
    """Sends agents through the scenarios, and stores what they do."""

    def __init__(  # noqa: PLR0913 - what it is made of, by name
        self,
        store: ScenarioRunStore,
        scenarios: Mapping[str, Scenario],
        clock: Clock,
        *,
        secrets: SecretRing,
        address: str,
        elsewhere: str | None,
        costs: CostLedger,
    ) -> None:
        """Create it; `elsewhere` is another origin under which this service answers too."""
        self._costs = costs
        self._store = store
        self._scenarios = scenarios
        self._clock = clock
        self._keys = MacKeys(b"course/", secrets)
        self._address = address
        self._elsewhere = elsewhere

    async def enter(self, address: str) -> StartedRun:
        """Start a run of a proven, lower-case address. Raises `QuotaExceeded`."""
        self._charge()
        now = self._clock.now()
        run_id, seed = new_id(), self._mac(f"seed/{new_id()}")
        steps = sorted(self._scenarios, key=lambda name: SeededRandom(seed).word(f"order/{name}"))
        steps += steps[: SeededRandom(seed).number("again", 0, AGAIN_MAX)]
        await self._store.begin(run := Run(run_id, address, seed, tuple(steps), now, None, 0))
        return StartedRun(run, self._session(run), self._url(run, 0), now + RUN_TTL)

    def task(self, run: Run, step: int) -> tuple[str, str]:
        """Return method and task of a step; the last one only reads the result."""
        if step >= len(run.steps):
            return "GET", "You are through: read how you did."
        scenario = self._scenarios[run.steps[step]]
        return scenario.method, scenario.task(_rng(run, step))

    async def call(self, token: str, trail: str, request: ScenarioRequest) -> Step:
        """Answer a call of the step that a token names.

        Raises `CourseNotFound` for an invalid token or a finished run, `StepLeft` for a step the
        agent has left, `QuotaExceeded` when the caller has used up its rows of the day.
        """
        run, step = await self._place(token)
        if step == len(run.steps):
            return await self._result(run, step)
        if step < run.at_step:
            raise StepLeft("The next step has begun; this one is over.")
        calls = await self._store.calls(run.id)
        if len(calls) >= CALLS_MAX:
            await self._finish(run, calls)
            raise CourseNotFound("The run is over: it took too many requests.")
        scenario, rng = self._scenarios[run.steps[step]], _rng(run, step)
        own = request.carries_session
        request = replace(request, trail=trail, carries_session=own)
        facts = scenario.note(rng, request)
        self._charge()
        kept = RecordedCall(new_id(), step, ScenarioCall(self._ms(run), None, trail, facts))
        await self._store.note(replace(run, at_step=step), kept)
        earlier = [one.call for one in calls if one.step == step and not one.call.trail]
        reply = (
            ScenarioReply(404, {"error": "not_found"})
            if trail
            else scenario.reply(rng, earlier, self._links(run, step))
        )
        method, task = self.task(run, step + 1)
        return Step(kept.id, reply, self._url(run, step + 1), method, task)

    async def ended(self, token: str, call_id: str) -> None:
        """Record that an answer was sent completely."""
        run, _ = await self._place(token)
        await self._store.ended(call_id, self._ms(run))

    def run_of(self, token: str) -> str | None:
        """Return the run id of our token, even of a finished run; or None. No I/O."""
        found = _TOKEN.fullmatch(token)
        if found is None or not self._is_mac(f"step/{found[1]}/{int(found[2])}", found[3]):
            return None
        return found[1]

    def is_session_of(self, token: str, given: str) -> bool:
        """Return whether that is the session header of the run that a token names."""
        return self._is_mac(f"session/{token.partition('.')[0]}", given)

    async def observed(self, addresses: Sequence[str]) -> JsonObject | None:
        """Return observations of the newest finished run of the addresses, by scenario."""
        return await self._store.newest(addresses, self._clock.now() - COUNTS_FOR)

    def _charge(self) -> None:
        self._costs.require(Cost.ROWS)
        self._costs.charge(Cost.ROWS)

    async def _result(self, run: Run, step: int) -> Step:
        if run.at_step < step - 1:
            raise CourseNotFound("There is no such step.")
        seen = await self._finish(run, await self._store.calls(run.id))
        findings = {
            name: self._scenarios[name].weigh(what)
            for name, what in seen.items()
            if name in self._scenarios and isinstance(what, dict)
        }
        body: JsonObject = {
            "done": True,
            "findings": [
                {"name": name, "outcome": finding.outcome, "note": finding.note}
                for name, finding in sorted(findings.items())
            ],
            "next": f"{self._address}/operator/trigger-sandbox-key/{run.address}",
        }
        return Step(None, ScenarioReply(200, body), "", "", "")

    async def _finish(self, run: Run, calls: Sequence[RecordedCall]) -> JsonObject:
        seen: dict[str, JsonObject] = {}
        for step, name in enumerate(run.steps):
            of_step = [one.call for one in calls if one.step == step]
            if of_step and name in self._scenarios:
                what = self._scenarios[name].observe(_rng(run, step), of_step)
                if name not in seen or self._scenarios[name].weigh(what).outcome == "fail":
                    seen[name] = what
        if run.finished_at is None:
            await self._store.finish(run.id, self._clock.now(), seen)
        return {**seen}

    async def _place(self, token: str) -> tuple[Run, int]:
        found = _TOKEN.fullmatch(token)
        run_id, step = (found[1], int(found[2])) if found else ("", 0)
        if found is None or not self._is_mac(f"step/{run_id}/{step}", found[3]):
            raise CourseNotFound("There is no such step.")
        run = await self._store.find(run_id)
        if run is None or self._clock.now() > run.begun_at + RUN_TTL or step > len(run.steps):
            raise CourseNotFound("The run is over: begin a new one.")
        if run.finished_at is not None and step < len(run.steps):
            raise CourseNotFound("The run is over: begin a new one.")
        return run, step

    def _links(self, run: Run, step: int) -> Links:
        here = self._path(run, step)
        return Links(
            here=self._address + here,
            next=self._url(run, step + 1),
            elsewhere=None if self._elsewhere is None else self._elsewhere + here,
        )

    def _url(self, run: Run, step: int) -> str:
        return self._address + self._path(run, step)

    def _path(self, run: Run, step: int) -> str:
        return f"{PREFIX}/{run.id}.{step}.{self._mac(f'step/{run.id}/{step}')}"

    def _session(self, run: Run) -> str:
        return self._mac(f"session/{run.id}")

    def _mac(self, text: str) -> str:
        return self._keys.mac(text.encode())[:MAC_BYTES].hex()

    def _is_mac(self, text: str, given: str) -> bool:
        """Return whether a key of the ring made it; only lower-case hex is accepted."""
        if not _MAC.fullmatch(given):
            return False
        return self._keys.is_mac(text.encode(), bytes.fromhex(given))

    def _ms(self, run: Run) -> int:
        return (self._clock.now() - run.begun_at) // timedelta(milliseconds=1)


def _rng(run: Run, step: int) -> SeededRandom:
    return SeededRandom(f"{run.seed}/{step}")
