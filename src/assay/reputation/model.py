"""Events, facts, payers and votes of one agent. Pure. Money is in millionths of a dollar.

Payers and votes of one agent in its evidence. Money is in millionths of a dollar.

Stored events, and the assets whose transfers are read.

The facts that chains show of an agent's payers and feedback, and their interface.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from assay.chains.model import Network
from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.registries.model import OnchainAgent

RULES = 2
"""Version of the evidence; version 1 was weighted by account age and has no payers."""


@dataclass(frozen=True, slots=True)
class Payer:
    """The payments of one address to the agent's addresses. Days are counted from 1970."""

    address: str
    spent: Mapping[int, int]
    """Amounts by day."""
    returned: int = 0
    """Amount that the agent's side returned."""
    elsewhere: int = 0
    """Amount paid to unrelated sellers."""
    is_charge: bool = False
    """Whether at least one payment was an x402 authorisation or an MPP charge, not a plain
    transfer."""
    sources: tuple[str, ...] = ()
    """Its funders and their funders, nearest first; exchanges are left out."""
    is_own: bool = False
    """Whether it belongs to the agent's side, or was funded by it."""
    resold: Mapping[int, int] = field(default_factory=dict[int, int])
    """Amounts by day paid to resellers of the agent's services. They do not weight its vote: a
    reseller of a rival's service could pay itself."""
    counts_as_customer: bool = True
    """False for payments that appear only in our own ledger, of an operator tied to the agent."""

    is_pending: bool = False
    """Whether its funding is not read yet: until then it cannot support the agent."""

    @property
    def net(self) -> int:
        """Return the amount paid and not returned."""
        return max(0, sum(self.spent.values()) - self.returned)


@dataclass(frozen=True, slots=True)
class Vote:
    """The latest rating of one address, 0 to 100; the day is None if it could not be read."""

    address: str
    rating: float
    day: int | None


@dataclass(frozen=True, slots=True)
class Reputation:
    """All input of the rules."""

    payers: tuple[Payer, ...]
    votes: tuple[Vote, ...]
    day: int
    """The day it was read."""
    price: int
    """The usual price, see `usual_price`; 0 without payments."""


def payer_json(payer: Payer) -> JsonObject:
    """Return a payer as evidence; empty and false members are left out."""
    row: dict[str, JsonValue] = {
        "spent": {str(day): amount for day, amount in sorted(payer.spent.items())},
        "returned": payer.returned,
        "elsewhere": payer.elsewhere,
        "charge": payer.is_charge,
        "sources": list(payer.sources),
        "resold": {str(day): amount for day, amount in sorted(payer.resold.items())},
        "own": payer.is_own,
        "related": not payer.counts_as_customer,
        "pending": payer.is_pending,
    }
    return {name: value for name, value in row.items() if value}


def reputation_of(data: JsonObject) -> Reputation:
    """Parse the evidence of the signal."""
    payers, votes = data.get("payers"), data.get("votes")
    return Reputation(
        payers=tuple(_payer(a, r) for a, r in _rows(payers)),
        votes=tuple(
            Vote(address, float(str(row["rating"])), _whole(row.get("day")))
            for address, row in _rows(votes)
        ),
        day=_whole(data.get("day")) or 0,
        price=_whole(data.get("price")) or 0,
    )


def _payer(address: str, row: JsonObject) -> Payer:
    sources = row.get("sources")
    return Payer(
        address=address,
        spent=_days(row.get("spent")),
        returned=_whole(row.get("returned")) or 0,
        elsewhere=_whole(row.get("elsewhere")) or 0,
        is_charge=row.get("charge") is True,
        sources=tuple(str(one) for one in sources) if is_array(sources) else (),
        resold=_days(row.get("resold")),
        is_own=row.get("own") is True,
        counts_as_customer=row.get("related") is not True,
        is_pending=row.get("pending") is True,
    )


def _days(value: JsonValue) -> Mapping[int, int]:
    return {int(d): _whole(a) or 0 for d, a in value.items()} if is_object(value) else {}


def _rows(value: JsonValue) -> Sequence[tuple[str, JsonObject]]:
    if not is_object(value):
        return ()
    return [(name, row) for name, row in value.items() if is_object(row)]


def _whole(value: JsonValue) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


