"""Stored events, and the assets whose transfers are read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from assay.chains.model import Network


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
