"""The chain as the witness: how deep a payment must be, and what ends one for good (ADR 0019).

What the nodes of a network say of payments together: no refusal on the word of one.

A node that shows the money is believed, whatever the others say: what it shows is a receipt, and
the watcher holds it against them afterwards (ADR 0019).

Where a network has two endpoints or more, nothing ends as refused on the word of one: every other
one is asked. What is settled is looked at again by `watcher`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, TypeAlias
from typing import Protocol as Port

from assay.chains.model import ChainUnavailable, Network
from assay.common.clock import Clock
from assay.common.errors import Unavailable
from assay.payments.model import LedgerEntry, PaymentNetwork, WatchedPayment, watched_payment
from assay.payments.outcomes import PaymentOutcome, Rejected, Settled, Undecided, is_unused
from assay.payments.ports import PaymentProtocol, ProtocolDependencies

Ask: TypeAlias = Callable[[Network, Sequence[LedgerEntry]], Awaitable[Sequence[PaymentOutcome]]]
"""Asks one node about payments. Raises `ChainUnavailable`."""

ENOUGH: Final = 2
"""Nodes whose word ends a payment as failed, where a network has as many."""


def single_nodes(network: Network) -> list[Network]:
    """The network as each of its endpoints alone has it."""
    return [replace(network, rpc_urls=(url,)) for url in dict.fromkeys(network.rpc_urls)]


async def ask_nodes(
    network: Network, entries: Sequence[LedgerEntry], ask: Ask, *, every_node: bool
) -> list[PaymentOutcome]:
    """What became of each entry, in order. Raises `ChainUnavailable` when no node answers.

    The first node that answers is asked, and every other one about what it refuses, or knows to be
    used and not by what. With `every_node` all of them are, about whatever none has shown to be
    paid.
    """
    nodes, waiting = single_nodes(network), list(entries)
    seen_by_nodes: dict[str, list[PaymentOutcome]] = {entry.id: [] for entry in entries}
    fault = ChainUnavailable("No endpoint is configured.")
    for node in nodes:
        try:
            found = await ask(node, waiting) if waiting else ()
        except ChainUnavailable as error:
            fault = error
            continue
        for entry, one in zip(waiting, found, strict=True):
            seen_by_nodes[entry.id].append(one)
        pairs = zip(waiting, found, strict=True)
        waiting = [entry for entry, one in pairs if _is_open(one, every_node=every_node)]
    if not all(seen_by_nodes.values()):
        raise fault
    enough = min(ENOUGH, len(nodes))
    return [_combined(seen_by_nodes[entry.id], enough, every_node=every_node) for entry in entries]


def _is_open(one: PaymentOutcome, *, every_node: bool) -> bool:
    """Whether the next node is asked as well."""
    if isinstance(one, Undecided):
        return every_node or one.is_used
    return isinstance(one, Rejected)


def _combined(
    seen_by_nodes: Sequence[PaymentOutcome], enough: int, *, every_node: bool
) -> PaymentOutcome:
    """Paid when one shows it; refused, or unused for every node, when all who answer say so."""
    paid = next((one for one in seen_by_nodes if isinstance(one, Settled)), None)
    if paid is not None:
        return paid
    refusals = [one for one in seen_by_nodes if isinstance(one, Rejected)]
    open_ = [one for one in seen_by_nodes if isinstance(one, Undecided)]
    answers = len(refusals) + sum(one.answers for one in open_)
    if refusals and not open_ and len(refusals) >= enough:
        return replace(refusals[-1], is_agreed=enough > 1)
    if refusals:
        return Undecided("one node alone says that nothing will be paid", answers=answers)
    unsure = next((one for one in open_ if not is_unused(one)), None)
    if unsure is not None:
        return replace(unsure, answers=answers)
    if every_node and len(seen_by_nodes) < enough:
        return Undecided("one node alone says that it is not used", answers=answers)
    return replace(open_[0], answers=answers)


POLL_S: Final = 0.1
POLL_MAX_S: Final = 1.0


class Receipts(Port):
    """What a network's endpoints show of transactions."""

    async def depths(self, network: str, watched: Sequence[WatchedPayment]) -> Sequence[int]:
        """In how many blocks each payment stands, its own and those on top of it.

        0 where its transaction is not shown, or did not pay. Of any number of payments few
        exchanges. Raises `Unavailable`.
        """
        ...

    async def agreed_depths(self, network: str, watched: Sequence[WatchedPayment]) -> Sequence[int]:
        """The same by the endpoint that shows each least deep: of two where there are two.

        Of all that answer. Raises `Unavailable`.
        """
        ...


