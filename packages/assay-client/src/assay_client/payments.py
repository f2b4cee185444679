"""Pays calls over x402 (version 2, scheme `exact`) and MPP (`tempo`), signed by stock libraries.

A 402 is what a stranger asks for. Everything in it is checked before anything is signed, and the
assets come from our own table. A call is signed for once: the same payment is sent again after a
failure, and a service uses it once (docs/payments.md#what-a-caller-gets).
"""

import base64
import hashlib
import importlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import urlsplit

from typing_extensions import TypedDict, override

from assay_client.errors import (
    AssayError,
    ConnectionFailed,
    InvalidInput,
    MissingExtra,
)
from assay_client.flow import Core, Received, Run, Send, Steps, header_value, pause_after
from assay_client.models import list_of, object_of
from assay_client.mpp_payments import TEMPO_NETWORKS, TempoOffer, sign_tempo, tempo_offers


@dataclass(frozen=True)
class _Dollar:
    """An asset of six decimals, and its EIP-712 domain."""

    address: str
    name: str
    version: str


_DOLLARS: Mapping[str, _Dollar] = MappingProxyType(
    {
        "eip155:8453": _Dollar("0x833589fcd6edb6e08f4c7c32d4f71b54bda02913", "USD Coin", "2"),
        "eip155:84532": _Dollar("0x036cbd53842c5426634e7929541ec2318f3dcf7e", "USDC", "2"),
    }
)
"""USDC on Base and Base Sepolia. Source: docs/reference/x402.md#assets."""

NETWORKS: Final = (*_DOLLARS, *TEMPO_NETWORKS)
"""The networks on which this client pays."""

_DECIMALS = 6
_AMOUNT = re.compile(r"[1-9][0-9]{0,29}")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")  # RFC 9110, section 5.6.2
_METHOD = re.compile(r"[A-Z]{1,20}")
_OWN_HEADERS = frozenset(
    {"payment-signature", "x-payment", "host", "content-length", "transfer-encoding", "connection"}
)
_IDEMPOTENT = frozenset({"GET", "HEAD", "PUT", "DELETE", "OPTIONS"})  # RFC 9110, section 9.2.2
_CHECKED = ("scheme", "network", "asset", "amount", "payTo", "maxTimeoutSeconds")
_MPP = re.compile(r"(?:^|,)\s*payment\s+[a-z]+=", re.IGNORECASE)
_URL_SAFE = str.maketrans("-_", "+/")
"""MPP writes base64 for URLs and without padding, x402 with both."""
_HEADER_CHARS_MAX = 65_536
_OFFERS_MAX = 20
_VALID_S_MAX = 3600
"""The longest validity of what is signed; a service may ask for less."""

_PAYMENT_REQUIRED, _FAILED_FROM, _UNAVAILABLE = 402, 500, 503


class PayOptions(TypedDict, total=False):
    """Options of a paid call; all may be left out."""

    method: str
    """The HTTP method; default GET."""
    headers: Mapping[str, str]
    """Headers of the call, such as those of an `AgentSession`."""
    body: bytes | None
    networks: tuple[str, ...]
    """Networks whose dollar may be paid; the default is all.

    x402: `eip155:8453` (Base) and `eip155:84532` (its test network). MPP: `eip155:4217` (Tempo)
    and `eip155:42431` (its test network).
    """


@dataclass(frozen=True)
class Payment:
    """A signed payment of one call, and what it pays."""

    network: str
    """The CAIP-2 identifier of the chain."""
    asset: str
    """The address of the token."""
    amount: int
    """What is paid, in base units of 0.000001 USD."""
    pay_to: str
    """The address that receives it."""
    payer: str
    header: str = field(repr=False)
    """The value of the header: whoever has it can submit the payment to `pay_to`."""
    call: str = field(repr=False)
    """Names the call: method, address and body."""
    header_name: str = "payment-signature"
    """That header: `payment-signature` (x402) or `authorization` (MPP)."""

    @property
    def price(self) -> Decimal:
        """Return what is paid, in USD."""
        return Decimal(self.amount).scaleb(-_DECIMALS)


class PaymentDeclined(AssayError):
    """The 402 asks for what may not be paid: see the message. Nothing was signed."""


class PaymentFailed(AssayError):
    """A payment was signed and sent, and brought no response of the API."""

    def __init__(self, message: str, payment: Payment) -> None:
        super().__init__(message)
        self.payment = payment
        """Pass it to `pay` as `payment` to send the same one again; a new one pays again."""


