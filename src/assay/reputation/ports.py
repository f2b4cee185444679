"""The interface of the event store."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from assay.reputation.model import Batch, FeedbackEvent, ProvenPayment, TransferRow

EventKind = Literal["feedback", "owners", "payments", "funding"]

NEUTRAL_FROM = 500
"""A source that funded this many accounts is an exchange, which connects no accounts."""


@dataclass(frozen=True, slots=True, order=True)
class Stream:
    """A series of events read block by block: of one subject, or of a whole network."""

    kind: EventKind
    network: str
    subject: str = ""


@dataclass(frozen=True, slots=True)
class EventCursor:
    """The block up to which a stream was read; `block_hash` is empty if unknown.

    A done stream has no more to read: an account's funding that was found, or a stream that is
    full. A whole stream was once read to the newest block, or until it was full.
    """

    block: int
    block_hash: str = ""
    is_done: bool = False
    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class LedgerPayment:
    """A settled payment of our own ledger."""

    payer: str
    amount: int
    day: int
    tx: str
    payee: str = ""


class EventStore(Protocol):
    """Stores events, and how far they were read. Shared by any number of processes."""

    async def networks(self) -> Sequence[str]:
        """Return the names of networks with a stream."""
        ...

    async def watch(self, streams: Sequence[Stream], block: int) -> Mapping[Stream, EventCursor]:
        """Return the cursors and mark them as needed now; a new stream begins after `block`."""
        ...

    async def due(
        self, kind: EventKind, network: str, below: int, limit: int
    ) -> Sequence[tuple[Stream, EventCursor]]:
        """Return the unfinished streams that are furthest behind, all at the same block."""
        ...

    async def advance(
        self, streams: Sequence[Stream], was: EventCursor, now: EventCursor, batch: Batch
    ) -> bool:
        """Store a range and advance, unless another process has; then store nothing.

        A stream stays whole from the first time that `now` is. An account whose first incoming
        transfer is known is done, and so is a stream with more rows than are kept of one.
        """
        ...

    async def rewind(self, network: str, block: int) -> None:
        """Delete everything above `block`: the chain reorganised it."""
        ...

    async def feedback(self, network: str, agent_id: str) -> Sequence[FeedbackEvent]:
        """Return entries with their later events."""
        ...

    async def owners(self, network: str, agent_id: str) -> frozenset[str]:
        """Return everyone who ever received the agent's token."""
        ...

    async def transfers(self, network: str, addresses: Sequence[str]) -> Sequence[TransferRow]:
        """Return transfers to and from any of the addresses, a bounded number, newest first."""
        ...

    async def fundings(self, network: str, accounts: Sequence[str]) -> Mapping[str, str]:
        """Return who first sent each account a listed asset, as far as it was found."""
        ...

    async def funded(self, network: str, funders: Sequence[str]) -> Mapping[str, int]:
        """Return how many accounts in the index each of them was the first to fund.

        An account that once reached `NEUTRAL_FROM` keeps that status for ever.
        """
        ...

    async def elsewhere(
        self,
        network: str,
        payers: Sequence[str],
        side: Sequence[str],
        listed: Collection[str] = (),
        *,
        is_shared: bool = False,
        until_day: int | None = None,
    ) -> Mapping[str, int]:
        """Return each payer's net spending at sellers unrelated to the addresses of `side`.

        A seller is unrelated if it is read whole, no money passed between it and `side`, it funded
        none of the payers, and at least `OTHER_PAYERS` payers outside this group pay it. With
        `listed` sellers only those count. If `is_shared`, spending vouches for each other seller of
        the network only by its part of the payer's other spending. Payments after `until_day` do
        not count.
        """
        ...

    async def ask_files(self, network: str, agent_id: str) -> None:
        """Queue files of an agent's feedback for reading in the background, a bounded number."""
        ...

    async def proven(self, network: str, agent_id: str) -> Sequence[ProvenPayment]:
        """Return payments proven by files of the agent's unrevoked feedback, a bounded number."""
        ...

    async def ledger(self, network: str, payees: Sequence[str]) -> Sequence[LedgerPayment]:
        """Return payments settled here to any of the payees, a bounded number."""
        ...

    async def resold(
        self, network: str, subject_key: str, endpoints: Sequence[str], side: Collection[str]
    ) -> Sequence[LedgerPayment]:
        """Return payments settled here by others' wrappers in front of an agent's services.

        Only for services whose control the agent proved, of operators without a wrapper that pays
        any of `side`, and by payers that are neither of `side` nor paid by those wrappers. A
        bounded number, newest first.
        """
        ...
