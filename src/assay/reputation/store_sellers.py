"""Rows of stored events, and what payers paid to an agent and to other sellers.

Converts between rows of the event tables and values.

Computes what payers spent at other sellers without getting it back.

Reads settled payments of our own ledger as payments of an agent's customers.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Row,
    Select,
    Table,
    and_,
    false,
    func,
    or_,
    select,
    true,
    tuple_,
    update,
)

from assay.control.ports import FOLLOWS_US
from assay.control.scope import scope_key, scope_of
from assay.db.engine import Database
from assay.db.schema.everything import (
    chain_feedback,
    chain_fundings,
    chain_notes,
    chain_owners,
    chain_proofs,
    chain_transfers,
    control_keys,
    index_streams,
    payments,
    wrapper_revisions,
)
from assay.reputation.events import DAY_S
from assay.reputation.model import Batch
from assay.reputation.ports import EventCursor, LedgerPayment, Stream

PARAMETERS = 500
"""Values in one statement, below the limits of both databases."""

ROWS_LOCK = "rows of the index"
"""Lock for adding and removing rows, so that no row of a stored range is missing."""

BY_BLOCK = (
    *(chain_feedback, chain_notes, chain_owners),
    *(chain_transfers, chain_fundings, chain_proofs),
)
"""Tables whose rows are deleted with a reorganised block."""

_S = index_streams.c


def _is_seller(network: str) -> ColumnElement[bool]:
    """Match a recipient whose payments are read."""
    return and_(
        _S.kind == "payments",
        _S.network == network,
        _S.subject == chain_transfers.c.recipient,
    )


def these(streams: Sequence[Stream]) -> ColumnElement[bool]:
    """Match the rows of these streams by key: SQLite scans all rows for a list of triples."""
    subjects: dict[tuple[str, str], list[str]] = {}
    for one in streams:
        subjects.setdefault((one.kind, one.network), []).append(one.subject)
    return or_(
        false(),
        *(
            and_(_S.kind == kind, _S.network == network, _S.subject.in_(of))
            for (kind, network), of in subjects.items()
        ),
    )


def parts(values: Sequence[Any]) -> Sequence[Any]:
    """Split values into parts that fit one statement each."""
    return [values[at : at + PARAMETERS] for at in range(0, len(values), PARAMETERS)]


async def touch(database: Database, streams: Sequence[Stream], day: int) -> None:
    """Record that an evaluation needed them on that day."""
    for part in parts(streams):
        needed = update(index_streams).where(these(part), _S.asked_day < day)
        async with database.write() as connection:
            await database.lock(connection, ROWS_LOCK)
            await connection.execute(needed.values(asked_day=day))


def stream_row(stream: Stream, block: int, day: int) -> dict[str, Any]:
    """Return the row of a stream that begins after a block, needed on that day."""
    return {
        "kind": stream.kind,
        "network": stream.network,
        "subject": stream.subject,
        "block": block,
        "block_hash": "",
        "rows": 0,
        "is_done": False,
        "is_whole": False,
        "asked_day": day,
    }


def stream_of(row: Row[Any]) -> Stream:
    """Return the stream of a row."""
    return Stream(row.kind, row.network, row.subject)


def cursor_of(row: Row[Any]) -> EventCursor:
    """Return how far the stream of a row was read."""
    return EventCursor(row.block, row.block_hash, bool(row.is_done), bool(row.is_whole))


def _names(row: object) -> Sequence[str]:
    return tuple(getattr(row, "__slots__", ()))


def rows_of(network: str, batch: Batch) -> Sequence[tuple[Table, list[dict[str, Any]]]]:
    """Return the rows of a batch for each table."""

    def of(row: object, **more: object) -> dict[str, Any]:
        return {"network": network, **{n: getattr(row, n) for n in _names(row)}, **more}

    return (
        (chain_feedback, [of(r, file="unchecked" if r.uri else "none") for r in batch.feedback]),
        (chain_notes, [of(r) for r in batch.notes]),
        (chain_owners, [of(r) for r in batch.owners]),
        (chain_transfers, [of(r) for r in batch.transfers]),
        (
            chain_fundings,
            [
                {"network": network, "account": a, "funder": f, "block": b}
                for a, (f, b) in sorted(batch.fundings.items())
            ],
        ),
    )


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
        for seller, payer, total in await _tuples(database, _paid(network, part, until_day)):
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
        .join(index_streams, _is_seller(network))
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
        found += [row for row in await _tuples(database, statement) if row[0] in known]
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
        for recipient, sender in await _tuples(database, between):
            related |= {recipient, sender}
        columns = chain_fundings.c
        funded = select(columns.funder, columns.account).where(
            columns.network == network, columns.funder.in_(part)
        )
        rows = await _tuples(database, funded.limit(READ_MAX))
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
        rows = await _tuples(database, statement)
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
        rows = await _tuples(database, select(*columns).where(these(part)))
        found |= {seller for seller, is_whole, _ in rows if is_whole}
        stale = [Stream("payments", network, seller) for seller, _, day in rows if day < today]
        await touch(database, stale, today)
    return frozenset(found)


async def _tuples(database: Database, statement: Select[*tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    async with database.read() as connection:
        return [tuple(row) for row in (await connection.execute(statement)).all()]


RESELLERS_MAX: Final = 200
"""Wrappers of one agent's services that are examined, each as often as it changed."""

