"""The SQL statements of the payment ledger, each built once.

Building a statement costs more than running it, and a payment runs a dozen.
"""

from functools import lru_cache

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Insert,
    Integer,
    ScalarSelect,
    Text,
    Update,
    bindparam,
    case,
    func,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

from assay.db.connect import DatabaseKind
from assay.db.schema.everything import paid_responses, payments
from assay.payments.model import CUT_SHORT, PaymentState

_IN_FLIGHT = (PaymentState.CLAIMED, PaymentState.SETTLING, PaymentState.PENDING)

BEING_SETTLED = (
    select(func.count())
    .select_from(payments)
    .where(payments.c.state.in_((PaymentState.SETTLING, PaymentState.PENDING)))
)
"""Counts them; they are few, and are found by their state."""

_OF_THE_PAYER = (
    payments.c.network == bindparam("a_network"),
    payments.c.asset == bindparam("an_asset"),
    payments.c.payer == bindparam("a_payer"),
)
_IS_THE_ONE = payments.c.nonce == bindparam("a_nonce")
INSERT = insert(payments)
BY_KEY = select(payments).where(*_OF_THE_PAYER, _IS_THE_ONE).with_for_update()
"""Nobody moves the row before the work that depends on it is committed."""
BY_DIGEST = select(payments).where(
    payments.c.network == bindparam("a_network"), payments.c.digest == bindparam("a_digest")
)
_AS_READ = (payments.c.id == bindparam("an_id"), payments.c.moves == bindparam("moves_read"))


@lru_cache(maxsize=256)
def writing(columns: frozenset[str]) -> Update:
    """Return a statement that writes some columns of a row that is still as it was read.

    There are few such sets. A column that is not named costs nothing: its index is not touched.
    """
    named = sorted(columns)
    return update(payments).where(*_AS_READ).values({name: bindparam(name) for name in named})


TAKE_OVER = (
    update(payments)
    .where(*_AS_READ)
    .values({c.name: bindparam(c.name) for c in payments.c if c.name != "id"})
)
PUTTING_OFF = (
    "state",
    "reason",
    "lease_us",
    "updated_us",
    "moves",
    "look_us",
    "questions",
    "misses",
    "is_used",
)
PUT_OFF = writing(frozenset(PUTTING_OFF))
_OPEN = or_(payments.c.state == PaymentState.SETTLING, payments.c.state == PaymentState.PENDING)
_look_us = bindparam("a_look_us", type_=BigInteger)
_IS_SOONER = payments.c.look_us < _look_us
_IS_LEASED = payments.c.lease_us == bindparam("leased_us", type_=BigInteger)
PUT_OFF_ALL = (
    update(payments)
    .where(payments.c.network == bindparam("a_network"), _OPEN, or_(_IS_SOONER, _IS_LEASED))
    .values(
        look_us=case((_IS_SOONER, _look_us), else_=payments.c.look_us),
        misses=bindparam("the_misses", type_=Integer),
        lease_us=case(
            (_IS_LEASED, bindparam("now_us", type_=BigInteger)), else_=payments.c.lease_us
        ),
        state=case((_IS_LEASED, PaymentState.PENDING.value), else_=payments.c.state),
        reason=case((_IS_LEASED, bindparam("a_reason", type_=Text)), else_=payments.c.reason),
    )
)
_DUE = (
    payments.c.network == bindparam("a_network"),
    _OPEN,
    payments.c.lease_us < bindparam("free_us"),
    payments.c.look_us <= bindparam("due_us"),
)
_turn = func.row_number().over(
    partition_by=payments.c.payer,
    order_by=(payments.c.look_us, payments.c.created_us, payments.c.id),
)
_due = select(payments.c.id, payments.c.look_us, _turn.label("turn")).where(*_DUE).subquery()
_leased = (
    select(_due.c.id)
    .where(_due.c.turn <= bindparam("of_payer"))
    .order_by(_due.c.turn, _due.c.look_us, _due.c.id)
    .limit(bindparam("limit"))
)
LEASE = (
    update(payments)
    # Check again what is due: of two concurrent calls, the second waits and checks again.
    .where(payments.c.id.in_(_leased), *_DUE)
    .values(lease_us=bindparam("until_us"), moves=payments.c.moves + 1)
    .returning(*payments.c)
)
_MARK = 1_000_000_007
_FEES = payments.c.fee_most
COMMITTED = select(
    func.coalesce(
        func.sum(
            payments.c.amount + case((payments.c.fee_token == payments.c.asset, _FEES), else_=0)
        ),
        0,
    ).label("amount"),
    func.coalesce(
        func.sum(case((payments.c.fee_token == bindparam("a_fee_token"), _FEES), else_=0)), 0
    ).label("fees"),
    func.coalesce(func.sum(case((payments.c.state != PaymentState.CLAIMED, 1), else_=0)), 0).label(
        "sent"
    ),
    # Each change has a time of its own: a sum of a few thousand whole times would not fit.
    func.coalesce(func.sum(payments.c.updated_us % _MARK), 0).label("mark"),
).where(
    *_OF_THE_PAYER,
    payments.c.nonce != bindparam("a_nonce"),
    or_(*(payments.c.state == state for state in _IN_FLIGHT)),
    or_(payments.c.state != PaymentState.CLAIMED, payments.c.lease_us > bindparam("now_us")),
)


def _failures(*which: ColumnElement[bool]) -> ScalarSelect[int]:
    since = payments.c.updated_us >= bindparam("since_us")
    of_them = select(func.count()).select_from(payments)
    return of_them.where(*_OF_THE_PAYER, *which, since).correlate(None).scalar_subquery()


OF_A_CLAIM = COMMITTED.add_columns(
    (
        _failures(payments.c.state == PaymentState.FAILED)
        + _failures(payments.c.state == PaymentState.RELEASED, payments.c.reason == CUT_SHORT)
    ).label("failures")
)
"""The same, with the payer's failures, each by its state: with both in one condition, all of a
payer's payments were read."""
HAS_PAID = (
    select(payments.c.nonce)
    .where(
        *_OF_THE_PAYER,
        or_(payments.c.state == PaymentState.SETTLED, payments.c.state == PaymentState.DELIVERED),
    )
    .limit(1)
)
REUSED = select(payments.c.nonce).where(
    *_OF_THE_PAYER,
    payments.c.operator_id == bindparam("an_operator"),
    payments.c.identifier == bindparam("an_identifier"),
    payments.c.nonce != bindparam("a_nonce"),
)
STORED = select(paid_responses).where(paid_responses.c.payment_id == bindparam("an_id"))
STORED_BYTES = select(func.length(paid_responses.c.body).label("size")).where(
    paid_responses.c.payment_id == bindparam("an_id")
)


@lru_cache(maxsize=2)
def storing(kind: DatabaseKind) -> Insert:
    """Return the statement that replaces what a payment had bought."""
    made = (sqlite_insert if kind == "sqlite" else postgresql_insert)(paid_responses)
    columns = {column.name: column for column in made.excluded if column.name != "payment_id"}
    return made.on_conflict_do_update(index_elements=["payment_id"], set_=columns)
