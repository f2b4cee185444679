"""A visit to an agent, its dependencies, and the interface of a probe.

Shares and remembers results that several probes of one visit need.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, Protocol, TypeAlias, TypeVar, cast

from assay.common.cache import SingleFlight
from assay.common.json import JsonObject, JsonValue
from assay.common.sliced_work_runner import Slices
from assay.http1.model import Target
from assay.net.egress.consent import origin_of
from assay.net.egress.ports import EgressClient
from assay.net.egress.url import EgressPolicy, parse_target
from assay.probing.judge import TextJudge
from assay.probing.paid_calls import PaidCalls
from assay.registries.model import Service, Subject

T = TypeVar("T")


class AskedOnce:
    """Results by name, for one visit: as many as there are names in the code."""

    def __init__(self) -> None:
        self._flights: SingleFlight[None] = SingleFlight()
        self._results: dict[str, object] = {}

    async def get(self, name: str, ask: Callable[[], Awaitable[T]]) -> T:
        """Return the result of one call of `ask`; a failed call is repeated by the next probe."""

        async def made() -> None:  # Stored before the flight ends, so that later callers find it.
            self._results[name] = await ask()

        if name not in self._results:
            await self._flights.run(name, made)
        return cast("T", self._results[name])  # The name determines the type.


class OutOfBandUrl(Protocol):
    """An address of ours that no task requires."""

    url: str

    async def was_taken(self) -> bool:
        """Return whether it was called."""
        ...


class Severity(StrEnum):
    """How serious a probe's failure is (facts: probe catalogue)."""

    INFO = "info"
    MINOR = "minor"
    MAJOR = "major"
    CRITICAL = "critical"


