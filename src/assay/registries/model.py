"""Agents as their registries show them: ids, files and their problems, feedback. Pure.

Problems of a registration file: where, what was found, what was expected.

Agents as their registries show them, and their ids. Plain values.

The agent that is evaluated.

Interprets a registry's feedback as the EIP defines it. Pure and exact.

The registry's own `getSummary` is not used: it mixes scales, rounds to the commonest number of
decimals and wraps around on large values. Source: EIP-8004, "Reputation Registry".
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal
from typing import Literal

from assay.chains.model import Network, is_address, is_public_key
from assay.common.errors import InvalidRequest, NotFound, Problem
from assay.common.json import JsonObject, JsonValue, is_array, is_object

FOUND_CHARS_MAX = 80
PROBLEMS_MAX = 32
"""Problems kept of one file: its author sees the others once these are fixed."""

Note = Callable[[str, str, str], None]
"""Records where a problem is, what was found and what was expected."""


@dataclass(frozen=True, slots=True)
class FileProblem:
    """A problem of a registration file; quoted values are shortened and printable."""

    where: str
    """A path into the file, such as `services[0].endpoint`; `file` or `tokenURI` for the whole."""
    found: str
    expected: str

    @property
    def sentence(self) -> str:
        """Return the three as one sentence."""
        return f"{self.where}: found {self.found}; expected {self.expected}."


class Problems:
    """Collects the problems of one file, at most `PROBLEMS_MAX`, each once."""

    def __init__(self) -> None:
        self._recorded: dict[FileProblem, None] = {}

    def note(self, where: str, found: str, expected: str) -> None:
        """Record the problem if there is room."""
        if len(self._recorded) < PROBLEMS_MAX:
            self._recorded[FileProblem(shown(where), found, expected)] = None

    @property
    def recorded(self) -> tuple[FileProblem, ...]:
        """Return the problems in the order in which they were found."""
        return tuple(self._recorded)


def described(value: JsonValue) -> str:
    """Describe a JSON value in a few words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return quoted(value)
    if is_object(value):
        return f"an object of {len(value)}"
    if is_array(value):
        return f"a list of {len(value)}"
    return f"the number {str(value)[:FOUND_CHARS_MAX]}"


def quoted(text: str) -> str:
    """Return a third party's text, shortened, in quotes and without invisible characters."""
    return json.dumps(shown(text), ensure_ascii=False)


def shown(text: str) -> str:
    """Return the same without the quotes."""
    cut = text[: FOUND_CHARS_MAX + 1]
    visible = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in cut)
    return visible[:FOUND_CHARS_MAX] + ("..." if len(cut) > FOUND_CHARS_MAX else "")


TOKEN_ID_MAX = 2**256 - 1
"""Token ids are uint256. Source: ERC-721."""


_TOKEN_ID = re.compile(r"[0-9]{1,78}")


_NUMBER = re.compile(r"(?:sol:)?([0-9]{1,18})")
"""A sequential id of the Solana registry. Source: solana-registry.md#ids-and-wallets, #indexer
(`sol:42` is accepted)."""


class AgentNotFound(NotFound):
    """The registry has no agent with this id (ERC721NonexistentToken), and only then."""

    code = "agent_not_found"


@dataclass(frozen=True, slots=True)
class Service:
    """A service that a registration file declares. Name and endpoint are untrusted."""

    name: str
    endpoint: str
    version: str | None = None


@dataclass(frozen=True, slots=True)
class ClaimedRegistration:
    """A registration that the file claims: valid only if it names the agent it came from."""

    agent_id: str
    agent_registry: str


@dataclass(frozen=True, slots=True)
class RegistrationFile:
    """A registration file, parsed leniently; `problems` says what is wrong with it."""

    name: str = ""
    image: str = ""
    description: str = ""
    services: tuple[Service, ...] = ()
    registrations: tuple[ClaimedRegistration, ...] = ()
    trust_models: tuple[str, ...] = ()
    x402_support: bool | None = None
    active: bool | None = None
    problems: tuple[FileProblem, ...] = ()
    raw: JsonObject = field(default_factory=dict[str, "str"])
    size_bytes: int = field(default=0, compare=False)
    """Size of the file as received."""

    @property
    def weight(self) -> int:
        """Return its weight in a cache: 1, and one more for every 4 KiB."""
        return 1 + self.size_bytes // 4096


@dataclass(frozen=True, slots=True)
class AtomStats:
    """The Solana registry's own figures for an agent's feedback.

    `quality_score` and `confidence` are 0 to 10,000, `risk_score` 0 to 100 (high is bad);
    `average_score` 0 to 100 is the engine's slow moving average.
    Sources: interface.md#trust-profile; solana-registry.md#atom-figures.
    """

    trust_tier: str
    quality_score: int
    confidence: int
    risk_score: int
    unique_callers: int
    average_score: float


@dataclass(frozen=True, slots=True)
class OnchainAgent:
    """An agent as its registry shows it at one block. EVM addresses are lower case."""

    network: Network
    agent_id: str
    owner: str
    wallet: str | None
    """The registered `agentWallet`; None after a transfer or when unset."""
    token_uri: str
    registration: RegistrationFile | None
    registration_problem: str | None
    """Why there is no registration file (a sentence), or None."""
    collection: str | None = None
    """Solana: the collection its asset belongs to."""
    feedback_count: int | None = None
    """Number of feedback entries ever given, if the registry itself counts it."""
    atom: AtomStats | None = None

    @property
    def weight(self) -> int:
        """Return its weight in a cache: that of its registration file, which is most of it."""
        return 1 if self.registration is None else self.registration.weight

    @property
    def controllers(self) -> frozenset[str]:
        """Return the addresses that may act for this agent (conventions.md#agent-identity)."""
        return frozenset(a for a in (self.owner, self.wallet) if a)


