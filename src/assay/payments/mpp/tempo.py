"""Reads what the Tempo chain says of a payer's transaction: form, cost, validity, outcome.

- Form: recovery ids 0 and 1 mean 27 and 28, and nodes accept both; the hash is of the latter.
  Source: pympp, `mpp.methods.tempo.intents`, which broadcasts the same; Tempo's transaction type
  0x76.
- Cost besides the payment. Source: Tempo's transaction type 0x76, fields 2, 3, 8, 9, 10 and 11
  (most per gas in 10^-18 dollars, gas, `valid_before` and `valid_after` in seconds or empty, token
  of the fees, signature of another payer of the fees); Tempo's fee rules: if a transaction names no
  token, it is the one that its sender has chosen, or else the one that it calls.
- Receipts: every transfer that the challenge asked for. Source: TIP-20, whose transfers write
  `Transfer`, and also `TransferWithMemo` if they have a memo; the memo of MPP, which ends with the
  challenge's fingerprint (mpp.md#credential).
- Time: a stock client's transaction is valid for 25 s (mppx 0.11) or 60 s (pympp 0.16), whatever
  the wrapper's time. So a transaction must be valid for the upstream's time or for `STOCK_S`,
  whichever is less, and the upstream gets no longer than its payment and its challenge last.
- Outcome: a payment has failed only if it can never be mined: it is not in any block younger than
  its `valid_before`. Our own clock decides nothing, because a chain that stood still can still take
  it. Source: ADR 0019.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib import import_module
from typing import Any, Final

from assay.chains.evm.abi import AbiReader, BadAnswer, address_word
from assay.chains.model import ChainUnavailable, Network
from assay.chains.rpc import ContractCall, Returned, Rpc
from assay.common.addresses import keccak256
from assay.common.clock import Clock, iso
from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.common.numbers import NotANumber, hex_number
from assay.common.tasks import all_results
from assay.payments.finality import ask_nodes
from assay.payments.model import (
    Fees,
    LedgerEntry,
    PaymentNetwork,
    PaymentRefused,
    PaymentsUnavailable,
    Quote,
    WatchedPayment,
)
from assay.payments.outcomes import PaymentOutcome, Rejected, Settled, SettlementAttempt, Undecided
from assay.payments.x402.eip3009 import TRANSFERRED
from assay.payments.x402.eip3009_outcomes import block_of

_PREFIX: Final = b"\x76"
_FIELDS: Final = (14, 15)
_SIGNATURE_LEN: Final = 65
_KEYCHAIN: Final = (0x03, 0x04)
_KEYCHAIN_LEN: Final = 21
"""Bytes of its type and of the account that it signs for; the signature follows."""


def attempt_of(raw: str) -> SettlementAttempt:
    """Return what is broadcast for a payer's transaction, and its hash.

    Raises `ValueError` if it is not hex.
    """
    sent = _canonical(bytes.fromhex(raw.removeprefix("0x")))
    return SettlementAttempt("0x" + keccak256(sent).hex(), "0x" + sent.hex())


def attempt_of_entry(entry: LedgerEntry) -> SettlementAttempt:
    """Return the transaction of a kept payment: the one that paid, or the one to be sent."""
    payload = entry.credential.get("payload")
    if not is_object(payload):
        return entry.attempt
    if payload.get("type") == "hash":
        return SettlementAttempt(str(payload.get("hash")))
    return attempt_of(str(payload.get("signature")))


def _canonical(transaction: bytes) -> bytes:
    """Return the canonical form; other transactions, and canonical ones, unchanged."""
    if transaction[:1] != _PREFIX:
        return transaction
    rlp: Any = import_module("rlp")
    try:
        fields: Any = rlp.decode(transaction[1:])
    except rlp.exceptions.RLPException:
        return transaction
    if len(fields) not in _FIELDS:
        return transaction
    signature: Any = fields[-1]  # a number if all of it is one string of bytes
    if not isinstance(signature, bytes) or (made := _signature(signature)) == signature:
        return transaction
    return _PREFIX + rlp.encode([*fields[:-1], made])


def _signature(signature: bytes) -> bytes:
    """Return the signature with recovery id 27 or 28; for an access key, the inner one's."""
    inside = 0
    while len(signature) - inside > _KEYCHAIN_LEN and signature[inside] in _KEYCHAIN:
        if len(signature) - inside == _SIGNATURE_LEN and signature[-1] in (0, 1):
            break
        inside += _KEYCHAIN_LEN
    if len(signature) - inside == _SIGNATURE_LEN and signature[-1] in (0, 1):
        return signature[:-1] + bytes([signature[-1] + 27])
    return signature


