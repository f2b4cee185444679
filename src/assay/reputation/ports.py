"""Where events are kept."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from assay.reputation.facts import FeedbackEvent
from assay.reputation.rows import Batch, ProvenPayment, TransferRow

EventKind = Literal["feedback", "owners", "payments", "funding"]

NEUTRAL_FROM = 500
"""A source that funded so many accounts is an exchange: it joins nobody."""


@dataclass(frozen=True, slots=True, order=True)
class Stream:
    """One thing that is read block by block: a subject of a network, or all of it."""

    kind: EventKind
    network: str
    subject: str = ""


@dataclass(frozen=True, slots=True)
class EventCursor:
    """Up to which block a stream was read; `block_hash` is empty where it is not known.

    A done stream has nothing more to tell: an account's funding that was found, and one that is
    full. A whole one was read to the newest block before, or until it was full.
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
    """Events as far as they were read, and how far that is. Of any number of processes."""

    async def networks(self) -> Sequence[str]:
        """Networks with a stream, by name."""
        ...

    async def watch(self, streams: Sequence[Stream], block: int) -> Mapping[Stream, EventCursor]:
        """The cursors; a stream that is new begins after `block`. They are needed now."""
        ...

    async def due(
        self, kind: EventKind, network: str, below: int, at_most: int
    ) -> Sequence[tuple[Stream, EventCursor]]:
        """Streams that are not done and were read furthest back, all to the same block."""
        ...

    async def advance(
        self, streams: Sequence[Stream], was: EventCursor, now: EventCursor, batch: Batch
    ) -> bool:
        """Store a range and move on, unless another process has: then nothing is stored.

        Streams are whole from the first time on that `now` is.

        An account whose first incoming transfer is known is done, and so is a stream with more
        rows than are kept of one.
        """
        ...

    async def rewind(self, network: str, block: int) -> None:
        """Forget everything above `block`: the chain has taken it back."""
        ...

    async def feedback(self, network: str, agent_id: str) -> Sequence[FeedbackEvent]:
        """Entries with what happened to them."""
        ...

    async def owners(self, network: str, agent_id: str) -> frozenset[str]:
        """Everybody the agent's token ever went to."""
        ...

    async def transfers(self, network: str, addresses: Sequence[str]) -> Sequence[TransferRow]:
        """To and from any of the addresses, a bounded number, newest first."""
        ...

    async def fundings(self, network: str, accounts: Sequence[str]) -> Mapping[str, str]:
        """Who first sent each of the accounts a listed asset, as far as it was found."""
        ...

    async def funded(self, network: str, funders: Sequence[str]) -> Mapping[str, int]:
        """How many accounts of the index each of them was the first to fund.

        Those that were `NEUTRAL_FROM` or more once are so for ever.
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
        """What each payer spent at sellers unrelated to the addresses of `side`, net.

        A seller is unrelated when it is read whole, no money passed between it and `side`, it
        funded none of the payers, and at least `OTHER_PAYERS` others pay it who are none of them.
        With `listed` sellers only those are. Shared out, what was spent there vouches for each
        other seller of the network only by its part of the payer's other spending. Payments after
        `until_day` do not count.
        """
        ...

    async def ask_files(self, network: str, agent_id: str) -> None:
        """Have files of an agent's feedback read in the background, a bounded number."""
        ...

    async def proven(self, network: str, agent_id: str) -> Sequence[ProvenPayment]:
        """Payments that files of the agent's standing feedback proved, a bounded number."""
        ...

    async def ledger(self, network: str, payees: Sequence[str]) -> Sequence[LedgerPayment]:
        """Payments settled here to any of the payees, a bounded number."""
        ...

    async def resold(
        self, network: str, subject_key: str, endpoints: Sequence[str], side: Collection[str]
    ) -> Sequence[LedgerPayment]:
        """Payments settled here by wrappers of others in front of an agent's services.

        Only of services whose control the agent proved, of operators without a wrapper that pays
        any of `side`, and by payers that are neither of `side` nor paid by those wrappers. A
        bounded number, newest first.
        """
        ...
