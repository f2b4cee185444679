"""What upstreams know paid calls by: one key for a payment's run of a request, however often. Pure.

The row of a payment keeps a secret of its own, which no other request that it is sent with changes,
nor a change of the service's secrets; each request's key is made of it.
"""

import hashlib
from uuid import UUID

from assay.common.keyring import MacKeys
from assay.payments.model import LedgerEntry, Payment


def payment_secret(keys: MacKeys, payment: Payment) -> str:
    """Of a payment's identity alone; nobody without the keys can tell it."""
    network = payment.quote.network
    said = (network.id, network.asset.address, payment.payer, payment.nonce)
    return keys.mac("\0".join(said).encode("utf-8", "surrogateescape"))[:16].hex()


def carried_secret(known: LedgerEntry, fresh: LedgerEntry) -> str:
    """That of a new claim on an entry nobody works on: its upstream may have run already."""
    is_same = known.request_digest == fresh.request_digest
    kept = known.idempotency_key
    return kept if kept and (is_same or not _is_older(kept)) else fresh.idempotency_key


def upstream_key(entry: LedgerEntry) -> str:
    """A UUID, which every upstream with such keys takes; empty for rows older than the keys."""
    secret = entry.idempotency_key
    if not secret or _is_older(secret):
        return secret
    said = f"assay.upstream-key {secret} {entry.request_digest}"
    return str(UUID(bytes=hashlib.sha256(said.encode()).digest()[:16], version=4))


def _is_older(secret: str) -> bool:
    """Whether it is the key itself, of one request: so earlier versions have written it."""
    return "-" in secret
