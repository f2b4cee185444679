"""What the nodes of a network say of payments together: no refusal on the word of one.

A node that shows the money is believed, whatever the others say: what it shows is a receipt, and
the watcher holds it against them afterwards (ADR 0019).
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from assay.chains.model import ChainUnavailable, Network
from assay.payments.model import LedgerEntry
from assay.payments.outcomes import PaymentOutcome, Rejected, Settled, Undecided, is_unused

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
