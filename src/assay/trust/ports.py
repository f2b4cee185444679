"""What trust needs from outside, and what a signal and a probe are."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import ClassVar, Literal, Protocol

from assay.chains.model import Service
from assay.chains.ports import ChainReader
from assay.egress.consent import origin_of
from assay.egress.ports import SafeHttp, VisitTurns
from assay.egress.url import EgressPolicy, Target, parse_target
from assay.kit.clock import Clock
from assay.kit.json import JsonObject
from assay.kit.slice_runner import Slices
from assay.trust.model import (
    Evaluation,
    EvaluationCompleted,
    Evidence,
    SignalName,
    Snapshot,
    Subject,
    Unavailable,
    Weighed,
)
from assay.trust.sources import Lure, Sources


class EvaluationStore(Protocol):
    """Evaluations with all their evidence, and the chain of snapshots."""

    async def add(self, evaluation: Evaluation, snapshot: Snapshot) -> Snapshot:
        """Store both in one transaction.

        `previous_hash` is set by the store to the `snapshot_hash` of the subject's newest
        snapshot, so that two writers at once still make one chain; returns what was stored.
        """
        ...

    async def newest(self, subject_key: str, since: datetime) -> Evaluation | None:
        """The newest evaluation not older than `since`."""
        ...

    async def newest_snapshot(self, subject_key: str) -> Snapshot | None:
        """The last link of the subject's chain."""
        ...

    async def history(self, after: int, at_most: int) -> Sequence[tuple[int, Evaluation, Snapshot]]:
        """Everything ever evaluated, oldest first, each with its place; those after a place."""
        ...


class SnapshotBlobs(Protocol):
    """Encrypted snapshot data, addressed by content."""

    async def store(self, data: bytes) -> str | None:
        """Encrypt and keep; returns `ipfs://<CIDv1>`, or None when storing is switched off.

        Raises `kit.errors.Unavailable` when the store is there but does not take it.
        """
        ...

    async def load(self, uri: str) -> bytes | None:
        """What was kept under an address, or None where it is not to be had now.

        Raises `ValueError` when what is there is not what was stored.
        """
        ...

    async def remove(self, uri: str) -> None:
        """Remove what was kept under an address, as far as it can be; what is gone stays gone."""
        ...

    async def trim(self, bytes_max: int, at_most: int) -> int:
        """Remove the oldest until no more than so many bytes are kept; returns how many went.

        At most so many at once. Where something else bounds the store, none.
        """
        ...


class Listener(Protocol):
    """Somebody who wants to know of completed evaluations; must not fail or wait."""

    def evaluated(self, news: EvaluationCompleted) -> None:
        """Called once for every evaluation that really ran."""
        ...


class Severity(StrEnum):
    """How much a probe's failure says (facts: probe catalogue)."""

    INFO = "info"
    MINOR = "minor"
    MAJOR = "major"
    CRITICAL = "critical"


