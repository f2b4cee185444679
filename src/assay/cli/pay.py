"""`assay pay`: a paying client, step by step (x402 version 2, scheme `exact`)."""

import base64
import json
import secrets
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, Any

import httpx2
from cyclopts import Parameter

from assay.app import address_of_key, sign_authorization
from assay.cli.command import FAILED, complain
from assay.common.json import is_array, is_object
from assay.common.numbers import DECIMALS, NotANumber, decimal_number, whole_number
from assay.payments.model import PaymentNetwork
from assay.payments.networks import ROWS
from assay.payments.ports import Authorization

TIMEOUT_S = 60.0
AGAIN_S = 2.0
AMOUNT_MAX = 2**256 - 1
TIMEOUT_S_MAX = 86_400
"""Longest validity of what is signed."""

_PAYMENT_REQUIRED, _UNAVAILABLE = 402, 503
_SHOWN_CHARS = 2000

Say = Callable[[str], None]


class CannotPay(RuntimeError):
    """Nothing was paid; the message says why."""


@dataclass(frozen=True, slots=True)
class PayableRequirement:
    """What a 402 asks for, as far as it can be paid here."""

    required: Mapping[str, Any]
    """The whole 402."""
    requirement: Mapping[str, Any]
    """Its entry that is paid."""
    network: PaymentNetwork
    amount: int
    """In base units: millionths of a USD."""

    @property
    def usd(self) -> Decimal:
        """Return the price in USD."""
        return Decimal(self.amount).scaleb(-DECIMALS)

    @property
    def payee(self) -> str:
        """Return the wallet that receives it, as the 402 writes it."""
        return str(self.requirement["payTo"])

    @property
    def valid_s(self) -> int:
        """Return how long what is signed can be settled."""
        return _timeout_s(self.requirement)


@dataclass(frozen=True, slots=True)
class PayingClient:
    """The payer, its limit (base units), and the agent that it speaks for."""

    key: str
    amount_max: int
    agent_id: str | None = None
    approve: Callable[["PayableRequirement"], None] = lambda _demand: None
    """Called before signing; raises `CannotPay` to refuse."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Return the claimed caller's headers; the payment is the proof."""
        return {} if self.agent_id is None else {"x-agent-id": self.agent_id}


def pay(
    url: Annotated[str, Parameter(help="A wrapper's public address, or any x402 resource.")],
    *,
    key_file: Annotated[Path, Parameter(help="File with the payer's key, 64 hex digits.")],
    agent_id: Annotated[str | None, Parameter(help="The agent that the payer speaks for.")] = None,
    max_usd: Annotated[str, Parameter(help="Pays no more than this.")] = "0.10",
) -> int:
    """Call, pay if asked to, and print every step."""
    try:
        amount_max = int(Decimal(max_usd).scaleb(DECIMALS))
        payer = PayingClient(key_file.read_text("utf-8").strip(), amount_max, agent_id)
        with httpx2.Client(timeout=TIMEOUT_S, trust_env=False) as http:
            answer = call(http, url, payer, lambda text: print(text, file=sys.stderr))  # noqa: T201
    except InvalidOperation:
        complain(f"--max-usd {max_usd!r} is not a number")
        return FAILED
    except (OSError, ValueError, CannotPay, httpx2.HTTPError) as error:
        complain(str(error) or type(error).__name__)
        return FAILED
    sys.stdout.write(answer.text[:_SHOWN_CHARS] + "\n")
    return 0 if answer.is_success else FAILED