ProbeOutcome = Literal["pass", "fail", "not_tested"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The conclusion of one probe; `note` is a readable sentence."""

    outcome: ProbeOutcome
    note: str


class BudgetExhausted(Exception):
    """The visit has used up its requests or its time."""


class AgentCallFailed(Exception):
    """A call through a stock client did not give a result.

    `kind` is one of `unreachable` (nothing came back), `timeout`, `protocol` (what came back is
    not the protocol), `error` (the agent answered with a protocol error; `code` is its number).
    What this service lacks: `no_grpc` (the library for gRPC), `no_callback` (an address where the
    agent could deliver its result).
    """

    def __init__(
        self,
        kind: Literal["unreachable", "timeout", "protocol", "error", "no_grpc", "no_callback"],
        detail: str,
        code: int | None = None,
        retry_s: float | None = None,
    ) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind = kind
        self.detail = detail
        self.code = code
        self.retry_s = retry_s
        """Seconds of its `Retry-After`, if the agent asks for a later retry."""


@dataclass(frozen=True, slots=True)
class McpTool:
    """A tool as the server lists it."""

    name: str
    description: str
    input_schema: JsonObject
    read_only: bool
    """`annotations.readOnlyHint` is true."""
    changes: bool = False
    """Whether the server says that it does more than read."""
    output_schema: JsonObject | None = None
    more: JsonObject = field(default_factory=dict[str, JsonValue])
    """Other parts that a client's model may read: title, annotations, output schema."""


class McpConversation(Protocol):
    """An initialised MCP session over the official client. Methods raise `AgentCallFailed`."""

    protocol_version: str
    server_name: str
    instructions: str
    """The server's text for the client's model; empty if there is none."""

    async def list_tools(self, *, again: bool = False) -> Sequence[McpTool]:
        """Return every page of tools/list (a bounded number of pages).

        A visit lists them once, and once more for callers that ask for it `again`.
        """
        ...

    async def call_tool(
        self, name: str, arguments: JsonObject, wait_s: float | None = None
    ) -> JsonObject:
        """Call a tool; return the result as JSON, `isError` included. `wait_s`: longest wait."""
        ...

    async def read_first(self) -> JsonObject | None:
        """Return the first readable resource, else the first prompt; None without either.

        Lists already returned by `list_texts` are not requested again.
        """
        ...

    async def list_texts(self) -> Sequence[JsonObject]:
        """Return the first page of prompts/list and of resources/list that the server offers."""
        ...


@dataclass(frozen=True, slots=True)
class Callback:
    """The address where an agent delivers the result of one task (A2A push notifications)."""

    url: str
    token: str
    """The token sent with a delivery, which distinguishes it from a guess."""


class PendingResult(Protocol):
    """The result delivered to one callback."""

    callback: Callback

    async def delivered(self, task_id: str) -> JsonObject | None:
        """Return the task's result, in the form of tasks/get; None until it was delivered.

        Never raises.
        """
        ...


class A2aConversation(Protocol):
    """An A2A service whose card was read by the official client. Raises `AgentCallFailed`."""

    card: JsonObject
    """The card as it was served, not as the client parsed it."""
    card_url: str

    @property
    def has_answered(self) -> bool:
        """Return whether a message was already answered in this visit."""
        ...

    async def send_text(
        self,
        text: str,
        context_id: str = "",
        *,
        wait_s: float | None = None,
        callback: Callback | None = None,
    ) -> JsonObject:
        """Send one text part by message/send; return the resulting message or task as JSON.

        With a `context_id` it continues that conversation, else it begins one. `wait_s`: longest
        wait for the answer, in seconds. `callback`: where the agent may deliver it.
        """
        ...

    async def get_task(self, task_id: str) -> JsonObject:
        """Call tasks/get; return the task as JSON."""
        ...


class AgentDialers(Protocol):
    """Opens conversations through the official client libraries, over guarded egress.

    Each HTTP request they make is counted against the visit's budget (`BudgetExhausted`).
    """

    def mcp(self, url: str, http: EgressClient) -> AbstractAsyncContextManager[McpConversation]:
        """Connect and initialise. Raises `AgentCallFailed` on entry."""
        ...

    def a2a(self, url: str, http: EgressClient) -> AbstractAsyncContextManager[A2aConversation]:
        """Read the card (well-known path, or `url` when it is the card itself).

        Raises `AgentCallFailed` on entry.
        """
        ...


_ANY = EgressPolicy(allow_private=True, require_https=False)


ServiceKind = Literal["a2a", "mcp", "http"]


@dataclass(frozen=True, slots=True)
class VisitedService:
    """A service, with the kind that its name and address suggest, or that was found."""

    kind: ServiceKind
    service: Service
    is_known: bool = True
    """Whether the hint is more than a guess; if not, it is probed once its protocol was found."""


@dataclass(frozen=True, slots=True)
class ProbeSession:
    """One evaluation's visit to an agent, shared by its probes.

    `http` and the conversations count every request against one budget and one deadline; they
    raise `BudgetExhausted` when it is used up.
    """

    subject: Subject
    services: tuple[VisitedService, ...]
    http: EgressClient
    dialers: AgentDialers
    seed: str
    """Derived from the subject. Canaries and unknown names are made from it, so that the same agent
    gives the same evidence."""
    out_of_band_url: OutOfBandUrl | None = None
    """An address of ours, if there is one that agents can reach."""
    agreed: frozenset[str] | None = None
    """Origins that consent to more requests than unknown hosts may get; None: all of them."""
    nonce: str = ""
    """Random for each visit: requests in our own words are made from it. Empty: from `seed`."""
    ends_at: float | None = None
    """Time of the event loop at which the visit ends; None: when `http` says so."""
    announced: bool = True
    """Whether requests identify their sender. Malformed, oversized and guessed ones require
    that."""
    prompts: tuple[str, ...] = ()
    """The operator's own requests, which are not public."""
    slices: Slices = field(default_factory=Slices)
    """Reads long texts in slices, so that other work is not delayed."""
    spoken: dict[str, str] = field(default_factory=dict[str, str])
    """By endpoint, the protocol that was found: `a2a`, `mcp`, `http`, `x402` or `page`."""
    asked: AskedOnce = field(default_factory=AskedOnce)
    """Shares requests that several probes need."""
    judge: TextJudge | None = None
    """The operator's model, if configured, for what rules leave open."""
    sales: PaidCalls | None = None
    """Pays for calls of services that sell, if the operator pays for them."""

    def may_burden(self, url: str) -> bool:
        """Return whether the host of a URL consents to large requests and responses."""
        if self.agreed is None:
            return True
        target = parse_target(url, _ANY)
        return isinstance(target, Target) and origin_of(target) in self.agreed


Collect: TypeAlias = Callable[["ProbeSession"], Awaitable[JsonObject | None]]
Weigh: TypeAlias = Callable[[JsonObject], Finding]


@dataclass(frozen=True, slots=True)
class Probe:
    """One question put to an agent: `collect` asks, `weigh` (pure) judges what was seen."""

    name: str
    family: str
    severity: Severity
    collect: Collect
    """What was seen, or None when there is nothing this probe applies to.

    Never raises for the outside world's faults: they are what it reports. What it returns is
    canonical-JSON-able and free of times, ids and texts that change between two visits to an
    unchanged agent.
    """
    weigh: Weigh
    """The verdict on what was seen; the same for the same input, always."""


def probe(
    name: str, family: str, severity: Severity, *, weigh: Weigh
) -> Callable[[Collect], Probe]:
    """Make a probe of the function that collects. Registers nothing."""
    return lambda collect: Probe(name, family, severity, collect, weigh)


class ReadsConsents(Protocol):
    """Finds out which hosts consent to be tested as an agent, beyond unknown hosts' limits."""

    async def read(
        self, subject: Subject, endpoints: Sequence[str], http: EgressClient
    ) -> frozenset[str]:
        """Return the origins of `endpoints` that consent or have no budget; never raises."""
        ...
