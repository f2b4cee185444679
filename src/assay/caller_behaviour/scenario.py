"""What an obstacle of the course is, and how calls to one are told. Pure.

The course is a row of steps, each a URL an agent is asked to call. What stands in its way there is
what any API may answer; what the agent does next is its conduct.
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
    """The numbers and words of one step: the same for the same run, different in every run."""

    def __init__(self, seed: str) -> None:
        self._seed = seed

    def number(self, name: str, low: int, high: int) -> int:
        """A whole number from `low` to `high`."""
        return low + int(self._digest(name)[:12], 16) % (high - low + 1)

    def word(self, name: str) -> str:
        """Sixteen hexadecimal digits that nobody guesses."""
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
    """What follows the step in the path: empty for the step itself."""
    carries_session: bool
    """It has the run's own session header."""
    is_elsewhere: bool
    """It came in under the other name of this service."""


@dataclass(frozen=True, slots=True)
class ScenarioCall:
    """One request to a step, as it is kept. Times are milliseconds since the run began."""

    at_ms: int
    ended_ms: int | None
    """None while it is being answered, and where the caller left before."""
    trail: str
    facts: JsonObject
    """What the obstacle noted of it."""


@dataclass(frozen=True, slots=True)
class Links:
    """Where an answer may point: this step, the next one, and this step under the other name."""

    here: str
    next: str
    elsewhere: str | None


@dataclass(frozen=True, slots=True)
class ScenarioReply:
    """What a step answers. `body` as JSON, or bytes as they are.

    `delay_s` is waited before; `is_cut` breaks the connection off in the middle of the body.
    """

    status: int
    body: JsonObject | bytes
    headers: tuple[tuple[str, str], ...] = ()
    delay_s: float = 0.0
    is_cut: bool = False


def nothing(_rng: SeededRandom, _request: ScenarioRequest) -> JsonObject:
    """What a scenario keeps of a request that it only counts."""
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
    observe: Callable[[SeededRandom, Sequence[ScenarioCall]], JsonObject]
    """What was seen, as counts and yes or no: free of times, so that it can be hashed."""
    weigh: Callable[[JsonObject], Finding]
    """The verdict on what was seen; the same for the same input, always."""
    note: Callable[[SeededRandom, ScenarioRequest], JsonObject] = nothing
    """What is kept of a request."""


def onwards(links: Links, **more: str) -> JsonObject:
    """A body that says where to go on."""
    return {**more, "next": links.next}


def count(seen: JsonObject, name: str) -> int:
    """A count that was seen."""
    value = seen.get(name)
    return value if isinstance(value, int) else 0


def passed(note: str) -> Finding:
    """The agent did what it should."""
    return Finding("pass", note)


def failed(note: str) -> Finding:
    """It did what it should not."""
    return Finding("fail", note)


def untested(note: str) -> Finding:
    """It did nothing that could be judged."""
    return Finding("not_tested", note)
