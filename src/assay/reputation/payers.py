"""Derives payers from transfers and their sources. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from assay.registries.model import OnchainAgent
from assay.reputation.facts import FeedbackEvent
from assay.reputation.model import Payer
from assay.reputation.ports import LedgerPayment
from assay.reputation.rows import Batch, TransferRow
from assay.reputation.rules import MATURE_DAYS

DAYS_KEPT = 30
"""Days of payments kept separately, of those that count in full; earlier ones are added to them."""


@dataclass(frozen=True, slots=True)
class Money:
    """The payments of one network to and from an agent."""

    transfers: Sequence[TransferRow]
    ledger: Sequence[LedgerPayment]
    elsewhere: Mapping[str, int]
    sources: Mapping[str, tuple[str, ...]]
    """Sources of the payers whose funding has been read."""
    pending: frozenset[str]
    proven: frozenset[tuple[str, int]] = frozenset()
    """Transaction and index of the transfers that feedback files proved, including those to
    `former`."""
    former: frozenset[str] = frozenset()
    """Earlier wallets of the agent."""
    resold: Sequence[LedgerPayment] = ()
    """Earnings of resellers from the agent's services, through their own wrappers."""


def joined(batches: Sequence[Batch]) -> Batch:
    """Join ranges of one stream."""
    return Batch(
        feedback=[row for one in batches for row in one.feedback],
        notes=[row for one in batches for row in one.notes],
        owners=[row for one in batches for row in one.owners],
        transfers=[row for one in batches for row in one.transfers],
    )


def with_tail(
    entries: Mapping[tuple[str, int], FeedbackEvent], tail: Batch
) -> Mapping[tuple[str, int], FeedbackEvent]:
    """Merge entries with later events beyond the index."""
    found = dict(entries)
    for row in tail.feedback:
        event = FeedbackEvent(
            *(row.client, row.number, row.rating, row.day, row.uri, row.digest),
            file="unchecked" if row.uri else "none",
        )
        found.setdefault((row.client, row.number), event)
    for note in tail.notes:
        one = found.get((note.client, note.number))
        if one is not None and note.is_revocation:
            found[note.client, note.number] = replace(one, is_revoked=True)
        elif one is not None:
            found[note.client, note.number] = replace(one, responses=one.responses + 1)
    return found


def payers_of(
    moneys: Sequence[Money], agent: OnchainAgent, side: frozenset[str], day: int
) -> tuple[list[Payer], Mapping[str, Sequence[int]]]:
    """Return payers over all networks, and the individual payments of each."""
    payers: dict[str, Payer] = {}
    prices: dict[str, list[int]] = {}
    for money in moneys:
        paid_out = {row.recipient for row in money.transfers if row.sender in side}
        for row in money.transfers:
            is_payment = row.recipient == agent.wallet or (row.tx, row.log) in money.proven
            if is_payment and row.sender in money.sources:
                one = _fresh(payers, row.sender, money, side, paid_out)
                payers[row.sender] = _paid(one, row.amount, row.day, day, row.is_charge)
                prices.setdefault(row.sender, []).append(row.amount)
        for row in money.transfers:
            if row.sender in side and row.recipient in payers:
                one = payers[row.recipient]
                payers[row.recipient] = replace(one, returned=one.returned + row.amount)
        _add_ledger(payers, prices, money, side, day)
        for entry in _resold(money):
            one = _fresh(payers, entry.payer, money, side, paid_out)
            payers[entry.payer] = _paid_others(one, entry.amount, entry.day, day)
    return [payers[one] for one in sorted(payers)], prices


def _add_ledger(
    payers: dict[str, Payer],
    prices: dict[str, list[int]],
    money: Money,
    side: frozenset[str],
    day: int,
) -> None:
    """Add payments to the agent that appear in our own ledger but not in any read transfer."""
    seen = {row.tx for row in money.transfers}
    for entry in money.ledger:
        if entry.tx.lower() not in seen:
            one = payers.get(entry.payer) or Payer(entry.payer, {}, counts_as_customer=False)
            one = replace(one, is_own=one.is_own or entry.payer in side)
            payers[entry.payer] = _paid(one, entry.amount, entry.day, day, is_charge=True)
            prices.setdefault(entry.payer, []).append(entry.amount)


def _resold(money: Money) -> Sequence[LedgerPayment]:
    """Return payments to resellers, except by accounts they funded and those counted here."""
    seen = {row.tx for row in money.transfers}
    return [
        one
        for one in money.resold
        if one.tx not in seen and one.payee not in money.sources.get(one.payer, (one.payee,))
    ]


def _fresh(
    payers: Mapping[str, Payer],
    address: str,
    money: Money,
    side: frozenset[str],
    paid_out: set[str],
) -> Payer:
    """Return the payer with the source of its money on this network."""
    known = payers.get(address) or Payer(address, {})
    sources = money.sources[address]
    own = address in side or any(one in side or one in paid_out for one in sources)
    return replace(
        known,
        elsewhere=max(known.elsewhere, money.elsewhere.get(address, 0)),
        sources=tuple(dict.fromkeys((*known.sources, *sources))),
        is_own=known.is_own or own,
        is_pending=known.is_pending or address in money.pending,
    )


def _paid_others(payer: Payer, amount: int, at: int, today: int) -> Payer:
    """Add a payment to a reseller of the agent."""
    return replace(payer, resold=_paid(Payer("", payer.resold), amount, at, today, True).spent)  # noqa: FBT003


def _paid(payer: Payer, amount: int, at: int, today: int, is_charge: bool) -> Payer:  # noqa: FBT001 - a column
    """Add one payment and keep the number of days bounded."""
    spent = dict(payer.spent)
    spent[at] = spent.get(at, 0) + amount
    ripe = sorted(one for one in spent if one <= today - MATURE_DAYS)
    if len(ripe) > DAYS_KEPT:
        spent[ripe[1]] += spent.pop(ripe[0])
    return replace(payer, spent=spent, is_charge=payer.is_charge or is_charge)