Outcome = Literal["pass", "fail", "not_tested"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What one probe concluded; `note` is a sentence a person understands."""

    outcome: Outcome
    note: str


class BudgetExhausted(Exception):
    """The requests or the time an evaluation may cost the agent are used up."""


class AgentCallFailed(Exception):
    """A call through a stock client did not give a result.

    `kind` is one of `unreachable` (nothing came back), `timeout`, `protocol` (what came back is
    not the protocol), `error` (the agent answered with a protocol error; `code` is its number).
    """

    def __init__(
        self,
        kind: Literal["unreachable", "timeout", "protocol", "error"],
        detail: str,
        code: int | None = None,
    ) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind = kind
        self.detail = detail
        self.code = code


@dataclass(frozen=True, slots=True)
class McpTool:
    """A tool as the server lists it."""

    name: str
    description: str
    input_schema: JsonObject
    read_only: bool
    """`annotations.readOnlyHint` is true; without it a tool is never invoked."""


class McpConversation(Protocol):
    """An initialised MCP session over the official client. Methods raise `AgentCallFailed`."""

    protocol_version: str
    server_name: str

    async def list_tools(self) -> Sequence[McpTool]:
        """Every page of tools/list (a bounded number of pages)."""
        ...

    async def call_tool(self, name: str, arguments: JsonObject) -> JsonObject:
        """tools/call; the result as JSON, `isError` included."""
        ...


class A2aConversation(Protocol):
    """An A2A service whose card was read by the official client. Raises `AgentCallFailed`."""

    card: JsonObject
    """The card as it was served, not as the client understood it."""
    card_url: str

    async def send_text(self, text: str) -> JsonObject:
        """message/send with one text part; the resulting message or task as JSON."""
        ...


class AgentDialers(Protocol):
    """Opens conversations through the official client libraries, over guarded egress.

    Each HTTP request they make is counted against the visit's budget (`BudgetExhausted`).
    """

    def mcp(self, url: str, http: SafeHttp) -> AbstractAsyncContextManager[McpConversation]:
        """Connect and initialise. Raises `AgentCallFailed` on entry."""
        ...

    def a2a(self, url: str, http: SafeHttp) -> AbstractAsyncContextManager[A2aConversation]:
        """Read the card (well-known path, or `url` when it is the card itself).

        Raises `AgentCallFailed` on entry.
        """
        ...


_ANY = EgressPolicy(allow_private=True, require_https=False)

ServiceKind = Literal["a2a", "mcp", "http"]


@dataclass(frozen=True, slots=True)
class Visited:
    """One service to probe, with its kind as we understand its declared name."""

    kind: ServiceKind
    service: Service


@dataclass(frozen=True, slots=True)
class Visit:
    """One evaluation's visit to an agent, shared by its probes.

    `http` and the conversations count every request against one budget and one deadline; they
    raise `BudgetExhausted` when it is used up.
    """

    subject: Subject
    services: tuple[Visited, ...]
    http: SafeHttp
    dialers: AgentDialers
    seed: str
    """Derived from the subject: canaries and unknown names are made from it, so that the same
    agent gives the same evidence."""
    bait: Lure | None = None
    """An address of ours, where there is one that agents can reach."""
    agreed: frozenset[str] | None = None
    """Origins that may be asked more than a stranger's; None: all of them."""
    slices: Slices = field(default_factory=Slices)
    """Where long texts are read, so that reading them holds up nobody."""

    def may_burden(self, url: str) -> bool:
        """Whether the host of a URL agreed to be sent or to send a lot."""
        if self.agreed is None:
            return True
        target = parse_target(url, _ANY)
        return isinstance(target, Target) and origin_of(target) in self.agreed


class Probe(Protocol):
    """One question put to an agent: `collect` asks, `weigh` (pure) judges.

    `collect` never raises for the outside world's faults: they are what it reports. What it
    returns is canonical-JSON-able and free of times, ids and texts that change between two
    visits to an unchanged agent.
    """

    name: ClassVar[str]
    family: ClassVar[str]
    severity: ClassVar[Severity]

    async def collect(self, visit: Visit) -> JsonObject | None:
        """What was seen, or None when there is nothing this probe applies to."""
        ...

    def weigh(self, seen: JsonObject) -> Finding:
        """The verdict on what was seen; the same for the same input, always."""
        ...


class ReadsConsents(Protocol):
    """Finds out which hosts agree to be tested as an agent, beyond what a stranger's may be."""

    async def read(
        self, subject: Subject, endpoints: Sequence[str], http: SafeHttp
    ) -> frozenset[str]:
        """The origins of `endpoints` that agree, and those that have no budget; raises nothing."""
        ...


@dataclass(frozen=True, slots=True)
class SignalNeeds:
    """What a signal may use to collect."""

    reader: ChainReader
    http: SafeHttp
    dialers: AgentDialers
    probes: Mapping[str, Probe]
    clock: Clock
    deadline_s: float
    """Seconds this collection may take; what has not finished by then is left out and reported."""
    sources: Sources = field(default_factory=Sources)
    slices: Slices = field(default_factory=Slices)
    """The same for all evaluations of a process: they take turns."""
    consents: ReadsConsents | None = None
    """Without it every host counts as one that agreed: for tests of the rest."""
    turns: VisitTurns | None = None
    """Without it every visit begins at once."""


class Signal(Protocol):
    """One source of trust: `collect` (through ports), then `weigh` (pure).

    `collect` returns `Unavailable` for the outside world's faults and never raises for them.
    """

    name: ClassVar[SignalName]

    async def collect(self, subject: Subject, needs: SignalNeeds) -> Evidence | Unavailable:
        """What this signal sees of the subject, within `needs.deadline_s`."""
        ...

    def weigh(self, evidence: Evidence, probes: Mapping[str, Probe]) -> Weighed:
        """What that is worth. `probes` only for the signal that is made of them."""
        ...
