"""Visits that look like customers' calls: when they may be made, and how they are sent.

Source: evidence.md#announced-and-unannounced-visits; ADR 0026.
"""

import hashlib
import json
import math
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from random import Random
from secrets import SystemRandom
from typing import Final, Literal, Protocol

from assay.common.clock import Clock
from assay.common.errors import Unavailable
from assay.common.json import JsonObject
from assay.common.shared_state import SharedState
from assay.http1.model import Target
from assay.net.egress.consent import origin_of
from assay.net.egress.ports import EgressClient
from assay.net.egress.url import EgressPolicy, parse_target
from assay.probing.consent import refused_prefixes
from assay.probing.ports import AgentDialers, BudgetExhausted, Probe, Severity
from assay.probing.session import VisitHttp
from assay.registries.model import Subject

ROBOTS_KEPT_S = 86_400.0
"""How long robots.txt, as read by an announced visit, is valid.
Source: evidence.md#permission-to-visit."""

PAUSE_S_MAX = 8.0
"""Longest pause between two requests of a visit."""

_AT_ONCE: Final = 0.2
_HURRIED: Final = 0.3
"""Share of requests, and of visits, that follow one another without a pause."""

ROBOTS_REQUESTS_MAX, ROBOTS_S = 6, 15.0
"""Limits for reading robots.txt of an agent's sites."""

IN_A_ROW: Final = 2
"""Visits by which one kind may be ahead of the other: a lack of unannounced ones is made up for at
once, and announced ones read control of the agent again, regardless of chance."""

_VALUE_CHARS_MAX = 4_000
_ANYTHING: Final = ("/",)

Label = Literal["announced", "unannounced", "unlabelled"]

ANNOUNCED_ONLY: Final = frozenset(
    {
        "a2a_jsonrpc_errors",
        "a2a_unknown_task",
        "deep_json_survived",
        "domain_binding",
        "honest_status",
        "http_malformed_json",
        "http_oversized_body",
        "http_wrong_method",
        "http_wrong_type",
        "mcp_bad_arguments_refused",
        "mcp_unknown_tool_refused",
        "no_bombs",
        "no_downgrade",
        "no_leaked_internals",
        "odd_json_survived",
        "ssrf_bait",
        "strict_transport",
        "x402_garbage_refused",
    }
)
"""Probes that send what no customer does: malformed, oversized, guessed, or naming us."""

ANNOUNCED_MORE: Final = frozenset({"no_leaked_secrets"})
"""Probes that do more in announced visits: unannounced ones alone cannot undo their findings."""

ASKED_SHARE: Final = 0.7
"""Probability that a probe is part of an unannounced visit: a customer does not ask everything in
one order; over the visits of a week each is included. Possibly critical probes always are: the next
visits, and not only those of a week, must find an agent that turns bad."""


def some_unannounced(probes: Mapping[str, Probe], nonce: str) -> dict[str, Probe]:
    """Return the probes of one unannounced visit, in their order."""
    chance = Random(f"unannounced {nonce}")  # noqa: S311 - the nonce is the secret, kept for replay
    ordinary = [name for name in sorted(probes) if name not in ANNOUNCED_ONLY]
    drawn = {name: chance.random() < ASKED_SHARE for name in ordinary}
    kept = [n for n in ordinary if drawn[n] or probes[n].severity is Severity.CRITICAL]
    chance.shuffle(kept)
    return {name: probes[name] for name in kept}


_scheduled: ContextVar[int | None] = ContextVar("assay_scheduled_visit", default=None)
# Not an argument: between the scheduler and a visit is the evaluator, which serves gates too.


@contextmanager
def scheduled_visits(announced: int = 0) -> Generator[None]:
    """Allow visits inside the block to be unannounced: the scheduler timed them.

    `announced` is how many of the agent's earlier ones were announced, less those that were not.
    """
    token = _scheduled.set(announced)
    try:
        yield
    finally:
        _scheduled.reset(token)


class ProvenControl(Protocol):
    """Results of evaluations about control of an agent's services."""

    async def services(self, subject_key: str) -> frozenset[str]:
        """Return the declared addresses with proven and undisputed control.

        Raises `Unavailable`.
        """
        ...


class Seeds(Protocol):
    """Stores commitments to the seeds of visits when the visits start."""

    async def keep(self, subject_key: str, commitment: str) -> None:
        """Store a commitment. Raises `Unavailable`."""
        ...

    async def since(self, commitments: Sequence[str]) -> dict[str, datetime]:
        """Return when each was stored; missing ones are absent. Raises `Unavailable`."""
        ...


@dataclass(frozen=True, slots=True)
class Manner:
    """How a visit is made."""

    label: Label
    http: EgressClient
    dialers: AgentDialers
    prompts: tuple[str, ...]
    pause_s: Callable[[], float] = lambda: 0.0
    """Draws how long the visit waits before its next request."""
    source: str = ""
    """Identifies the source address of an unannounced visit."""

    @property
    def row(self) -> JsonObject:
        """Return the visit's row of the evidence."""
        return {"label": self.label, **({"source": self.source} if self.source else {})}