class PaymentRefused(PaymentFailed):
    """The service did not accept the payment; the message says why."""


class PaymentUnresolved(PaymentFailed):
    """The payment may have settled: send it again with `pay(..., payment=error.payment)`."""


@dataclass(frozen=True)
class PaidResponse:
    """The API's response; `payment` is None if nothing was asked for."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    """Header names are in lower case."""
    body: bytes = field(repr=False)
    payment: Payment | None = None
    transaction: str | None = None
    """The hash of the transaction that settled the payment, as the service says."""

    def json(self) -> Any:
        """Return the JSON of the body; raises `ValueError`."""
        return json.loads(self.body)


class Payer:
    """The wallet that pays. It signs transfers of the exact price, and nothing else."""

    def __init__(self, signer: Any) -> None:
        """`signer` is a `ClientEvmSigner` of x402, for keys that are kept elsewhere."""
        self._signer = signer
        self._tempo: Callable[[TempoOffer], str] | None = None
        self.address: str = signer.address

    @classmethod
    def from_key(
        cls, private_key: str, *, tempo_rpc_urls: Mapping[str, str] | None = None
    ) -> "Payer":
        """Return a payer that signs with an EVM private key; raises `MissingExtra`.

        With the extra `mpp` it pays over MPP too. `tempo_rpc_urls` has nodes of Tempo by network;
        the default is the public ones.
        """
        account: Any = _library("eth_account").Account
        signers: Any = _library("x402.mechanisms.evm.signers")
        try:
            signing = account.from_key(private_key)
        except (ValueError, TypeError):  # its message may show the key
            raise InvalidInput("The private key is not 32 bytes in hexadecimal.") from None
        payer, urls = cls(signers.EthAccountSigner(signing)), dict(tempo_rpc_urls or {})
        key = f"0x{bytes(signing.key).hex()}"
        payer._tempo = lambda offer: sign_tempo(offer, key, urls.get(offer.network))
        return payer

    @override
    def __repr__(self) -> str:
        return f"Payer({self.address!r})"

    def authorize(self, requirement: Mapping[str, Any]) -> Mapping[str, Any]:
        """Sign an EIP-3009 transfer for a checked requirement; may block.

        The library sees the checked members alone: it also reads other spellings and extensions.
        """
        scheme: Any = _library("x402.mechanisms.evm.exact").ExactEvmScheme(self._signer)
        required: Any = _library("x402.schemas").PaymentRequirements
        checked = {name: requirement[name] for name in _CHECKED}
        extra = {name: requirement["extra"][name] for name in ("name", "version")}
        return scheme.create_payment_payload(required.model_validate({**checked, "extra": extra}))

    @property
    def pays_mpp(self) -> bool:
        """Return whether it has a key for payments over MPP."""
        return self._tempo is not None

    def authorize_tempo(self, offer: TempoOffer) -> str:
        """Sign a checked offer of MPP; may block. Raises `ConnectionFailed`, `MissingExtra`."""
        if self._tempo is None:
            raise InvalidInput("This payer has no key for payments over MPP.")
        return self._tempo(offer)


@dataclass(frozen=True)
class _Offer:
    """What may be signed, and how; `sign` returns the value of the header and may block."""

    network: str
    asset: str
    amount: int
    pay_to: str
    header_name: str
    sign: Callable[[], str]


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        message = "x402 is not installed: pip install 'assay-client[pay]'"
        raise MissingExtra(message) from None


def pay_steps(
    core: Core,
    url: str,
    payer: Payer,
    max_price: Decimal | str,
    payment: Payment | None,
    options: PayOptions,
) -> Steps[PaidResponse]:
    """Call a URL and pay if it asks for at most `max_price`; `payment` is sent again, if given."""
    amount_max = _base_units(max_price)
    request = _call(url, options)
    is_again = payment is not None
    if payment is None:
        received = yield from _unpaid(core, request)
        if received.status != _PAYMENT_REQUIRED:
            return PaidResponse(received.status, received.headers, received.body)
        networks = options.get("networks", NETWORKS)
        offer = _choose(_offers(received, request, payer, networks), amount_max)
        header: str = yield Run(offer.sign)
        parts = offer.network, offer.asset, offer.amount, offer.pay_to, payer.address
        payment = Payment(*parts, header, _name_of(request), offer.header_name)
    elif payment.call != _name_of(request):
        raise InvalidInput("The payment was signed for another call: method, url and body differ.")
    elif payment.amount > amount_max:
        raise InvalidInput("The payment is of more than max_price.")
    received = yield from _paid(core, request, payment, is_again=is_again)
    transaction = _transaction(received)
    return PaidResponse(received.status, received.headers, received.body, payment, transaction)


def _unpaid(core: Core, request: Send) -> Steps[Received]:
    for attempt in range(1, core.retries.attempts + 1):
        try:
            return (yield request)
        except ConnectionFailed as failure:
            is_last = attempt == core.retries.attempts
            if is_last or (failure.sent and not request.is_idempotent):
                raise
        yield pause_after(core.retries, attempt)
    raise AssertionError("Retries.attempts must be at least 1.")


def _paid(core: Core, request: Send, payment: Payment, *, is_again: bool) -> Steps[Received]:
    """Send the payment until there is an answer; it is the same one each time.

    A 402 refuses it only if no try before, `is_again` among them, can have settled it.
    """
    headers = {**request.headers, payment.header_name: payment.header}
    paid = Send(request.method, request.path, headers, request.body, is_relayed=True)
    may_be_settled = is_again
    for attempt in range(1, core.retries.attempts + 1):
        after_s: float | None = None
        is_last = attempt == core.retries.attempts
        try:
            received: Received = yield paid
        except AssayError as failure:
            not_sent = isinstance(failure, ConnectionFailed) and not failure.sent
            may_be_settled = may_be_settled or not not_sent
            if is_last or not isinstance(failure, ConnectionFailed):
                message = f"The payment was sent, and its outcome is unknown: {failure}"
                raise PaymentUnresolved(message, payment) from None
        else:
            if received.status == _PAYMENT_REQUIRED:
                raise _refused(received, payment, may_be_settled=may_be_settled)
            if received.status < _FAILED_FROM or _transaction(received) is not None:
                return received
            may_be_settled, after_s = True, _retry_after_s(received)
            if is_last or after_s is None or after_s > core.retries.wait_s_max:
                message = f"The payment was sent, and may be settled later: {_reason(received)}"
                raise PaymentUnresolved(message, payment)
        yield pause_after(core.retries, attempt, after_s)
    raise AssertionError("Retries.attempts must be at least 1.")


def _retry_after_s(received: Received) -> float | None:
    """Return in how many seconds a 503 wants the payment again; None for another answer."""
    if received.status != _UNAVAILABLE:
        return None
    after = received.headers.get("retry-after", "")
    return float(after) if re.fullmatch("[0-9]{1,9}", after) else 0.0


def _refused(received: Received, payment: Payment, *, may_be_settled: bool) -> PaymentFailed:
    if may_be_settled:
        message = f"An earlier try may have settled the payment: {_reason(received)}"
        return PaymentUnresolved(message, payment)
    message = f"The service did not accept the payment: {_reason(received)}"
    return PaymentRefused(message, payment)


def _base_units(max_price: Decimal | str) -> int:
    try:
        if isinstance(max_price, bool | float):
            raise InvalidInput("max_price is a Decimal or a text, not a float.")
        amount = Decimal(max_price).scaleb(_DECIMALS)
        if not amount.is_finite() or amount < 0 or amount >= 10**30:
            raise InvalidInput("max_price is not an amount of USD.")
        return int(amount)  # rounds down
    except (ArithmeticError, TypeError, ValueError):
        raise InvalidInput("max_price is not an amount of USD.") from None


def _call(url: str, options: PayOptions) -> Send:
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        raise InvalidInput("url is not an address.") from None
    if not is_address or parts.username is not None or parts.fragment:
        raise InvalidInput("url must begin with https:// or http:// and name a host, and no user.")
    method = options.get("method", "GET")
    if not _METHOD.fullmatch(method):
        raise InvalidInput("method is not a method of HTTP.")
    headers: dict[str, str] = {}
    for name, value in options.get("headers", {}).items():
        if not _NAME.fullmatch(name) or name.lower() in _OWN_HEADERS:
            raise InvalidInput(f"The header {name[:100]!r} cannot be set.")
        headers[name.lower()] = header_value(name, value)
    body, is_idempotent = options.get("body"), method in _IDEMPOTENT
    return Send(method, url, headers, body, is_idempotent=is_idempotent, is_relayed=True)


def _name_of(request: Send) -> str:
    body = hashlib.sha256(request.body or b"").hexdigest()
    return f"{request.method} {request.path} {body}"


def _offers(
    received: Received, request: Send, payer: Payer, networks: tuple[str, ...]
) -> list[_Offer]:
    """Return what may be signed, x402 first; raises `PaymentDeclined` if the 402 offers nothing."""
    required = _required(received.headers.get("payment-required"))
    found: list[_Offer] = []
    for offer in map(object_of, (list_of((required or {}).get("accepts")) or [])[:_OFFERS_MAX]):
        if offer is None or not _is_known(offer, networks):
            continue
        names = (
            str(offer["network"]),
            str(offer["asset"]),
            int(offer["amount"]),
            str(offer["payTo"]),
        )
        sign = partial(_x402_header, payer, required or {}, offer)
        found.append(_Offer(*names, "payment-signature", sign))
    challenge = received.headers.get("www-authenticate", "")
    is_mpp = len(challenge) <= _HEADER_CHARS_MAX and bool(_MPP.search(challenge))
    if is_mpp and payer.pays_mpp and not found:
        if "authorization" in request.headers:
            raise PaymentDeclined("MPP needs the header Authorization, which the call has already.")
        for one in tempo_offers(challenge, networks):
            sign = partial(payer.authorize_tempo, one)
            parts = one.network, one.asset, one.amount, one.pay_to
            found.append(_Offer(*parts, "authorization", sign))
    if required is None and not is_mpp:
        raise PaymentDeclined("The 402 does not say how to pay by x402 version 2 or by MPP.")
    return found


def _choose(offers: Sequence[_Offer], amount_max: int) -> _Offer:
    """Return the first offer that may be paid; raises `PaymentDeclined`."""
    for offer in offers:
        if offer.amount <= amount_max:
            return offer
    if offers:
        price = Decimal(offers[-1].amount).scaleb(-_DECIMALS)
        raise PaymentDeclined(f"The call costs {price:f} USD, which is more than max_price.")
    raise PaymentDeclined("The call can be paid on no network and in no asset that are allowed.")


def _is_known(offer: Mapping[str, Any], networks: tuple[str, ...]) -> bool:
    """Return whether signing the offer is a transfer of a known dollar, and nothing else."""
    network, extra = offer.get("network"), object_of(offer.get("extra")) or {}
    dollar = _DOLLARS.get(network) if isinstance(network, str) and network in networks else None
    if dollar is None or offer.get("scheme") != "exact":
        return False
    pay_to, seconds = _text(offer.get("payTo")), offer.get("maxTimeoutSeconds")
    return (
        _text(offer.get("asset")).lower() == dollar.address
        and (extra.get("name"), extra.get("version")) == (dollar.name, dollar.version)
        and extra.get("assetTransferMethod", "eip3009") == "eip3009"
        and bool(_AMOUNT.fullmatch(_text(offer.get("amount"))))
        and bool(_ADDRESS.fullmatch(pay_to))
        and int(pay_to, 16) != 0
        and pay_to.lower() != dollar.address
        and type(seconds) is int
        and 0 < seconds <= _VALID_S_MAX
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _x402_header(payer: Payer, required: Mapping[str, Any], requirement: Mapping[str, Any]) -> str:
    """Return the value of `PAYMENT-SIGNATURE` that pays the requirement; may block."""
    parts = {
        "x402Version": 2,
        "resource": required.get("resource"),
        "accepted": requirement,
        "payload": payer.authorize(requirement),
    }
    return base64.b64encode(json.dumps(parts).encode()).decode()


def _required(header: str | None) -> Mapping[str, Any] | None:
    """Return what a 402 asks for by x402 version 2; None if it does not."""
    members = _base64_object(header)
    is_asked = members is not None and members.get("x402Version") == 2  # noqa: PLR2004 - the version's number
    return members if is_asked else None


def _base64_object(header: str | None) -> Mapping[str, Any] | None:
    if header is None or len(header) > _HEADER_CHARS_MAX:
        return None
    text = header.translate(_URL_SAFE) + "=" * (-len(header) % 4)
    try:
        return object_of(json.loads(base64.b64decode(text, validate=True)))
    except (ValueError, RecursionError):
        return None


def _transaction(received: Received) -> str | None:
    x402 = _base64_object(received.headers.get("payment-response")) or {}
    mpp = _base64_object(received.headers.get("payment-receipt")) or {}
    found = x402.get("transaction") or mpp.get("reference")
    return found if isinstance(found, str) and re.fullmatch("0x[0-9a-fA-F]{64}", found) else None


def _reason(received: Received) -> str:
    """Return what the service says, shortened; its form is not trusted."""
    try:
        members = object_of(json.loads(received.body)) or {}
    except (ValueError, RecursionError):
        members = {}
    said = members.get("message") or members.get("error") or received.status
    return str(said)[:500]
