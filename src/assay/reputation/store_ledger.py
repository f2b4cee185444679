"""Reads settled payments of our own ledger as payments of an agent's customers."""

from collections.abc import Collection, Sequence
from typing import Any, Final

from sqlalchemy import Row, Select, func, select, tuple_

from assay.control.ports import FOLLOWS_US
from assay.control.scope import scope_key, scope_of
from assay.db.engine import Database
from assay.db.schema.everything import control_keys, payments, wrapper_revisions
from assay.reputation.events import DAY_S
from assay.reputation.ports import LedgerPayment
from assay.reputation.store_sellers import READ_MAX

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
    return [_payment(row) for row in await _rows(database, statement)]


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
    wrappers = await _rows(database, sold)
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
    found = [_payment(row) for row in await _rows(database, statement)]
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
    keys = {row.key for row in await _rows(database, statement)}
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
    return frozenset(row.operator_id for row in await _rows(database, statement))


def _payment(row: Row[Any]) -> LedgerPayment:
    return LedgerPayment(
        *(row.payer.lower(), row.amount, row.settled_us // US_PER_DAY, row.tx.lower()),
        payee=row.pay_to.lower(),
    )


async def _rows(database: Database, statement: Select[*tuple[Any, ...]]) -> Sequence[Row[Any]]:
    async with database.read() as connection:
        return (await connection.execute(statement)).all()