def call(
    http: httpx2.Client, url: str, payer: PayingClient, say: Say, patience_s: float = 0.0
) -> httpx2.Response:
    """Return the final answer of a GET, paid for if asked. Raises `CannotPay`.

    `payer.approve` has the last word before anything is signed. While the answer is 503, the same
    payment is sent again for `patience_s` seconds: it is used at most once.
    """
    answer = http.get(url, headers=dict(payer.headers))
    say(f"{answer.status_code} {answer.reason_phrase}")
    if answer.status_code != _PAYMENT_REQUIRED:
        return answer
    demand = demand_of(answer, payer.amount_max)
    payer.approve(demand)
    say(f"  asks for {demand.usd:.6f} USD on {demand.network.id} to {demand.payee}; signing")
    header = _payment(payer.key, demand.required, demand.requirement, demand.network)
    headers = {**payer.headers, "payment-signature": header}
    ends_s = time.monotonic() + patience_s
    while (answer := http.get(url, headers=headers)).status_code == _UNAVAILABLE:
        if time.monotonic() >= ends_s:
            break
        say(f"{answer.status_code} {answer.reason_phrase}; the same payment again")
        time.sleep(AGAIN_S)
    say(f"{answer.status_code} {answer.reason_phrase}")
    if "payment-response" in answer.headers:
        receipt = _decoded(answer.headers["payment-response"])
        say(f"  receipt: {receipt.get('transaction') or receipt.get('errorReason')}")
    return answer


def transaction_of(answer: httpx2.Response) -> str:
    """Return the hash in the receipt of a paid answer; empty without one."""
    header = answer.headers.get("payment-response")
    return "" if header is None else str(_decoded(header).get("transaction") or "")


def demand_of(answer: httpx2.Response, amount_max: int) -> PayableRequirement:
    """Return the first requirement of a 402 that we can meet.

    The asset and the network come from our own table. Raises `CannotPay` if it asks for more than
    `amount_max` base units, or for nothing that can be paid here.
    """
    required = _decoded(answer.headers.get("payment-required"))
    known = {row.id: row for row in ROWS if row.protocol == "x402"}
    offers: object = required.get("accepts")
    for requirement in offers if is_array(offers) else ():
        if not is_object(requirement) or not isinstance(requirement.get("payTo"), str):
            continue
        network = known.get(str(requirement.get("network")))
        if network is None or requirement.get("scheme") != "exact":
            continue
        if str(requirement.get("asset")).lower() != network.asset.address:
            continue
        amount = _amount(requirement)
        if amount > amount_max:
            raise CannotPay("it asks for more than --max-usd")
        return PayableRequirement(required, requirement, network, amount)
    raise CannotPay("it asks for no payment that can be made here")


def _payment(
    key: str,
    required: Mapping[str, Any],
    requirement: Mapping[str, Any],
    network: PaymentNetwork,
) -> str:
    now = int(time.time())
    signed = sign_authorization(
        key,
        Authorization(
            payer=address_of_key(key),
            to=str(requirement["payTo"]).lower(),
            value=_amount(requirement),
            valid_after=now - 60,
            valid_before=now + _timeout_s(requirement),
            nonce="0x" + secrets.token_hex(32),
            signature="",
        ),
        network,
    )
    payment = {
        "x402Version": 2,
        "resource": required.get("resource"),
        "accepted": requirement,
        "payload": {
            "signature": signed.signature,
            "authorization": {
                "from": signed.payer,
                "to": signed.to,
                "value": str(signed.value),
                "validAfter": str(signed.valid_after),
                "validBefore": str(signed.valid_before),
                "nonce": signed.nonce,
            },
        },
    }
    return base64.b64encode(json.dumps(payment).encode()).decode()


def _amount(requirement: Mapping[str, Any]) -> int:
    try:
        return decimal_number(requirement.get("amount"), AMOUNT_MAX)
    except NotANumber as error:
        raise CannotPay(f"its 402 asks for no amount: {error}") from None


def _timeout_s(requirement: Mapping[str, Any]) -> int:
    try:
        return whole_number(requirement.get("maxTimeoutSeconds", 60), TIMEOUT_S_MAX)
    except NotANumber as error:
        raise CannotPay(f"its 402 has no maxTimeoutSeconds: {error}") from None


def _decoded(header: str | None) -> Mapping[str, Any]:
    try:
        value = json.loads(base64.b64decode(header or "", validate=True))
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise CannotPay("its 402 does not say how to pay by x402 version 2")
    return value  # pyright: ignore[reportUnknownVariableType] - JSON of a stranger