@dataclass(frozen=True, slots=True)
class FeedbackRow:
    """`NewFeedback`."""

    agent_id: str
    client: str
    number: int
    block: int
    day: int
    rating: float | None
    uri: str
    digest: str


@dataclass(frozen=True, slots=True)
class NoteRow:
    """A revocation of an entry, or a response to it."""

    tx: str
    log: int
    agent_id: str
    client: str
    number: int
    block: int
    is_revocation: bool


@dataclass(frozen=True, slots=True)
class OwnerRow:
    """A recipient of an agent's token."""

    tx: str
    log: int
    agent_id: str
    owner: str
    block: int


@dataclass(frozen=True, slots=True)
class TransferRow:
    """A transfer of a listed asset, in millionths of a dollar."""

    tx: str
    log: int
    sender: str
    recipient: str
    amount: int
    block: int
    day: int
    is_charge: bool


@dataclass(frozen=True, slots=True)
class ProvenPayment:
    """A payment that one feedback proves, on one payment network."""

    network: str
    transfer: TransferRow


@dataclass(frozen=True, slots=True)
class Batch:
    """The events of a range of blocks."""

    feedback: Sequence[FeedbackRow] = ()
    notes: Sequence[NoteRow] = ()
    owners: Sequence[OwnerRow] = ()
    transfers: Sequence[TransferRow] = ()
    fundings: Mapping[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    """By account: who first sent it a listed asset, and in which block."""


@dataclass(frozen=True, slots=True)
class ListedAsset:
    """A listed asset: a token worth a dollar, with any number of decimals."""

    address: str
    decimals: int = 6


@dataclass(frozen=True, slots=True)
class PaymentChain:
    """A network whose listed assets count as money."""

    network: Network
    assets: tuple[ListedAsset, ...]
    charges_only: bool = False
    """Whether every transfer counts as a charge: on Tempo, MPP charges are plain transfers."""


INDEXING = "indexing"
"""The signal is unavailable: events are still being read, or cannot be read now."""


@dataclass(frozen=True, slots=True)
class FeedbackEvent:
    """A `NewFeedback` event; `day` counts from 1970, `rating` follows `scales`."""

    client: str
    index: int
    rating: float | None
    day: int
    uri: str = ""
    digest: str = ""
    """`feedbackHash` as hex digits; empty for none."""
    is_revoked: bool = False
    responses: int = 0
    file: str = ""
    """The result of its file (`files.FileState`), or its progress."""


@dataclass(frozen=True, slots=True)
class AgentFacts:
    """All facts that were read, and the day they describe."""

    day: int
    payers: tuple[Payer, ...] = ()
    price: int = 0
    events: Mapping[tuple[str, int], FeedbackEvent] = field(
        default_factory=dict[tuple[str, int], FeedbackEvent]
    )
    owners: frozenset[str] = frozenset()
    """Everyone who ever owned the agent."""
    validations: Sequence[tuple[str, int]] = ()
    """Listed validators and the answer of each, 0 to 100."""
    staked: int = 0
    """The on-chain stake that is lost if the agent misbehaves, in millionths of a dollar."""
    proofs: tuple[ProvenPayment, ...] = ()
    """Payments proven by feedback files; `payers` already includes them."""


class NotIndexed(Exception):
    """Events beyond the indexed head could not be read; `known` has the facts of the index."""

    def __init__(self, reason: str, known: AgentFacts | None = None) -> None:
        super().__init__(reason)
        self.known = known


class FactsSource(Protocol):
    """Reads the facts of an agent."""

    async def facts(self, agent: OnchainAgent, clients: Sequence[str]) -> AgentFacts:
        """Return current payments and events, of at most a bounded number of payers.

        Raises `NotIndexed` when they could not be read up to the newest block.
        """
        ...

    async def known(self, agent: OnchainAgent) -> AgentFacts | None:
        """Return what the index has of it, without asking a chain; None if it has nothing."""
        ...

    async def owners(self, network: Network, agent_id: str) -> frozenset[str] | None:
        """Return everyone who ever owned the agent; None while that is being read."""
        ...

    async def spent(self, network: Network, wallet: str, side: frozenset[str]) -> int | None:
        """Return a wallet's spending at sellers unrelated to `side`, in millionths of a dollar.

        Counts matured payments in the index, without asking a chain; None if none are read.
        """
        ...
