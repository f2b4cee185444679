"""MPP charges on Tempo, by the protocol's own library (`pympp`).

The library makes and reads challenges and credentials; this module bounds and checks them, and
binds a challenge to its call. The ledger, not the library's store, keeps a credential from being
used twice. The library is imported when the first challenge is asked for, because its EVM parts
take most of a second. Source: mpp.md#challenge-and-credential.
"""

import base64
import copy
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from assay.chains.evm.abi import AbiReader, BadAnswer, address_word
from assay.chains.model import ChainUnavailable, Network
from assay.chains.rpc import ContractCall, Returned, Reverted, Rpc
from assay.common.addresses import keccak256
from assay.common.clock import Clock, iso
from assay.common.errors import Unavailable
from assay.common.json import JsonObject, canonical_bytes, is_array, is_nested_beyond, is_object
from assay.common.numbers import DECIMALS
from assay.payments.model import (
    DirectFee,
    Fees,
    LedgerEntry,
    Payment,
    PaymentRefused,
    PaymentRequirements,
    PaymentsUnavailable,
    Quote,
)
from assay.payments.mpp.library import Library, LibraryLoader
from assay.payments.mpp.tempo import (
    EXPIRED,
    MppOutcomes,
    Validity,
    attempt_of_entry,
    bounded_validity,
    challenge_life,
    challenge_needed_s,
    fees_of,
    require_challenge_time,
    require_transaction_time,
    validity_of,
    work_left_s,
)
from assay.payments.outcomes import PaymentOutcome, Rejected, Settled, Undecided
from assay.payments.ports import Balances, Note, PresentedPayment

DEPTH_MAX = 12
"""Largest nesting of a credential; a real one has 3 levels."""

KEPT_BYTES_MAX = 16 * 1024
"""Largest credential that is kept. A challenge of ours and a payment take 4 KiB."""

FEE_RATE = "fee_rate"
"""The member of a challenge that holds the rate of its split, beside what it is bound to."""

_ADDRESS = re.compile(r"0x[0-9a-f]{40}")
_RATE = re.compile(r"[01](\.[0-9]{1,30})?")
_HASH = re.compile(r"0x[0-9a-fA-F]{64}")
_AMOUNT = re.compile(r"[0-9]{1,30}")
_NO_HASH = "0x" + "00" * 32


def read_credential(library: Library, credential: str) -> tuple[Any, str]:
    """Return the credential read by the library, and its digest. Raises `PaymentRefused`."""
    _require_shallow(credential)
    try:
        parsed = library.credential.from_authorization(credential)
    except Exception as error:
        raise PaymentRefused("malformed-credential", "The credential is malformed.") from error
    payload: object = parsed.payload
    if (
        not is_object(payload)
        or not isinstance(parsed.challenge.id, str)
        or not _is_hash(payload.get("hash", _NO_HASH))
    ):
        raise PaymentRefused("malformed-credential", "The credential is malformed.")
    content = {"id": parsed.challenge.id, "payload": payload}
    try:
        return parsed, hashlib.sha256(canonical_bytes(content)).hexdigest()
    except ValueError as error:  # an integer beyond 2^53, an infinity, a lone surrogate
        raise PaymentRefused("malformed-credential", "The credential is malformed.") from error


def kept_credential(parsed: Any) -> JsonObject:  # noqa: ANN401 - the library's own
    """Return `{challenge, payload, source}`: all that is kept, at most `KEPT_BYTES_MAX`.

    It has neither the sender's spelling nor the challenge's description, which no id covers. Raises
    `PaymentRefused` for a larger one.
    """
    echoed = replace(parsed.challenge, description=None)
    written = replace(parsed, challenge=echoed).to_authorization()
    text = _bytes(written.partition(" ")[2])
    if len(text) > KEPT_BYTES_MAX:
        raise PaymentRefused("malformed-credential", "The Payment credential is too large.")
    return json.loads(text)


def authorization_of(kept: JsonObject) -> str:
    """Return the header's value for a kept credential; older rows keep the header itself."""
    if "authorization" in kept:
        return str(kept["authorization"])
    text = json.dumps(kept, separators=(",", ":"), sort_keys=True).encode()
    return "Payment " + base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def _present_credential(parsed: Any, digest: str) -> PresentedPayment:  # noqa: ANN401 - the library's own
    """Return what the echoed challenge asks for; it need not be a challenge of ours."""
    asked = _decoded(str(parsed.challenge.request))
    details = asked.get("methodDetails")
    chain = details.get("chainId") if is_object(details) else None
    amount = str(asked.get("amount"))
    return PresentedPayment(
        protocol="mpp",
        network=f"tempo:{chain}",
        amount=int(amount) if _AMOUNT.fullmatch(amount) else -1,
        pay_to=str(asked.get("recipient")).lower(),
        expires_s=_expires_s(parsed.challenge.expires),
        digest=digest,
        token="",
        parsed=parsed,
    )


