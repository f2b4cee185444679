"""Decides when a payment is final, by the chain's own word (ADR 0019).

If a node shows the money, by a receipt, it is believed whatever the others say; the watcher
compares it with the others afterwards.

If a network has two endpoints or more, no payment ends as refused by the word of one: every other
endpoint is asked. `watcher` looks at settled payments again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, Protocol, TypeAlias

from assay.chains.model import ChainUnavailable, Network
from assay.common.clock import Clock
from assay.common.errors import Unavailable
from assay.payments.model import LedgerEntry, PaymentNetwork, WatchedPayment, watched_payment
from assay.payments.outcomes import PaymentOutcome, Rejected, Settled, Undecided, is_unused
from assay.payments.ports import PaymentProtocol, ProtocolDependencies

Ask: TypeAlias = Callable[[Network, Sequence[LedgerEntry]], Awaitable[Sequence[PaymentOutcome]]]
"""Asks one node about payments. Raises `ChainUnavailable`."""

ENOUGH: Final = 2
"""Nodes that must agree to end a payment as failed, if a network has as many."""


def single_nodes(network: Network) -> list[Network]:
    """Return the network once for each endpoint, with that endpoint alone."""
    return [replace(network, rpc_urls=(url,)) for url in dict.fromkeys(network.rpc_urls)]


async def ask_nodes(
    network: Network, entries: Sequence[LedgerEntry], ask: Ask, *, every_node: bool
) -> list[PaymentOutcome]:
    """Return the outcome of each entry, in order. Raises `ChainUnavailable` if no node answers.

    It asks the first node that answers, and every other one about entries that this node refuses,
    or knows to be used without knowing by what. With `every_node` it asks all nodes about every
    entry that none has shown to be paid.
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
    """Return whether the next node is asked as well."""
    if isinstance(one, Undecided):
        return every_node or one.is_used
    return isinstance(one, Rejected)


def _combined(
    seen_by_nodes: Sequence[PaymentOutcome], enough: int, *, every_node: bool
) -> PaymentOutcome:
    """Return paid if one node shows it; refused, or unused, if all that answer agree."""
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


class Receipts(Protocol):
    """Shows what a network's endpoints know of transactions."""

    async def depths(self, network: str, watched: Sequence[WatchedPayment]) -> Sequence[int]:
        """Return in how many blocks each payment is confirmed, its own block included.

        0 means that its transaction is not shown, or did not pay. Any number of payments takes few
        exchanges. Raises `Unavailable`.
        """
        ...

    async def agreed_depths(self, network: str, watched: Sequence[WatchedPayment]) -> Sequence[int]:
        """Return the least depth of each payment by any endpoint that answers.

        If the network has two endpoints, two must answer. Raises `Unavailable`.
        """
        ...


@dataclass(frozen=True, slots=True)
class View:
    """Endpoints that are asked as one."""

    needs: ProtocolDependencies
    receipts: Receipts


class Witness:
    """Decides whether an outcome stands."""

    def __init__(
        self,
        networks: Mapping[str, PaymentNetwork],
        protocols: Mapping[str, PaymentProtocol],
        first: View,
        others: Mapping[str, View],
        clock: Clock,
        wait_s: float,
    ) -> None:
        """Create it; `others` has the view without the first endpoint, by network, if any."""
        self._networks = networks
        self._protocols = protocols
        self._first = first
        self._others = others
        self._clock = clock
        self._wait_s = wait_s

    @property
    def networks(self) -> Collection[str]:
        """Return every network's id."""
        return self._networks

    def views(self, network: str) -> Sequence[View]:
        """Return the usual view, and the one without the first endpoint if there is one."""
        other = self._others.get(network)
        return (self._first,) if other is None else (self._first, other)

    def is_final(self, network: str, depth: int) -> bool:
        """Return whether a payment at this depth needs no further look."""
        return self._networks[network].is_final(depth)

    def protocol(self, entry: LedgerEntry) -> PaymentProtocol:
        """Return the protocol of an entry."""
        return self._protocols[entry.protocol]

    async def outcome_at(self, entry: LedgerEntry, view: View) -> PaymentOutcome:
        """Return the outcome of an entry by one view; sends nothing."""
        return await self.protocol(entry).outcome(entry, view.needs)

    async def outcome_by_all(self, entry: LedgerEntry) -> PaymentOutcome:
        """Return the outcome of an entry by every endpoint. Raises `Unavailable`."""
        protocol, needs = self.protocol(entry), self._first.needs
        (found,) = await protocol.outcomes([entry], needs, every_node=True)
        return found

    async def judged(
        self, entry: LedgerEntry, found: PaymentOutcome, *, waits: bool
    ) -> PaymentOutcome:
        """Return the outcome if it stands, the outcome that stands instead, or `Undecided`.

        It asks nothing about a settled payment on a network that needs one confirmation. If the
        network needs more, it waits for them if `waits`.
        """
        if isinstance(found, Rejected):
            found = await self._agreed(entry, found)
        if isinstance(found, Settled):
            return await self._deep(entry, found, self._wait_s if waits else 0.0)
        return found

    async def _agreed(self, entry: LedgerEntry, found: Rejected) -> PaymentOutcome:
        """Return a refusal that the endpoints agree on; any of them may show a transfer instead."""
        if entry.network not in self._others or found.is_agreed:
            return found
        try:
            said = await self.outcome_by_all(entry)
        except Unavailable as error:
            return Undecided(f"{found.reason}, says one endpoint: {error.detail or error.message}")
        if isinstance(said, Settled):
            return said
        if isinstance(said, Rejected) or said.is_unused:  # a refusal for which nothing moved
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
        """Return the depth of a payment by the usual view, or by another that shows it."""
        for view in self.views(network):
            with suppress(Unavailable):
                (depth,) = await view.receipts.depths(network, [shown])
                if depth:
                    return depth
        return 0