FEE_MANAGER = "0xfeec000000000000000000000000000000000000"
"""Stores who pays fees in which token. Source: pytempo, `contracts.addresses`."""

_USER_TOKENS = keccak256(b"userTokens(address)")[:4]
_ATTO_PER_BASE_UNIT = 10**12
FEES_MAX = 10**15
"""A thousand million dollars: more than anybody has, and thousands of it fit into a sum."""

_FOREVER = 2**40
"""A time beyond all that are compared with it; numbers in a transaction may have any size."""

_TYPE = 0x76
_SPONSOR_FIELD = 11
_NONE = b""


@dataclass(frozen=True, slots=True)
class Validity:
    """When a transaction can be mined, in seconds since 1970: from `after`, before `before`.

    None if it sets no bound.
    """

    after: int | None = None
    before: int | None = None


@dataclass(frozen=True, slots=True)
class _Said:
    """What a transaction says of its fees; `token` is empty if it names none."""

    most: int
    token: str


async def fees_of(
    rpc: Rpc, chain: Network, network: PaymentNetwork, payer: str, credential: JsonObject
) -> Fees:
    """Return the most that is taken besides the payment, rounded up to base units.

    Raises `PaymentRefused` for a transaction whose fees somebody else is to pay, because nobody
    checks whether they can. Raises `PaymentsUnavailable`.
    """
    payload = credential.get("payload")
    said = _said(str(payload.get("signature")) if is_object(payload) else "")
    if said.token:
        return Fees(said.token, said.most)
    chosen = await _chosen(rpc, chain, payer)
    return Fees(chosen or network.asset.address, said.most)


def validity_of(credential: JsonObject) -> Validity:
    """Return when the payer's transaction can be mined.

    Raises `PaymentRefused` if it has no valid form.
    """
    payload = credential.get("payload")
    _, fields = _decoded(str(payload.get("signature")) if is_object(payload) else "")
    try:
        times = (int.from_bytes(bytes(fields[place])) for place in (8, 9))
        before, after = (min(time, _FOREVER) for time in times)
    except Exception as error:
        raise PaymentRefused("invalid-payload", "The payment is malformed.") from error
    return Validity(after or None, before or None)


def _decoded(raw: str) -> tuple[int, Any]:
    """Return the type and the fields of a transaction."""
    try:
        transaction = bytes.fromhex(raw.removeprefix("0x"))
        return transaction[0], import_module("rlp").decode(transaction[1:])
    except Exception as error:
        raise PaymentRefused("invalid-payload", "The payment is malformed.") from error