@dataclass(frozen=True, slots=True)
class View:
    """Endpoints that are asked as one."""

    needs: ProtocolDependencies
    receipts: Receipts


class Witness:
    """Says of an outcome whether it stands."""

    def __init__(
        self,
        networks: Mapping[str, PaymentNetwork],
        protocols: Mapping[str, PaymentProtocol],
        first: View,
        others: Mapping[str, View],
        clock: Clock,
        wait_s: float,
    ) -> None:
        """`others`: by network the view without its first endpoint, where it has another."""
        self._networks = networks
        self._protocols = protocols
        self._first = first
        self._others = others
        self._clock = clock
        self._wait_s = wait_s

    @property
    def networks(self) -> Collection[str]:
        """Every network's id."""
        return self._networks

    def views(self, network: str) -> Sequence[View]:
        """The usual one, and the one without the first endpoint where there is any."""
        other = self._others.get(network)
        return (self._first,) if other is None else (self._first, other)

    def is_final(self, network: str, depth: int) -> bool:
        """Whether a payment so deep is looked at no more."""
        return self._networks[network].is_final(depth)

    def protocol(self, entry: LedgerEntry) -> PaymentProtocol:
        """The protocol of an entry."""
        return self._protocols[entry.protocol]

    async def outcome_at(self, entry: LedgerEntry, view: View) -> PaymentOutcome:
        """What became of an entry, as one view says; nothing is sent."""
        return await self.protocol(entry).outcome(entry, view.needs)

    async def outcome_by_all(self, entry: LedgerEntry) -> PaymentOutcome:
        """What became of an entry, as every endpoint says. Raises `Unavailable`."""
        protocol, needs = self.protocol(entry), self._first.needs
        (found,) = await protocol.outcomes([entry], needs, every_node=True)
        return found

    async def judged(
        self, entry: LedgerEntry, found: PaymentOutcome, *, waits: bool
    ) -> PaymentOutcome:
        """The outcome if it stands, what stands instead, or `Undecided`.

        Nothing is asked about what is settled on a network that wants one confirmation. Where it
        wants more, they are waited for if `waits`.
        """
        if isinstance(found, Rejected):
            found = await self._agreed(entry, found)
        if isinstance(found, Settled):
            return await self._deep(entry, found, self._wait_s if waits else 0.0)
        return found

    async def _agreed(self, entry: LedgerEntry, found: Rejected) -> PaymentOutcome:
        """A refusal that the endpoints agree with; what any of them shows of a transfer counts."""
        if entry.network not in self._others or found.is_agreed:
            return found
        try:
            said = await self.outcome_by_all(entry)
        except Unavailable as error:
            return Undecided(f"{found.reason}, says one endpoint: {error.detail or error.message}")
        if isinstance(said, Settled):
            return said
        if isinstance(said, Rejected) or said.is_unused:  # a refusal that moved nothing
            return found
        return replace(said, detail=f"{found.reason}, says one endpoint; all: {said.detail}")

    async def _deep(self, entry: LedgerEntry, found: Settled, wait_s: float) -> PaymentOutcome:
        wanted = self._networks[entry.network].confirmations
        if wanted <= 1:
            return found
        shown = watched_payment(entry, found.transaction)
        deadline_s, pause_s = self._clock.monotonic_s() + wait_s, POLL_S
        while True:
            depth = await self._depth(entry.network, shown)
            if depth >= wanted:
                return found
            if self._clock.monotonic_s() + pause_s > deadline_s:
                return Undecided(f"{depth} of {wanted} confirmations", is_used=True)
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 1.5, POLL_MAX_S)

    async def _depth(self, network: str, shown: WatchedPayment) -> int:
        """How deep a payment is: as the usual view says, or else another that shows it."""
        for view in self.views(network):
            with suppress(Unavailable):
                (depth,) = await view.receipts.depths(network, [shown])
                if depth:
                    return depth
        return 0