def as_asked(quote: Quote, parsed: Any) -> Quote:  # noqa: ANN401 - the library's own
    """Return the quote with the platform's fee of the echoed challenge, as it was quoted.

    The caller must require that the challenge is ours: its id is a MAC over all of this.
    """
    details = _decoded(str(parsed.challenge.request)).get("methodDetails")
    splits = details.get("splits") if is_object(details) else None
    if splits is None:
        rate = None if quote.direct_fee else quote.fee_rate
        return replace(quote, direct_fee=None, fee_rate=rate)
    split = splits[0] if is_array(splits) and len(splits) == 1 else None
    found: JsonObject = split if is_object(split) else {}
    payee, amount = str(found.get("recipient")), str(found.get("amount"))
    rate = str(_decoded(str(parsed.challenge.opaque)).get(FEE_RATE))
    if not (_ADDRESS.fullmatch(payee) and _AMOUNT.fullmatch(amount) and _RATE.fullmatch(rate)):
        return quote  # not one of ours
    return replace(quote, direct_fee=DirectFee(payee, int(amount)), fee_rate=Decimal(rate))


def _at_realm(engine: Any, parsed: Any) -> Any:  # noqa: ANN401 - the library's own
    """Return the engine for the public address where the challenge was made.

    A challenge's id is a MAC that covers its realm, so a challenge of ours is recognised at any
    address.
    """
    if engine.realm == parsed.challenge.realm:
        return engine
    made = copy.copy(engine)
    made.realm = parsed.challenge.realm
    return made


def _decoded(member: str) -> JsonObject:
    """Return an object of a credential's base64url text; empty for anything else."""
    try:
        text = _bytes(member)
        value: object = None if is_nested_beyond(text, DEPTH_MAX) else json.loads(text)
    except ValueError:
        return {}
    return value if is_object(value) else {}


def _bytes(encoded: str) -> bytes:
    """Return the bytes of a base64url text; raises `ValueError` for anything else."""
    return base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))


def _expires_s(text: object) -> float:
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except (ValueError, OverflowError):
        return 0.0


def _require_shallow(credential: str) -> None:
    """Refuse deep text before a parser recurses into it. Raises `PaymentRefused`."""
    encoded = credential.partition(" ")[2].strip()
    try:
        text = _bytes(encoded)
    except ValueError:
        return  # the library refuses it then
    if is_nested_beyond(text, DEPTH_MAX):
        raise PaymentRefused("malformed-credential", "The credential is nested too deeply.")


def _is_hash(value: object) -> bool:
    """Return whether the text is a hash: a node's error for anything else looks like an outage."""
    return isinstance(value, str) and _HASH.fullmatch(value) is not None


_PATH_CHARS_MAX = 1024
"""Longest path in a challenge; a longer one is replaced by its hash, so that credentials fit."""


def _terms_of(quote: Quote) -> dict[str, Any]:
    """Return who is paid how much, and in which token."""
    fee = quote.direct_fee
    splits = {"splits": [{"recipient": fee.payee, "amount": str(fee.amount)}]} if fee else {}
    return {
        **splits,
        "amount": f"{Decimal(quote.amount).scaleb(-DECIMALS):f}",
        "recipient": quote.pay_to,
        "currency": quote.network.asset.address,
        "chain_id": quote.network.chain_id,
    }


def meta_of(quote: Quote) -> dict[str, str]:
    """Return what a challenge is bound to, and the rate of its fee.

    The library does not check its own scope if a credential is read without a handler. Source:
    mpp.md#library.
    """
    path = quote.path if len(quote.path) <= _PATH_CHARS_MAX else _hashed(quote.path)
    about = {"path": path, "query": _hashed(quote.query), "method": quote.method}
    if quote.direct_fee is not None and quote.fee_rate is not None:
        about[FEE_RATE] = f"{quote.fee_rate:f}"
    return {"wrapper": quote.wrapper_id, **about}


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


LATE = timedelta(minutes=10)
"""Longest validity of a transaction after its challenge's end; then it is searched for once
more."""