def _said(raw: str) -> _Said:
    kind, fields = _decoded(raw)
    try:
        price, gas = (int.from_bytes(fields[place]) for place in (2, 3))
        token, sponsor = bytes(fields[10]), fields[_SPONSOR_FIELD]
    except Exception as error:
        raise PaymentRefused("invalid-payload", "The payment is malformed.") from error
    if kind != _TYPE or sponsor != _NONE:
        raise PaymentRefused("invalid-payload", "The payer has to pay the fees himself here.")
    most = min(-(-price * gas // _ATTO_PER_BASE_UNIT), FEES_MAX)
    return _Said(most, "0x" + token.hex() if token else "")


async def _chosen(rpc: Rpc, chain: Network, payer: str) -> str:
    """Return the token that an account pays fees in if a transaction names none; may be empty."""
    call = ContractCall(FEE_MANAGER, _USER_TOKENS + address_word(payer))
    try:
        (answer,) = await rpc.call_newest(chain, (call,))
        token = AbiReader(answer.data).number(0) if isinstance(answer, Returned) else 0
    except (ChainUnavailable, BadAnswer) as error:
        raise PaymentsUnavailable(
            "Payments cannot be checked now.", detail=f"tempo: {error!r}", retry_after_s=5
        ) from error
    return f"0x{token:040x}" if token else ""


TRANSFER_WITH_MEMO = "0x" + keccak256(b"TransferWithMemo(address,address,uint256,bytes32)").hex()
_FINGERPRINT_BYTES = 7
_Movement = tuple[str, str, int]
"""The event, the payee as a topic, and the amount."""


def pays(receipt: JsonValue, entry: LedgerEntry | WatchedPayment) -> bool:
    """Return whether the transaction moved the seller's and the platform's part.

    Both come out of the payer's account, in the asset, and at least one has the memo of this
    challenge. A payer's own contract may do something else when its transaction is mined again, so
    its status alone proves nothing.
    """
    if not is_object(receipt) or receipt.get("status") != "0x1":
        return False
    logs = receipt.get("logs")
    memo = keccak256(entry.nonce.encode())[:_FINGERPRINT_BYTES].hex()
    moved = {_movement(log, entry, memo) for log in (logs if is_array(logs) else ())}
    parts = _parts(entry)  # to different payees, so no transfer counts twice
    with_memo = {part for part in parts if (TRANSFER_WITH_MEMO, *part) in moved}
    return bool(with_memo) and all(
        part in with_memo or (TRANSFERRED, *part) in moved for part in parts
    )


def _parts(entry: LedgerEntry | WatchedPayment) -> set[tuple[str, int]]:
    """Return the payees, as topics, and what each must be paid."""
    fee = entry.direct_fee
    if fee is None:
        return {(_topic(entry.pay_to), entry.amount)}
    seller = (_topic(entry.pay_to), entry.amount - fee.amount)
    return {seller, (_topic(fee.payee), fee.amount)}


def _movement(log: JsonValue, entry: LedgerEntry | WatchedPayment, memo: str) -> _Movement | None:
    """Return what a log says that the payer moved; None for another event or memo."""
    if not is_object(log) or str(log.get("address")).lower() != entry.asset.lower():
        return None
    topics = log.get("topics")
    event, payer, payee, *more = [
        *(str(topic).lower() for topic in (topics if is_array(topics) else ())),
        *("", "", ""),
    ]
    if payer != _topic(entry.payer) or (event == TRANSFER_WITH_MEMO and not more[0].endswith(memo)):
        return None
    try:
        return event, payee, hex_number(log.get("data"), 256)
    except NotANumber:
        return None


def _topic(address: str) -> str:
    return "0x" + address_word(address).hex()


MARGIN_S = 8.0
"""Seconds of a transaction that the upstream does not get: five for being late, three for settling.
Blocks come twice a second."""

STOCK_S = 20.0
"""What is left of the 25 s of a stock transaction when it has arrived here slowly."""

BRIEF_S = 60.0
"""Challenges that the operator makes shorter than this stay so. Some chains take no transaction
that is valid for longer than 30 s, and clients sign until their challenge ends."""

EXPIRED: Final = "payment-expired"


def challenge_life(quote: Quote, ttl: timedelta) -> timedelta:
    """Return how long a challenge may be paid: time to sign it, and then all of the work."""
    if quote.settles_first or ttl.total_seconds() < BRIEF_S:
        return ttl
    return max(ttl, ttl / 2 + timedelta(seconds=quote.work_s + MARGIN_S))


def challenge_needed_s(quote: Quote, ttl: timedelta) -> float:
    """Return how long a challenge must still be valid for its call to be forwarded."""
    if quote.settles_first:
        return 0.0
    needed_s, ttl_s = quote.work_s + MARGIN_S, ttl.total_seconds()
    return needed_s if ttl_s >= BRIEF_S else min(needed_s, ttl_s / 2)


def least_work_s(ttl: timedelta) -> float:
    """Return the least time that an accepted transaction may leave the upstream."""
    return min(STOCK_S, ttl.total_seconds() / 2) - MARGIN_S


def require_challenge_time(
    expires: datetime, quote: Quote, now: datetime, ttl: timedelta, digest: str
) -> float:
    """Return the seconds that the upstream may take, for a challenge that outlives them.

    Raises `PaymentRefused`.
    """
    needed_s, left_s = challenge_needed_s(quote, ttl), (expires - now).total_seconds()
    if left_s < needed_s:
        message = f"The challenge must be good for {needed_s:g} more seconds."
        raise PaymentRefused(EXPIRED, message, digest=digest)
    return quote.work_s if quote.settles_first else min(quote.work_s, max(left_s - MARGIN_S, 0.0))


def work_left_s(quote: Quote, ends_s: Iterable[float], now: datetime) -> float:
    """Return the seconds that the upstream may take for a claimed payment that may have waited."""
    if quote.settles_first:
        return quote.work_s
    left_s = min(ends_s) - now.timestamp()
    return min(quote.work_s, max(left_s - MARGIN_S, 0.0))


def bounded_validity(credential: JsonObject, latest: datetime) -> Validity:
    """Return when the payer's transaction can be mined, with a bounded end.

    A transaction without an end could take the money long after its payment has failed. Raises
    `PaymentRefused`.
    """
    validity = validity_of(credential)
    if validity.before is None or validity.before > latest.timestamp():
        message = f"The transaction must end (valid_before) by {iso(latest)}."
        raise PaymentRefused("verification-failed", message)
    return validity


def require_transaction_time(
    validity: Validity, quote: Quote, now: datetime, ttl: timedelta, digest: str
) -> float:
    """Return the seconds that the upstream may take, for a transaction that is valid long enough.

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
        raise PaymentRefused(EXPIRED, message, digest=digest)
    return quote.work_s if quote.settles_first else min(quote.work_s, max(left_s - MARGIN_S, 0.0))


@dataclass(frozen=True, slots=True)
class MppOutcomes:
    """Asks the nodes of a network for receipts."""

    rpc: Rpc
    chains: Mapping[str, Network]
    clock: Clock

    async def find(
        self, entries: Sequence[LedgerEntry], *, every_node: bool
    ) -> Sequence[PaymentOutcome]:
        """Return each outcome, in order, like `ask_nodes`. Raises `ChainUnavailable`."""
        chain = self.chains[entries[0].network]
        return await ask_nodes(chain, entries, self._ask, every_node=every_node)

    async def _ask(self, node: Network, entries: Sequence[LedgerEntry]) -> Sequence[PaymentOutcome]:
        """Return what one node says, about all entries in one batch."""
        now, time_s = self.clock.now(), 0
        if any(now > entry.expires_at for entry in entries):
            time_s = (await block_of(self.rpc, node, "latest")).time_s  # before any receipt is read
        found = await all_results(self._found(node, entry, time_s) for entry in entries)
        faults = [one for one in found if isinstance(one, Exception)]
        if faults and len(faults) == len(found):
            raise faults[0]
        return [Undecided(str(one)) if isinstance(one, Exception) else one for one in found]

    async def _found(self, node: Network, entry: LedgerEntry, time_s: int) -> PaymentOutcome:
        # By the kept credential, also if an older version has stored another hash.
        transaction = attempt_of_entry(entry).transaction
        receipt = await self.rpc.request(node, "eth_getTransactionReceipt", (transaction,))
        if is_object(receipt):
            paid = pays(receipt, entry)
            return Settled(transaction) if paid else Rejected("transaction-failed")
        if self.clock.now() > entry.expires_at and time_s >= _end_s(entry):
            return Rejected(EXPIRED)
        return Undecided("no receipt yet", is_unused=True, answers=1)


def _end_s(entry: LedgerEntry) -> int:
    """Return the block time from which its transaction cannot be mined; 0 if it names none.

    A transaction that its payer sent was in a block already.
    """
    with suppress(PaymentRefused):
        return validity_of(entry.credential).before or 0
    return 0
