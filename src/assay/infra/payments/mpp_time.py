"""Whether an MPP payment can still be taken once the upstream has answered.

A stock client's transaction is good for 25 s (mppx 0.11) or 60 s (pympp 0.16), whatever the
wrapper's time. So one must be good for the upstream's time or for `STOCK_S`, whichever is less, and
the upstream gets no longer than its payment lasts (ADR 0019).
"""

from datetime import datetime, timedelta

from assay.infra.payments.tempo_fees import Validity
from assay.payments.model import PaymentRefused, Quote

MARGIN_S = 8.0
"""Seconds of a transaction that are not the upstream's: five that it may be late, three for
settling. Blocks come twice a second."""

STOCK_S = 20.0
"""What is left of the 25 s of a stock transaction when it has come here, slowly."""

_EXPIRED = "payment-expired"


def require_challenge_time(
    expires: datetime, quote: Quote, now: datetime, ttl: timedelta, digest: str
) -> None:
    """A challenge must outlive the upstream's work, or its payment could not be taken.

    Raises `PaymentRefused`.
    """
    needed_s = min(quote.work_s, ttl.total_seconds() / 2)
    if not quote.settles_first and (expires - now).total_seconds() < needed_s:
        message = f"The challenge must be good for {needed_s:g} more seconds."
        raise PaymentRefused(_EXPIRED, message, digest=digest)


def require_transaction_time(
    validity: Validity, quote: Quote, now: datetime, ttl: timedelta, digest: str
) -> float:
    """The seconds the upstream may take, of a transaction that is good now and for long enough.

    Raises `PaymentRefused`.
    """
    now_s = now.timestamp()
    if validity.after is not None and validity.after > now_s:
        message = "The transaction is not valid yet: sign one that is."
        raise PaymentRefused("verification-failed", message)
    if validity.before is None:
        return quote.work_s
    left_s, needed_s = validity.before - now_s, MARGIN_S
    if not quote.settles_first:
        needed_s = min(quote.work_s + MARGIN_S, STOCK_S, ttl.total_seconds() / 2)
    if left_s < needed_s:
        message = f"The transaction must be valid for {needed_s:g} more seconds."
        raise PaymentRefused(_EXPIRED, message, digest=digest)
    return quote.work_s if quote.settles_first else min(quote.work_s, max(left_s - MARGIN_S, 0.0))