_BALANCE_OF = keccak256(b"balanceOf(address)")[:4]
_UNREADABLE = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError)
"""Errors of the library if a member of a credential has an unexpected type."""


class TempoCharges:
    """Implements `payments.ports.MppCharges`."""

    def __init__(
        self,
        loader: LibraryLoader,
        chains: Mapping[str, Network],
        rpc: Rpc,
        clock: Clock,
        *,
        challenge_ttl: timedelta,
    ) -> None:
        self._loader = loader
        self._chains = chains
        self._rpc = rpc
        self._clock = clock
        self._challenge_ttl = challenge_ttl
        self._outcomes = MppOutcomes(rpc, chains, clock)

    async def challenge(self, quote: Quote, problem: str) -> PaymentRequirements:
        library = await self._loader.get()
        handler = library.engines[quote.network.id][0].tempo.charge(
            **_terms_of(quote), meta=meta_of(quote), description=quote.description or None,
            body=quote.body or None, expires_in=challenge_life(quote, self._challenge_ttl),
        )  # fmt: skip
        asked = await handler(library.server.Request(quote.method, quote.url))
        headers = tuple(
            (name.lower().encode(), value.encode())
            for name, value in asked.challenge.headers.multi_items()
            if name.lower() == "www-authenticate"
        )
        kind = "payment-required" if problem == "payment_required" else problem
        extras = {
            "type": f"https://paymentauth.org/problems/{kind}",
            "title": "Payment Required",
            "status": 402,
            "reason": problem,
        }
        return PaymentRequirements(headers, extras)

    def challenge_s(self, quote: Quote) -> tuple[float, float]:
        ttl = self._challenge_ttl
        return challenge_life(quote, ttl).total_seconds(), challenge_needed_s(quote, ttl)

    def is_good(self, entry: LedgerEntry, quote: Quote) -> bool:
        now, ttl = self._clock.now(), self._challenge_ttl
        try:
            require_challenge_time(entry.expires_at - LATE, quote, now, ttl, "")
            require_transaction_time(validity_of(entry.credential), quote, now, ttl, "")
        except PaymentRefused:
            return False
        return True

    async def present(self, credential: str) -> PresentedPayment:
        library = await self._loader.get()
        return _present_credential(*read_credential(library, credential))

    async def read(self, presented: PresentedPayment, quote: Quote) -> Payment:
        library = await self._loader.get()
        parsed: Any = presented.parsed
        kept = kept_credential(parsed)
        quote = as_asked(quote, parsed)
        digest, ttl = presented.digest, self._challenge_ttl
        found = await self._validated(library, parsed, quote, digest)
        now = self._clock.now()
        expires = _expiry(parsed.challenge.expires)
        most_s = require_challenge_time(expires, quote, now, ttl, digest)
        payer = found.payer
        if payer is None:
            raise PaymentRefused("verification-failed", "The payment has no single payer.")
        fee_payee = quote.direct_fee.payee if quote.direct_fee else ""
        if payer.lower() in {quote.pay_to, fee_payee}:
            raise PaymentRefused("verification-failed", "The payer is the payee.")
        payload = parsed.payload
        pushed = str(payload["hash"]).lower() if payload.get("type") == "hash" else ""
        validity = Validity() if pushed else bounded_validity(kept, expires + LATE)
        work_s = require_transaction_time(validity, quote, now, ttl, digest)
        chain = self._chains[quote.network.id]
        fees = Fees() if pushed else await fees_of(self._rpc, chain, quote.network, payer, kept)
        return Payment(
            quote=replace(quote, work_s=min(work_s, most_s)),
            payer=payer.lower(),
            # For a hash too: a transaction that we sent and its hash are one payment.
            nonce=parsed.challenge.id,
            digest=digest,
            expires_at=expires + LATE,
            credential=kept,
            paid_by=pushed,
            fees=fees,
        )

    async def _validated(
        self,
        library: Library,
        parsed: Any,  # noqa: ANN401 - the library's own shape
        quote: Quote,
        digest: str,
    ) -> Any:  # noqa: ANN401 - the same
        """Return the library's result for a credential. Raises like `read`."""
        try:
            return await library.by_any(
                quote.network.id,
                lambda engine: _at_realm(engine, parsed).validate_credential(
                    parsed,
                    intent="charge",
                    request=_terms_of(quote),
                    meta=meta_of(quote),
                    body=quote.body or None,
                ),
            )
        except library.errors.PaymentExpiredError as error:
            raise PaymentRefused(EXPIRED, "The challenge has expired.", digest=digest) from error
        except library.errors.InternalPaymentError as error:
            raise _unavailable(repr(error.__cause__)) from error
        except library.errors.PaymentError as error:
            raise PaymentRefused(_word(error), "The payment does not pay for this.") from error
        except _UNREADABLE as error:
            raise PaymentRefused("invalid-payload", "The payment is malformed.") from error

    async def verify(self, payment: Payment) -> Balances | None:
        if payment.paid_by:
            return None
        now, ttl = self._clock.now(), self._challenge_ttl  # it may have waited since it was read
        require_challenge_time(payment.expires_at - LATE, payment.quote, now, ttl, "")
        require_transaction_time(validity_of(payment.credential), payment.quote, now, ttl, "")
        network = payment.quote.network
        tokens = list(dict.fromkeys(t for t in (network.asset.address, payment.fees.token) if t))
        calls = [ContractCall(token, _BALANCE_OF + address_word(payment.payer)) for token in tokens]
        try:
            answers = await self._rpc.call_newest(self._chains[network.id], calls)
        except ChainUnavailable as error:
            raise _unavailable(error.detail or error.message) from error
        balances = (_number(answer) for answer in answers)
        return dict(zip(tokens, balances, strict=True))

    def work_s(self, payment: Payment) -> float:
        before = None if payment.paid_by else validity_of(payment.credential).before
        challenge_end_s = (payment.expires_at - LATE).timestamp()
        ends_s = [challenge_end_s] if before is None else [challenge_end_s, before]
        return work_left_s(payment.quote, ends_s, self._clock.now())

    async def settle(self, entry: LedgerEntry, note: Note) -> PaymentOutcome:
        library = await self._loader.get()
        attempt = attempt_of_entry(entry)
        await note(attempt)
        try:
            authorization = authorization_of(entry.credential)
            parsed = library.credential.from_authorization(authorization)
            receipt = await library.by_any(
                entry.network,
                lambda engine: _at_realm(engine, parsed).broadcast_credential(
                    authorization, intent="charge"
                ),
            )
        except library.errors.PaymentOutcomeUnknownError as error:
            return Undecided(repr(error.cause))
        except library.errors.InternalPaymentError as error:
            return Undecided(repr(error.__cause__))
        except library.errors.PaymentError as error:
            found = await self.outcome(entry)  # a refusal after it was sent is still paid
            return found if isinstance(found, Settled) else Rejected(_word(error))
        return Settled(str(receipt.reference))

    async def outcome(self, entry: LedgerEntry) -> PaymentOutcome:
        try:
            (found,) = await self.outcomes([entry])
        except Unavailable as error:
            return Undecided(error.detail or error.message)
        return found

    async def outcomes(
        self, entries: Sequence[LedgerEntry], *, every_node: bool = False
    ) -> Sequence[PaymentOutcome]:
        return await self._outcomes.find(entries, every_node=every_node)

    async def resend(self, entry: LedgerEntry, note: Note) -> PaymentOutcome:
        del note  # the client's own transaction: there is no other
        chain, raw = self._chains[entry.network], entry.attempt.raw
        try:
            await self._rpc.request(chain, "eth_sendRawTransaction", (raw,))
        except Unavailable as error:
            return Undecided(error.detail or error.message)
        return Undecided("sent again")

    def receipt(self, entry: LedgerEntry) -> bytes:
        said = {
            "method": "tempo",
            "reference": entry.attempt.transaction,
            "status": "success",
            "timestamp": iso(entry.settled_at or entry.updated_at),
        }
        text = json.dumps(said, separators=(",", ":")).encode()
        return base64.urlsafe_b64encode(text).rstrip(b"=")


def _number(answer: Returned | Reverted) -> int:
    """Return a token's answer; 0 if it is not a token, so nobody has anything of it."""
    try:
        return AbiReader(answer.data).number(0) if isinstance(answer, Returned) else 0
    except BadAnswer:
        return 0


def _expiry(text: str | None) -> datetime:
    return datetime.fromisoformat(text or "").astimezone(UTC)


def _word(error: Any) -> str:  # noqa: ANN401 - the library's own errors
    """Return the problem's own word: the last part of its type."""
    return str(getattr(error, "type", "verification-failed")).rsplit("/", 1)[-1][:60]


def _unavailable(detail: str) -> PaymentsUnavailable:
    return PaymentsUnavailable(
        "Payments cannot be checked now.", detail=f"tempo: {detail}", retry_after_s=5
    )
