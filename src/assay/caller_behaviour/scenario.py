"""The interface of a scenario, and the record of calls to it. Pure.

A run is a series of steps, each a URL an agent is asked to call. The step answers as any API may;
what the agent does next is its behaviour.
Source: checks.md#callers; conventions.md#behavioural-evidence.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from assay.common.json import JsonObject
from assay.probing.ports import Finding, Severity

CONDUCT = "conduct"
"""The family of every finding here."""


class SeededRandom:
    """Random numbers and words of one step: fixed within a run, different in every run."""

    def __init__(self, seed: str) -> None:
        self._seed = seed

    def number(self, name: str, low: int, high: int) -> int:
        """Return a whole number from `low` to `high`."""
        return low + int(self._digest(name)[:12], 16) % (high - low + 1)

    def word(self, name: str) -> str:
        """Return sixteen unguessable hexadecimal digits."""
        return self._digest(name)[:16]

    def _digest(self, name: str) -> str:
        return hashlib.sha256(f"{self._seed}/{name}".encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class ScenarioRequest:
    """A request to a step. Header names are in lower case; the body is cut to a few KiB."""

    method: str
    headers: Mapping[str, str]
    body: bytes
    trail: str
    """The path after the step's own; empty for the step itself."""
    carries_session: bool
    """Whether it has the run's own session header."""
    is_elsewhere: bool
    """Whether it came in under the service's other name."""


@dataclass(frozen=True, slots=True)
class ScenarioCall:
    """The stored record of a request to a step. Times are milliseconds since the run began."""

    at_ms: int
    ended_ms: int | None
    """None while it is being answered, and if the caller disconnected before the end."""
    trail: str
    facts: JsonObject
    """What the scenario recorded of it."""


@dataclass(frozen=True, slots=True)
class Links:
    """Targets of an answer's links: this step, the next one, this step under the other name."""

    here: str
    next: str
    elsewhere: str | None


@dataclass(frozen=True, slots=True)
class ScenarioReply:
    """The answer of a step. `body` is JSON, or raw bytes.

    `delay_s` is waited first; `is_cut` closes the connection in the middle of the body.
    """

    status: int
    body: JsonObject | bytes
    headers: tuple[tuple[str, str], ...] = ()
    delay_s: float = 0.0
    is_cut: bool = False


def _count_calls(_rng: SeededRandom, calls: Sequence[ScenarioCall]) -> JsonObject:
    """Count the calls of a scenario that looks at nothing else."""
    return {"calls": len(calls)}


def nothing(_rng: SeededRandom, _request: ScenarioRequest) -> JsonObject:
    """Return the empty record of a scenario that only counts its requests."""
    return {}


@dataclass(frozen=True, slots=True)
class Scenario:
    """One kind of step: pure functions, so that a run can be judged again from what was kept."""

    name: str
    severity: Severity
    method: str
    """How the step is to be called."""
    task: Callable[[SeededRandom], str]
    """What the agent is to do, in a sentence or two."""
    reply: Callable[[SeededRandom, Sequence[ScenarioCall], Links], ScenarioReply]
    """The response to a request after the earlier ones."""
    weigh: Callable[[JsonObject], Finding]
    """The verdict on what was seen; the same for the same input, always."""
    observe: Callable[[SeededRandom, Sequence[ScenarioCall]], JsonObject] = _count_calls
    """What was seen, as counts and yes or no: free of times, so that it can be hashed."""
    note: Callable[[SeededRandom, ScenarioRequest], JsonObject] = nothing
    """What is kept of a request."""


def always(text: str) -> Callable[[SeededRandom], str]:
    """Return a task that reads the same in every run."""
    return lambda _rng: text


def count_facts(*names: str) -> Callable[[SeededRandom, Sequence[ScenarioCall]], JsonObject]:
    """Return what counts the calls of which each of these facts is true."""
    return lambda _rng, calls: {n: sum(bool(c.facts.get(n)) for c in calls) for n in names}


def calls_at_most(calls: int, *, fault: str, merit: str) -> Callable[[JsonObject], Finding]:
    """Return the verdict of a scenario that fails an agent for more calls than these."""
    return lambda seen: failed(fault) if count(seen, "calls") > calls else passed(merit)


def onwards(links: Links, **more: str) -> JsonObject:
    """Return a body that links to the next step."""
    return {**more, "next": links.next}


def count(seen: JsonObject, name: str) -> int:
    """Return an observed count."""
    value = seen.get(name)
    return value if isinstance(value, int) else 0


def passed(note: str) -> Finding:
    """Return that the agent did what it should."""
    return Finding("pass", note)


def failed(note: str) -> Finding:
    """Return that it did what it should not."""
    return Finding("fail", note)


def untested(note: str) -> Finding:
    """Return that there was nothing to judge."""
    return Finding("not_tested", note)
