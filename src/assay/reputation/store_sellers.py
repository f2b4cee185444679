"""Computes what payers spent at other sellers without getting it back."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Select, and_, func, or_, select, true

from assay.db.engine import Database
from assay.db.schema.everything import chain_fundings, chain_transfers, index_streams
from assay.reputation.ports import Stream
from assay.reputation.store_event_rows import PARAMETERS, is_seller, parts, these, touch

READ_MAX = 20_000
"""Rows of one query."""

OTHER_PAYERS = 20
"""Payers of its own that a seller needs to be unrelated: as many as rung 3 requires."""

_T = chain_transfers.c


async def spent_elsewhere(  # noqa: PLR0913 - the question, as the port asks it
    database: Database,
    network: str,
    payers: Sequence[str],
    side: Sequence[str],
    listed: Collection[str],
    today: int,
    *,
    is_shared: bool,
    until_day: int | None,
) -> Mapping[str, int]:
    """Implement `reputation.ports.EventStore.elsewhere`."""
    spent: dict[str, dict[str, int]] = {}
    for part in parts(payers):
        for seller, payer, total in await _rows(database, _paid(network, part, until_day)):
            spent.setdefault(payer, {})[seller] = int(total)
    sellers = sorted({seller for paid in spent.values() for seller in paid} - set(side))
    unrelated = await _unrelated(database, network, sellers, payers, side)
    if listed:
        unrelated &= frozenset(listed)
    else:
        unrelated &= await _popular(database, network, sellers, payers)
    for payer, seller, total in await _returned(database, network, sorted(unrelated), payers):
        if seller in spent.get(payer, {}):
            spent[payer][seller] = max(0, spent[payer][seller] - int(total))
    unrelated &= await _whole(database, network, sellers, today)
    found = {
        payer: _share(paid, unrelated, side, is_shared=is_shared) for payer, paid in spent.items()
    }
    return {payer: amount for payer, amount in sorted(found.items()) if amount}


def _share(
    paid: Mapping[str, int], unrelated: Collection[str], side: Sequence[str], *, is_shared: bool
) -> int:
    """Return the money lost elsewhere; if shared, each seller vouches only by its part."""
    lost = sum(amount for seller, amount in paid.items() if seller in unrelated)
    if not is_shared:
        return lost
    here = sum(amount for seller, amount in paid.items() if seller in side)
    vouched = sum(amount for seller, amount in paid.items() if seller not in unrelated)
    return lost * here // vouched if here else 0


def _paid(network: str, payers: Sequence[str], until_day: int | None) -> Select[*tuple[Any, ...]]:
    in_time = true() if until_day is None else _T.day <= until_day
    return (
        select(_T.recipient, _T.sender, func.sum(_T.amount))
        .join(index_streams, is_seller(network))
        .where(_T.network == network, _T.sender.in_(payers), _T.sender != _T.recipient, in_time)
        .group_by(_T.recipient, _T.sender)
        .order_by(func.sum(_T.amount).desc(), _T.recipient, _T.sender)
        .limit(READ_MAX)
    )


async def _returned(
    database: Database, network: str, sellers: Sequence[str], payers: Sequence[str]
) -> list[tuple[str, str, int]]:
    """Return payer, seller and the amount the seller returned."""
    known, found = set(payers), list[tuple[str, str, int]]()
    for part in parts(sellers):
        statement = (
            select(_T.recipient, _T.sender, func.sum(_T.amount))
            .where(_T.network == network, _T.sender.in_(part))
            .group_by(_T.recipient, _T.sender)
            .limit(READ_MAX)
        )
        found += [row for row in await _rows(database, statement) if row[0] in known]
    return found


async def _unrelated(
    database: Database,
    network: str,
    sellers: Sequence[str],
    payers: Sequence[str],
    side: Sequence[str],
) -> frozenset[str]:
    """Return sellers that exchanged no money with the side, and funded none of the payers."""
    related: set[str] = set()
    known = set(payers)
    for part in parts(sellers):
        between = select(_T.recipient, _T.sender).where(
            _T.network == network,
            or_(
                and_(_T.sender.in_(part), _T.recipient.in_(side)),
                and_(_T.sender.in_(side), _T.recipient.in_(part)),
            ),
        )
        for recipient, sender in await _rows(database, between):
            related |= {recipient, sender}
        columns = chain_fundings.c
        funded = select(columns.funder, columns.account).where(
            columns.network == network, columns.funder.in_(part)
        )
        rows = await _rows(database, funded.limit(READ_MAX))
        related |= {funder for funder, account in rows if account in known}
    return frozenset(sellers) - related


async def _popular(
    database: Database, network: str, sellers: Sequence[str], payers: Sequence[str]
) -> frozenset[str]:
    """Return sellers with enough payers outside this group."""
    found: set[str] = set()
    for part in parts(sellers):
        statement = (
            select(_T.recipient, func.count(_T.sender.distinct()))
            .where(_T.network == network, _T.recipient.in_(part))
            .where(_T.sender.not_in(payers[:PARAMETERS]))
            .group_by(_T.recipient)
        )
        rows = await _rows(database, statement)
        found |= {seller for seller, others in rows if int(others) >= OTHER_PAYERS}
    return frozenset(found)


async def _whole(
    database: Database, network: str, sellers: Sequence[str], today: int
) -> frozenset[str]:
    """Return sellers that are still read whole, after all other reads; mark each as needed today.

    If rows of a seller are missing, its refunds may be missing too.
    """
    streams = [Stream("payments", network, one) for one in sellers]
    found: set[str] = set()
    for part in parts(streams):
        columns = index_streams.c.subject, index_streams.c.is_whole, index_streams.c.asked_day
        rows = await _rows(database, select(*columns).where(these(part)))
        found |= {seller for seller, is_whole, _ in rows if is_whole}
        stale = [Stream("payments", network, seller) for seller, _, day in rows if day < today]
        await touch(database, stale, today)
    return frozenset(found)


async def _rows(database: Database, statement: Select[*tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    async with database.read() as connection:
        return [tuple(row) for row in (await connection.execute(statement)).all()]
