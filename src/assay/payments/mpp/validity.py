"""Whether an MPP payment can still be taken once the upstream has answered.

A stock client's transaction is good for 25 s (mppx 0.11) or 60 s (pympp 0.16), whatever the
wrapper's time. So one must be good for the upstream's time or for `STOCK_S`, whichever is less, and
the upstream gets no longer than its payment and its challenge last (ADR 0019).
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from assay.common.clock import iso
from assay.common.json import JsonObject
from assay.payments.model import PaymentRefused, Quote
from assay.payments.mpp.tempo_fees import Validity, validity_of

MARGIN_S = 8.0
"""Seconds of a transaction that are not the upstream's: five that it may be late, three for
settling. Blocks come twice a second."""

STOCK_S = 20.0
"""What is left of the 25 s of a stock transaction when it has come here, slowly."""

BRIEF_S = 60.0
"""Challenges that the operator makes briefer stay so: some chains take no transaction that is valid
for longer than 30 s, and clients sign until their challenge ends."""

_EXPIRED = "payment-expired"


def challenge_life(quote: Quote, ttl: timedelta) -> timedelta:
    """How long a challenge may be paid: time to sign it, and then for the whole of the work."""
    if quote.settles_first or ttl.total_seconds() < BRIEF_S:
        return ttl
    return max(ttl, ttl / 2 + timedelta(seconds=quote.work_s + MARGIN_S))


def challenge_needed_s(quote: Quote, ttl: timedelta) -> float:
    """How long a challenge must still be good, to be forwarded for."""
    if quote.settles_first:
        return 0.0
    needed_s, ttl_s = quote.work_s + MARGIN_S, ttl.total_seconds()
    return needed_s if ttl_s >= BRIEF_S else min(needed_s, ttl_s / 2)


def least_work_s(ttl: timedelta) -> float:
    """What the briefest transaction that is taken may leave the upstream."""
    return min(STOCK_S, ttl.total_seconds() / 2) - MARGIN_S


def require_challenge_time(
    expires: datetime, quote: Quote, now: datetime, ttl: timedelta, digest: str
) -> float:
    """The seconds the upstream may take, of a challenge that outlives its work.

    Raises `PaymentRefused`.
    """
    needed_s, left_s = challenge_needed_s(quote, ttl), (expires - now).total_seconds()
    if left_s < needed_s:
        message = f"The challenge must be good for {needed_s:g} more seconds."
        raise PaymentRefused(_EXPIRED, message, digest=digest)
    return quote.work_s if quote.settles_first else min(quote.work_s, max(left_s - MARGIN_S, 0.0))


def work_left_s(quote: Quote, ends_s: Iterable[float], now: datetime) -> float:
    """The seconds the upstream may take of a payment that is claimed, and may have waited since."""
    if quote.settles_first:
        return quote.work_s
    left_s = min(ends_s) - now.timestamp()
    return min(quote.work_s, max(left_s - MARGIN_S, 0.0))


def bounded_validity(credential: JsonObject, latest: datetime) -> Validity:
    """When the payer's transaction can be mined, by then at the latest. Raises `PaymentRefused`.

    One without an end could take the money long after its payment has failed.
    """
    validity = validity_of(credential)
    if validity.before is None or validity.before > latest.timestamp():
        message = f"The transaction must end (valid_before) by {iso(latest)}."
        raise PaymentRefused("verification-failed", message)
    return validity


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
