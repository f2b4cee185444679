"""A visit to an agent, what it may use, and what a probe is."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from assay.common.json import JsonObject, JsonValue
from assay.common.sliced_work_runner import Slices
from assay.http1.model import Target
from assay.net.egress.consent import origin_of
from assay.net.egress.ports import EgressClient
from assay.net.egress.url import EgressPolicy, parse_target
from assay.probing.judge import TextJudge
from assay.probing.purchases import PaidCalls
from assay.probing.session_memo import AskedOnce
from assay.registries.model import Service
from assay.registries.subject import Subject


class OutOfBandUrl(Protocol):
    """An address of ours that nobody has a reason to call."""

    url: str

    async def was_taken(self) -> bool:
        """Whether anybody called it."""
        ...


class Severity(StrEnum):
    """How much a probe's failure says (facts: probe catalogue)."""

    INFO = "info"
    MINOR = "minor"
    MAJOR = "major"
    CRITICAL = "critical"


ProbeOutcome = Literal["pass", "fail", "not_tested"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What one probe concluded; `note` is a sentence a person understands."""

    outcome: ProbeOutcome
    note: str


class BudgetExhausted(Exception):
    """The requests or the time an evaluation may cost the agent are used up."""


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
        """Seconds of its `Retry-After`, where the agent asks to be asked later."""


@dataclass(frozen=True, slots=True)
class McpTool:
    """A tool as the server lists it."""

    name: str
    description: str
    input_schema: JsonObject
    read_only: bool
    """`annotations.readOnlyHint` is true."""
    changes: bool = False
    """The server says that it does more than read."""
    output_schema: JsonObject | None = None
    more: JsonObject = field(default_factory=dict[str, JsonValue])
    """What else a client's model may read of it: title, annotations, output schema."""


class McpConversation(Protocol):
    """An initialised MCP session over the official client. Methods raise `AgentCallFailed`."""

    protocol_version: str
    server_name: str
    instructions: str
    """What the server says to the model of whoever connects; empty when it says nothing."""

    async def list_tools(self, *, again: bool = False) -> Sequence[McpTool]:
        """Every page of tools/list (a bounded number of pages).

        A visit lists them once, and once more for those that ask for it `again`.
        """
        ...

    async def call_tool(
        self, name: str, arguments: JsonObject, wait_s: float | None = None
    ) -> JsonObject:
        """tools/call; the result as JSON, `isError` included. `wait_s`: longest wait."""
        ...

    async def read_first(self) -> JsonObject | None:
        """The first resource that can be read, else the first prompt; None without either.

        What `list_texts` listed before is not listed again.
        """
        ...

    async def list_texts(self) -> Sequence[JsonObject]:
        """The first page of prompts/list and of resources/list, of what the server offers."""
        ...


@dataclass(frozen=True, slots=True)
class Callback:
    """Where an agent delivers the result of one task (A2A push notifications)."""

    url: str
    token: str
    """What it sends along, so that the delivery is told from a guess."""


class PendingResult(Protocol):
    """What is delivered to one callback."""

    callback: Callback

    async def delivered(self, task_id: str) -> JsonObject | None:
        """The task's result, as tasks/get gives it; None until it was delivered. Raises nothing."""
        ...


class A2aConversation(Protocol):
    """An A2A service whose card was read by the official client. Raises `AgentCallFailed`."""

    card: JsonObject
    """The card as it was served, not as the client understood it."""
    card_url: str

    @property
    def has_answered(self) -> bool:
        """Whether a message was answered before, in this visit."""
        ...

    async def send_text(
        self,
        text: str,
        context_id: str = "",
        *,
        wait_s: float | None = None,
        callback: Callback | None = None,
    ) -> JsonObject:
        """message/send with one text part; the resulting message or task as JSON.

        With a `context_id` it continues that conversation, else it begins one. `wait_s`: longest
        wait for the answer, in seconds. `callback`: where the agent may deliver it.
        """
        ...

    async def get_task(self, task_id: str) -> JsonObject:
        """tasks/get; the task as JSON."""
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


@runtime_checkable
class CountsMessages(Protocol):
    """Counts messages that are likely to cost an agent's owner a model call."""

    async def count_message(self, url: str) -> None:
        """Count one; raises `BudgetExhausted` where it is one too many."""
        ...


_ANY = EgressPolicy(allow_private=True, require_https=False)


ServiceKind = Literal["a2a", "mcp", "http"]


@dataclass(frozen=True, slots=True)
class VisitedService:
    """One service, with its kind as its name and address hint, or as it was found to speak."""

    kind: ServiceKind
    service: Service
    is_known: bool = True
    """Whether the hint is more than a guess; if not, it is probed once it was heard speaking."""


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
    """Derived from the subject: canaries and unknown names are made from it, so that the same
    agent gives the same evidence."""
    out_of_band_url: OutOfBandUrl | None = None
    """An address of ours, where there is one that agents can reach."""
    agreed: frozenset[str] | None = None
    """Origins that may be asked more than a stranger's; None: all of them."""
    nonce: str = ""
    """Random for each visit: what is asked in words of ours is made from it. Empty: from `seed`."""
    ends_at: float | None = None
    """Time of the event loop at which the visit ends; None: when `http` says so."""
    announced: bool = True
    """Whether requests say who sends them. Malformed, oversized and guessed ones need that."""
    prompts: tuple[str, ...] = ()
    """The operator's own requests, known to nobody else."""
    slices: Slices = field(default_factory=Slices)
    """Where long texts are read, so that reading them holds up nobody."""
    spoken: dict[str, str] = field(default_factory=dict[str, str])
    """By endpoint, what was found to be spoken there: `a2a`, `mcp`, `http`, `x402` or `page`."""
    asked: AskedOnce = field(default_factory=AskedOnce)
    """What several probes need of the agent is asked once."""
    judge: TextJudge | None = None
    """The operator's model, where one is set, for what rules leave open."""
    sales: PaidCalls | None = None
    """Pays for calls of services that sell, where the operator pays for that."""

    def may_burden(self, url: str) -> bool:
        """Whether the host of a URL agreed to be sent or to send a lot."""
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
    """Finds out which hosts agree to be tested as an agent, beyond what a stranger's may be."""

    async def read(
        self, subject: Subject, endpoints: Sequence[str], http: EgressClient
    ) -> frozenset[str]:
        """The origins of `endpoints` that agree, and those that have no budget; raises nothing."""
        ...