def pauses(median_s: float, chance: Random) -> Callable[[], float]:
    """Return the pauses of one visit, like those of programs that think between calls."""
    hurried = chance.random() < _HURRIED
    mu = math.log(max(1e-9, median_s * chance.uniform(0.5, 1.8)))

    def pause_s() -> float:
        if not median_s or hurried or chance.random() < _AT_ONCE:
            return 0.0
        return min(PAUSE_S_MAX, chance.lognormvariate(mu, 0.8))

    return pause_s


class UnannouncedVisits:
    """Decides which scheduled visits go unannounced, and from which address."""

    def __init__(  # noqa: PLR0913, PLR0917 - what such a visit needs
        self,
        state: SharedState,
        control: ProvenControl,
        policy: EgressPolicy,
        ways: Sequence[EgressClient],
        direct: EgressClient,
        dialers: AgentDialers,
        prompts: Sequence[str],
        chance: Callable[[], float] | None = None,
        seeds: Seeds | None = None,
        *,
        pause_s: float = 0.0,
    ) -> None:
        """Create it; `ways` are those through the operator's proxies.

        Without any, visits are unlabelled. `pause_s` is the median pause between two requests.
        """
        self._state = state
        self._control = control
        self._policy = policy
        self._ways = ways
        self._direct = direct
        self._dialers = dialers
        self._prompts = tuple(prompts)
        self._chance = chance or SystemRandom().random
        self._pause_s = pause_s
        self._seeds = seeds

    async def begin(self, subject: Subject, nonce: str) -> None:
        """Store the commitment to a visit's seed. Never raises: `audit` reports missing ones."""
        if self._seeds is not None:
            with suppress(Unavailable):
                await self._seeds.keep(subject.key, commitment(nonce))

    async def plan(self, subject: Subject, endpoints: Sequence[str]) -> Manner | None:
        """Return how this visit is made; None is announced.

        Half of the scheduled visits to agents with proven control go unannounced, if an announced
        request read their robots.txt within a day. Never raises.
        """
        if not endpoints or not self._is_turn():
            return None
        try:
            proven = await self._control.services(subject.key)
            for endpoint in endpoints:
                if endpoint not in proven or not await self._known_open(endpoint):
                    return None
        except Unavailable:
            return None
        pause_s = pauses(self._pause_s, SystemRandom())
        if not self._ways:
            return Manner("unlabelled", self._direct, self._dialers, self._prompts, pause_s)
        number = int(self._chance() * len(self._ways)) % len(self._ways)
        way = self._ways[number]
        source = f"way {number}"
        return Manner("unannounced", way, self._dialers, self._prompts, pause_s, source)

    def _is_turn(self) -> bool:
        announced = _scheduled.get()
        if announced is None or announced <= -IN_A_ROW:
            return False
        return announced > 0 or self._chance() >= 1 / 2

    async def read_robots(self, endpoints: Sequence[str], clock: Clock) -> None:
        """Read robots.txt of sites, under our name, and store it. Never raises."""
        http = VisitHttp(self._direct, clock, ROBOTS_REQUESTS_MAX, ROBOTS_S)
        for endpoint in endpoints:
            try:
                refused = await refused_prefixes(endpoint, http)
            except BudgetExhausted:
                return
            if refused is not None:
                await self.keep_robots(endpoint, refused)

    async def may_visit(self, endpoint: str) -> bool | None:
        """Return whether robots.txt allows the address; None if none was read within a day.

        Never raises.
        """
        try:
            return await self._known_open(endpoint)
        except Unavailable:
            return None

    async def _known_open(self, endpoint: str) -> bool | None:
        target = parse_target(endpoint, self._policy)
        if not isinstance(target, Target):
            return False
        kept = await self._state.get(_key(origin_of(target)))
        if kept is None:
            return None
        return not any(target.path_and_query.startswith(prefix) for prefix in json.loads(kept))

    async def keep_robots(self, endpoint: str, prefixes: Sequence[str]) -> None:
        """Store what robots.txt forbids us, as read by an announced visit. Never raises."""
        target = parse_target(endpoint, self._policy)
        text = json.dumps(list(prefixes))
        if isinstance(target, Target):
            kept = text if len(text) <= _VALUE_CHARS_MAX else json.dumps(_ANYTHING)
            try:
                await self._state.put(_key(origin_of(target)), kept, ROBOTS_KEPT_S)
            except Unavailable:
                return  # Then visits stay announced.


def commitment(nonce: str) -> str:
    """Return what is stored when a visit starts, so that its seed cannot be chosen later."""
    return hashlib.sha256(f"assay.visit.v1/{nonce}".encode()).hexdigest()


def _key(origin: str) -> str:
    return f"robots:{hashlib.sha256(origin.encode()).hexdigest()}"
