"""What our key has still to pay for, in SQL: counted over all processes."""

from sqlalchemy import BigInteger, ColumnElement, ScalarSelect, and_, bindparam, func, select

from assay.db.schema.everything import payments
from assay.payments.model import PaymentState

LIVE_CLAIM = and_(
    payments.c.state == PaymentState.CLAIMED, payments.c.lease_us > bindparam("now_us")
)
"""One that a process is working on."""


def _count_of(*which: ColumnElement[bool]) -> ScalarSelect[int]:
    # The network as an expression: else SQLite takes its index, and reads every payment there.
    network = payments.c.network.concat("") == bindparam("a_network")
    wanted = (network, payments.c.gas_payer != "", *which)
    return select(func.count()).where(*wanted).scalar_subquery()


_SINCE = bindparam("since_us", type_=BigInteger())
IN_FLIGHT = select(
    (
        _count_of(LIVE_CLAIM)
        + _count_of(payments.c.state == PaymentState.SETTLING)
        + _count_of(payments.c.state == PaymentState.PENDING)
        + _count_of(payments.c.settled_us >= _SINCE)
        # What failed on the chain has spent gas, while a process had it leased.
        + _count_of(payments.c.state == PaymentState.FAILED, payments.c.lease_us >= _SINCE)
    ).label("total")
)
"""By an index each: nothing that ended earlier is read."""
