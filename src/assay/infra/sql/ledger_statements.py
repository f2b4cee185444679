"""The statements of the payment ledger, each made once.

Making a statement costs more than running it, and a payment runs a dozen.
"""

from sqlalchemy import bindparam, case, delete, func, insert, or_, select, update

from assay.infra.sql.tables import paid_responses, payments
from assay.payments.model import State

_IN_FLIGHT = (State.CLAIMED, State.SETTLING, State.PENDING)

BEING_SETTLED = (
    select(func.count())
    .select_from(payments)
    .where(payments.c.state.in_((State.SETTLING, State.PENDING)))
)
"""How many; they are few, and found by their state."""

_OF_THE_PAYER = (
    payments.c.network == bindparam("a_network"),
    payments.c.asset == bindparam("an_asset"),
    payments.c.payer == bindparam("a_payer"),
)
_IS_THE_ONE = payments.c.nonce == bindparam("a_nonce")
INSERT = insert(payments)
BY_KEY = select(payments).where(*_OF_THE_PAYER, _IS_THE_ONE)
BY_DIGEST = select(payments).where(
    payments.c.network == bindparam("a_network"), payments.c.digest == bindparam("a_digest")
)
_AS_READ = (payments.c.id == bindparam("an_id"), payments.c.moves == bindparam("moves_read"))
CHANGING = ("state", "tx", "raw_tx", "reason", "lease_us", "updated_us", "moves", "settled_us")
MOVE = update(payments).where(*_AS_READ).values({name: bindparam(name) for name in CHANGING})
TAKE_OVER = (
    update(payments)
    .where(*_AS_READ)
    .values({c.name: bindparam(c.name) for c in payments.c if c.name != "id"})
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
    func.coalesce(func.sum(case((payments.c.state != State.CLAIMED, 1), else_=0)), 0).label("sent"),
    # Each change has a moment of its own; of whole moments a sum of a few thousand would not fit.
    func.coalesce(func.sum(payments.c.updated_us % _MARK), 0).label("mark"),
).where(
    *_OF_THE_PAYER,
    payments.c.nonce != bindparam("a_nonce"),
    or_(*(payments.c.state == state for state in _IN_FLIGHT)),
    or_(payments.c.state != State.CLAIMED, payments.c.lease_us > bindparam("now_us")),
)
FAILURES = (
    select(func.count().label("total"))
    .select_from(payments)
    .where(
        *_OF_THE_PAYER,
        payments.c.state == State.FAILED,
        payments.c.updated_us >= bindparam("since_us"),
    )
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
FORGET = delete(paid_responses).where(paid_responses.c.payment_id == bindparam("an_id"))
STORE = insert(paid_responses)
