"""The entry that a new claim writes into the ledger. Pure, but for its id."""

from datetime import datetime

from assay.common.ids import new_id
from assay.common.keyring import MacKeys
from assay.payments.buyer import marked
from assay.payments.model import LedgerEntry, Payment, PaymentState
from assay.payments.outcomes import SettlementAttempt
from assay.payments.requests import PaidRequest, request_digest
from assay.payments.upstream_keys import payment_secret


def fresh_entry(
    payment: Payment, request: PaidRequest, keys: MacKeys, now: datetime, *, publishes: bool
) -> LedgerEntry:
    """The claim of a payment for a request, with a lease that is over.

    `keys` make what its upstream knows it by; `publishes`, whether settling shows its credential.
    """
    quote = payment.quote
    credential = payment.credential
    if publishes:
        credential = marked(credential, payment.token, request.caller)
    return LedgerEntry(
        id=new_id(),
        protocol=quote.network.protocol,
        network=quote.network.id,
        asset=quote.network.asset.address,
        payer=payment.payer,
        nonce=payment.nonce,
        digest=payment.digest,
        amount=quote.amount,
        pay_to=quote.pay_to,
        operator_id=quote.operator_id,
        wrapper_id=quote.wrapper_id,
        request_digest=request_digest(quote.wrapper_id, request),
        state=PaymentState.CLAIMED,
        attempt=SettlementAttempt(""),
        reason="",
        credential=credential,
        version=payment.version,
        identifier=payment.identifier,
        fees=payment.fees,
        fee_rate=quote.fee_rate,
        direct_fee=quote.direct_fee,
        expires_at=payment.expires_at,
        lease_until=now,
        created_at=now,
        updated_at=now,
        wrapper_revision=quote.revision,
        idempotency_key=payment_secret(keys, payment),
    )