@dataclass(frozen=True, slots=True)
class Feedback:
    """One feedback entry, as stored. `value` is already divided by 10**decimals."""

    client: str
    index: int
    value: Decimal
    decimals: int
    tag1: str
    tag2: str
    given_s: int | None = None
    """Unix seconds, if the entry itself has a time."""
    score: int | None = None
    """0 to 100 as the registry stores it beside the value."""
    is_scored: bool = False
    """Whether the registry stores scores: then an entry without one is on no such scale."""


@dataclass(frozen=True, slots=True)
class WalletMatch:
    """An agent that a wallet may act for, and how that was established."""

    agent_id: str
    source: Literal["owner", "agentWallet"]


def parse_token_id(text: str) -> str:
    """Return the canonical decimal form of an ERC-8004 token id; raises `InvalidRequest`."""
    if _TOKEN_ID.fullmatch(text) and int(text) <= TOKEN_ID_MAX:
        return str(int(text))
    message = "agentId must be a decimal ERC-8004 token id below 2^256"
    raise InvalidRequest(message, details=[Problem(("path", "agentId"), message)])


def parse_agent_id(network: Network, text: str) -> str:
    """Return the canonical agent id of this network's registry; raises `InvalidRequest`.

    On Solana it is the asset's public key or a sequential id in decimal. The length decides, so a
    key of nothing but digits is a key.
    """
    if network.family == "evm":
        return parse_token_id(text)
    if is_public_key(text):
        return text
    found = _NUMBER.fullmatch(text)
    if found and int(found[1]) > 0:
        return str(int(found[1]))
    message = "agentId must be a base-58 public key of 32 bytes, or a sequential id from 1 on"
    raise InvalidRequest(message, details=[Problem(("path", "agentId"), message)])


def sequential_id(network: Network, agent_id: str) -> int | None:
    """Return the number if a canonical agent id is a sequential one, else None."""
    return int(agent_id) if network.family == "solana" and not is_public_key(agent_id) else None


def number_asked(network: Network, agent_id: str) -> int | None:
    """Return the sequential id of a request's agent id, if it is one; on EVM chains always None.

    Raises `InvalidRequest` if it is not an agent id of a Solana registry.
    """
    if network.family != "solana":
        return None
    return sequential_id(network, parse_agent_id(network, agent_id))


@dataclass(frozen=True, slots=True)
class Subject:
    """The agent evaluated: of a registry, or a key agent (then `agent` is None)."""

    network: Network
    agent_id: str
    """Canonical token id, or the key agent's lower-case address."""
    wallet: str
    """The first address that acts for it: agentWallet, else owner; a key agent's own address."""
    agent: OnchainAgent | None

    @property
    def key(self) -> str:
        """Return the subject's name in stores and caches: `eip155:1/22`, or `key/0x...`."""
        return subject_key(self.network, self.agent_id)


def subject_key(network: Network, agent_id: str) -> str:
    """Return the key of the subject with this canonical agent id (see `Subject.key`)."""
    if is_address(agent_id):
        return f"key/{agent_id}"
    return f"{network.caip2}/{agent_id}"


SCALE_TAGS = frozenset({"", "starred"})
"""`tag1` of feedback on the 0 to 100 scale; every other tag is a scale of its own.
Source: EIP-8004, the table of example tags (`starred`: quality rating, 0 to 100)."""

_LOW, _HIGH = Decimal(0), Decimal(100)
_CENT = Decimal("0.01")
_EXACT = Context(prec=60)
"""Digits for sums: 3 before the point, 18 after it (the registry's most), and 39 for the number of
entries. A separate context, so that a changed global context cannot alter a reputation."""


@dataclass(frozen=True, slots=True)
class FeedbackEntry:
    """A feedback entry; `score` is its value on the 0 to 100 scale, None if it is off the scale."""

    feedback: Feedback
    score: Decimal | None


@dataclass(frozen=True, slots=True)
class FeedbackSummary:
    """The registry's view of an agent. `average_score` is the plain mean, 2 decimals."""

    feedback_count: int
    counted: int
    discarded: int
    reviewers: int
    average_score: float | None
    entries: tuple[FeedbackEntry, ...]


def summarise(feedback: Sequence[Feedback]) -> FeedbackSummary:
    """Summarise feedback; only the order of `entries` depends on the order of the input."""
    entries = tuple(FeedbackEntry(one, _score_of(one)) for one in feedback)
    scores = [entry.score for entry in entries if entry.score is not None]
    return FeedbackSummary(
        feedback_count=len(entries),
        counted=len(scores),
        discarded=len(entries) - len(scores),
        reviewers=len({one.client for one in feedback}),
        average_score=_average(scores),
        entries=entries,
    )


def _average(scores: Sequence[Decimal]) -> float | None:
    if not scores:
        return None
    total = Decimal(0)
    for score in scores:
        total = _EXACT.add(total, score)
    mean = _EXACT.divide(total, Decimal(len(scores)))
    return float(mean.quantize(_CENT, context=_EXACT))


def _score_of(feedback: Feedback) -> Decimal | None:
    """Return an entry's value on the 0 to 100 scale, or None if it is on another or off it."""
    if feedback.is_scored:
        return None if feedback.score is None else Decimal(feedback.score)
    if feedback.tag1.strip().lower() not in SCALE_TAGS:
        return None
    return feedback.value if _LOW <= feedback.value <= _HIGH else None
