"""Signs receipts of paid answers, and checks them offline (ADR 0052).

A receipt binds a decision, a request, a payment and a response. It is a compact JWS by ES256 (RFC
7518, section 3.4) under the keys of decision tokens; its `typ` keeps the two apart. Digests have
the form of RFC 9530, section 2: `sha-256=:BASE64:`.
"""

import base64
import hashlib
import json
from collections.abc import Sequence
from typing import Final

from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import ECKey

from assay.common.http_heads import HeaderPairs
from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.gate.decision_token import ALGORITHM, Es256DecisionSigner
from assay.payments.model import LedgerEntry, StoredResponse, since
from assay.wrappers.model import AdmittedAgent, Trust

HEADER: Final = b"x-assay-receipt"
"""The header of a paid answer. No upstream can set it (`response_fields`)."""

RECEIPT_TYPE: Final = "assay-receipt+jwt"
"""`typ` of a receipt, so that none is taken for a decision token, or the reverse (RFC 8725,
section 3.11)."""

RECEIPT_CHARS_MAX: Final = 4096
"""Longest receipt: common clients bound one header line at 8 KiB."""

_KEYS_MAX: Final = 100
_MEMBERS: Final = ("kty", "crv", "x", "y")


class InvalidReceipt(ValueError):
    """It is no receipt, or its signature is by none of the keys; the message says which."""


class SignedReceipts:
    """Makes the receipts of one service."""

    def __init__(self, signer: Es256DecisionSigner, issuer: str) -> None:
        """Create it; `issuer` is the service's public address, the `iss` of every receipt."""
        self._signer = signer
        self._issuer = issuer

    def header(self, entry: LedgerEntry, stored: StoredResponse) -> HeaderPairs:
        """Return the header with the receipt of what a settled payment bought.

        Its claims are the same whenever the answer is sent, unless the chain names another
        transaction. Empty for an answer that was stored without its facts, by an earlier version.
        """
        facts = json.loads(stored.receipt) if stored.receipt else None
        if not is_object(facts):
            return ()
        claims: dict[str, JsonValue] = {
            "iss": self._issuer,
            "iat": int(since(entry).timestamp()),
            "jti": entry.id,
            "operator": entry.operator_id,
            "wrapper": entry.wrapper_id,
            "wrapperRevision": entry.wrapper_revision,
            "payment": {
                "protocol": entry.protocol,
                "network": entry.network,
                "asset": entry.asset,
                "amount": str(entry.amount),
                "payTo": entry.pay_to,
                "payer": entry.payer,
                "transaction": entry.attempt.transaction,
            },
            **facts,
        }
        token = self._signer.sign(claims, RECEIPT_TYPE)
        return ((HEADER, token.encode()),) if len(token) <= RECEIPT_CHARS_MAX else ()


def facts_of(method: str, target: str, body: bytes, stored: StoredResponse, trust: Trust) -> str:
    """Return what a receipt says of a call beside its payment, as JSON.

    `target` is path and query as they were sent. The agent is left out if the wrapper requires no
    trust.
    """
    facts: dict[str, JsonValue] = {
        "request": {
            "method": method,
            "target": digest_of(target.encode("utf-8", "surrogateescape")),
            "contentDigest": digest_of(body),
        },
        "response": {"status": stored.status, "contentDigest": digest_of(stored.body)},
    }
    if isinstance(trust, AdmittedAgent):
        facts["decision"] = {
            "allow": trust.would_deny is None,
            "agentId": trust.agent_id,
            "chain": trust.chain,
            "agentAddress": trust.address,
            "identityProven": trust.proven,
            "tier": trust.tier,
            "score": trust.score,
            "evaluationId": trust.evaluation_id,
        }
    return json.dumps(facts, separators=(",", ":"))


def digest_of(content: bytes) -> str:
    """Return the SHA-256 of bytes, as in `Content-Digest` (RFC 9530, section 2)."""
    return f"sha-256=:{base64.b64encode(hashlib.sha256(content).digest()).decode()}:"


def read_receipt(token: str, jwks: JsonObject) -> JsonObject:
    """Return the claims of a receipt signed by a P-256 key of the JWK set.

    Raises `InvalidReceipt`. It says nothing of the issuer: the key set decides whose word it is.
    """
    if len(token) > RECEIPT_CHARS_MAX:
        raise InvalidReceipt(f"A receipt has at most {RECEIPT_CHARS_MAX} characters.")
    keys, failed = _keys(jwks), InvalidReceipt("No key of the key set has made the signature.")
    try:
        parsed = jws.extract_compact(token.encode())
        header = parsed.headers()
        if header.get("typ") != RECEIPT_TYPE or header.get("alg") != ALGORITHM:
            raise InvalidReceipt(f"Its header does not say {RECEIPT_TYPE} and {ALGORITHM}.")
        key = next((one for one in keys if one.thumbprint() == header.get("kid")), None)
        if key is None or not jws.validate_compact(parsed, key, algorithms=[ALGORITHM]):
            raise failed
        claims: object = json.loads(parsed.payload)
    except JoseError as error:
        raise failed from error
    except (ValueError, RecursionError) as error:
        if isinstance(error, InvalidReceipt):
            raise
        raise InvalidReceipt("It is not a compact JWS of a JSON object.") from error
    if not is_object(claims):
        raise InvalidReceipt("Its payload is not a JSON object.")
    return claims


def _keys(jwks: JsonObject) -> Sequence[ECKey]:
    """Return the P-256 keys of a JWK set; others are left out. Raises `InvalidReceipt`."""
    listed = jwks.get("keys")
    if not is_array(listed):
        raise InvalidReceipt("The key set has no `keys`.")
    usable = [one for one in listed[:_KEYS_MAX] if is_object(one) and one.get("crv") == "P-256"]
    try:
        return [ECKey.import_key({name: str(one[name]) for name in _MEMBERS}) for one in usable]
    except (JoseError, KeyError, ValueError) as error:
        raise InvalidReceipt("A key of the key set is malformed.") from error