ENDPOINTS_MAX: Final = 50
KEYS_MAX: Final = 500

US_PER_DAY: Final = DAY_S * 1_000_000
_P, _W, _K = payments.c, wrapper_revisions.c, control_keys.c


async def paid_to(
    database: Database, network: str, payees: Sequence[str]
) -> Sequence[LedgerPayment]:
    """Implement `reputation.ports.EventStore.ledger`."""
    statement = (
        select(payments)
        .where(_P.network == network, func.lower(_P.pay_to).in_(payees))
        .where(_P.settled_us.is_not(None), _P.state == "settled")
        .order_by(_P.settled_us.desc())
        .limit(READ_MAX)
    )
    return [_payment(row) for row in await _ledger_rows(database, statement)]


async def resold(
    database: Database,
    network: str,
    subject_key: str,
    endpoints: Sequence[str],
    side: Collection[str],
    now_us: int,
) -> Sequence[LedgerPayment]:
    """Implement `reputation.ports.EventStore.resold`."""
    targets = await _proven(database, subject_key, endpoints, now_us)
    if not targets:
        return []
    sold = (
        select(_W.wrapper_id, _W.revision, _W.operator_id)
        .where(_W.target_url.in_(sorted(targets)))
        .order_by(_W.at_us.desc(), _W.wrapper_id)
        .limit(RESELLERS_MAX)
    )
    wrappers = await _ledger_rows(database, sold)
    tied = await _tied(database, {row.operator_id for row in wrappers}, side)
    known = [row for row in wrappers if row.operator_id not in tied]
    if not known:
        return []
    of = tuple_(_P.wrapper_id, _P.wrapper_revision)
    statement = (
        select(payments)
        .where(_P.network == network, _P.operator_id.in_({row.operator_id for row in known}))
        .where(of.in_([(row.wrapper_id, row.revision) for row in known]))
        .where(_P.settled_us.is_not(None), _P.state == "settled")
        .order_by(_P.settled_us.desc(), _P.id)
        .limit(READ_MAX)
    )
    found = [_payment(row) for row in await _ledger_rows(database, statement)]
    payouts = {one.payee for one in found} | set(side)
    return [one for one in found if one.payer not in payouts]


async def _proven(
    database: Database, subject_key: str, endpoints: Sequence[str], now_us: int
) -> frozenset[str]:
    """Return declared addresses, and their origins, of which the agent proved control."""
    statement = (
        select(_K.key)
        .where(_K.subject_key == subject_key, _K.proof != "site", _K.disputed.is_(False))
        .where(_K.seen_us >= now_us - FOLLOWS_US)
        .limit(KEYS_MAX)
    )
    keys = {row.key for row in await _ledger_rows(database, statement)}
    found: set[str] = set()
    for endpoint in endpoints[:ENDPOINTS_MAX] if keys else ():
        scope = scope_of(endpoint)
        if scope is None or scope.is_exact or not endpoint.isprintable():
            continue
        segments = scope.segments
        covers = {scope_key(scope.origin, "/".join(segments[:n])) for n in range(len(segments) + 1)}
        if covers & keys:
            found.add(endpoint.rstrip("/"))
        if scope_key(scope.origin, "") in keys:
            found.add(scope.shown_origin)
    return frozenset(found)


async def _tied(
    database: Database, operators: Collection[str], side: Collection[str]
) -> frozenset[str]:
    """Return operators that have or had a wrapper that pays one of the agent's side."""
    statement = (
        select(_W.operator_id)
        .where(_W.operator_id.in_(operators))
        .where(func.lower(_W.payout_address).in_(side))
        .distinct()
    )
    return frozenset(row.operator_id for row in await _ledger_rows(database, statement))


def _payment(row: Row[Any]) -> LedgerPayment:
    return LedgerPayment(
        *(row.payer.lower(), row.amount, row.settled_us // US_PER_DAY, row.tx.lower()),
        payee=row.pay_to.lower(),
    )


async def _ledger_rows(
    database: Database, statement: Select[*tuple[Any, ...]]
) -> Sequence[Row[Any]]:
    async with database.read() as connection:
        return (await connection.execute(statement)).all()
