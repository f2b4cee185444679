"""Reads and signs MPP challenges (method `tempo`, intent `charge`) with the stock library `pympp`.

Everything in a challenge is checked before it is signed, the tokens come from our own table, and
the library is handed the checked members alone. Nothing here sends a payment.
"""

import asyncio
import base64
import importlib
import json
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final

from assay_client.errors import ConnectionFailed, MissingExtra
from assay_client.models import list_of, object_of

_TOKENS: Mapping[int, str] = MappingProxyType(
    {
        4217: "0x20c000000000000000000000b9537d11c60e8b50",
        42431: "0x20c0000000000000000000000000000000000000",
    }
)
"""USDC.e on Tempo, pathUSD on its test network. Source: docs/reference/mpp.md#tempo-constants."""

TEMPO_NETWORKS: Final = tuple(f"eip155:{chain}" for chain in _TOKENS)

_AMOUNT = re.compile(r"[1-9][0-9]{0,29}")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_MEMO = re.compile(r"0x[0-9a-fA-F]{64}")
_NEXT = re.compile(r",\s*(?=payment\s+[a-z]+=)", re.IGNORECASE)
_MISSING = "pympp is not installed: pip install 'assay-client[mpp]'"
_OFFERS_MAX = 20
_SPLITS_MAX = 10
FEE_MAX: Final = 100_000
"""Most that the network may take beside the price, in base units: 0.10 USD. The node says what gas
costs, and a wrong one must not decide what is paid."""

_ATTO_PER_BASE_UNIT = 10**12
_SIGN_S = 20.0
"""Longest wait for the node that says what gas costs."""


@dataclass(frozen=True)
class TempoOffer:
    """A checked challenge: a transfer of `amount` of a known token, in parts if it has splits."""

    network: str
    asset: str
    amount: int
    pay_to: str
    """Who receives it, or what is left of it after the splits."""
    challenge: Any = field(repr=False)


def tempo_offers(header: str, networks: tuple[str, ...]) -> list[TempoOffer]:
    """Return what may be signed of a `WWW-Authenticate` header; raises `MissingExtra`."""
    mpp: Any = _library("mpp")
    found: list[TempoOffer] = []
    for text in _NEXT.split(header)[:_OFFERS_MAX]:
        try:
            challenge = mpp.Challenge.from_www_authenticate(text)
        except (mpp.ParseError, ValueError, RecursionError):
            continue
        offer = _checked(challenge, networks)
        if offer is not None:
            found.append(offer)
    return found


def sign_tempo(offer: TempoOffer, private_key: str, rpc_url: str | None) -> str:
    """Return the value of `Authorization` that pays the offer; blocks, and asks a node of Tempo.

    Raises `MissingExtra`, and `ConnectionFailed` if the node does not answer.
    """
    account: Any = _library("mpp.methods.tempo.account").TempoAccount.from_key(private_key)
    chain_id = int(offer.network.partition(":")[2])
    charge: Any = _library("mpp.methods.tempo.client").charge(
        account=account,
        chain_id=chain_id,
        rpc_url=rpc_url,
        currency=offer.asset,
        max_atomic_amount=offer.amount,
    )
    parameters: Any = _library("mpp.client").CredentialParams(challenge=offer.challenge)

    async def sign() -> str:
        return await asyncio.wait_for(charge.create_credential(parameters), _SIGN_S)

    try:
        with ThreadPoolExecutor(1) as thread:  # the caller's thread may run a loop already
            made = thread.submit(asyncio.run, sign()).result()
        fee = _fee(made)
    except ImportError:
        raise MissingExtra(_MISSING) from None
    except Exception as error:  # noqa: BLE001 - of the library, its HTTP client, JSON, the loop
        kind = type(error).__name__  # the message may have the node's address and its key
        message = f"The payment could not be signed, and nothing was sent: {kind}."
        raise ConnectionFailed(message, sent=False) from None
    if fee > FEE_MAX:
        message = "The node of Tempo asks for too high a fee of the network; nothing was sent."
        raise ConnectionFailed(message, sent=False)
    return made


def _fee(authorization: str) -> int:
    """Return the most that the network may take for a signed transaction, in base units.

    Source: docs/reference/mpp.md#credential; pytempo, the order of a transaction's fields.
    """
    text = authorization.partition(" ")[2]
    made = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    transaction = bytes.fromhex(made["payload"]["signature"].removeprefix("0x"))
    fields: Any = _library("rlp").decode(transaction[1:])
    price, gas = (int.from_bytes(fields[place], "big") for place in (2, 3))
    return -(-price * gas // _ATTO_PER_BASE_UNIT)


def _checked(challenge: Any, networks: tuple[str, ...]) -> TempoOffer | None:
    """Return the offer if signing it is a transfer of a known token, and nothing else."""
    request = object_of(challenge.request) or {}
    details = object_of(request.get("methodDetails")) or {}
    chain_id, recipient = details.get("chainId"), request.get("recipient")
    token = _TOKENS.get(chain_id) if type(chain_id) is int else None
    amount, splits = _amount(request.get("amount")), _splits(details.get("splits"), token)
    modes = details.get("supportedModes")
    is_known = (
        (challenge.method, challenge.intent) == ("tempo", "charge")
        and challenge.credential_header.lower() == "authorization"
        and bool(challenge.expires)
        and token is not None
        and f"eip155:{chain_id}" in networks
        and str(request.get("currency")).lower() == token
        and _is_wallet(recipient, token)
        and not details.get("feePayer")
        and (modes is None or "pull" in (list_of(modes) or []))
    )
    if not is_known or token is None or splits is None:
        return None
    if amount <= sum(int(split["amount"]) for split in splits):
        return None
    named = {"chainId": chain_id, **({"splits": splits} if splits else {})}
    members = {"amount": str(amount), "currency": token, "recipient": recipient}
    clean = replace(challenge, request={**members, "methodDetails": named})
    return TempoOffer(f"eip155:{chain_id}", token, amount, str(recipient), clean)


def _splits(value: object, token: str | None) -> list[Mapping[str, str]] | None:
    """Return the parts that others receive; None if they are not certain."""
    rows = [] if value is None else list_of(value)
    if rows is None or len(rows) > _SPLITS_MAX:
        return None
    found: list[Mapping[str, str]] = []
    for row in map(object_of, rows):
        amount, to = (_amount(row.get("amount")), row.get("recipient")) if row else (0, None)
        memo = row.get("memo") if row else None
        if not amount or not _is_wallet(to, token):
            return None
        if memo is not None and not (isinstance(memo, str) and _MEMO.fullmatch(memo)):
            return None
        split = {"amount": str(amount), "recipient": str(to)}
        found.append(split if memo is None else {**split, "memo": memo})
    return found


def _amount(value: object) -> int:
    """Return an amount in base units; 0 for anything else."""
    return int(value) if isinstance(value, str) and _AMOUNT.fullmatch(value) else 0


def _is_wallet(value: object, token: str | None) -> bool:
    is_address = isinstance(value, str) and _ADDRESS.fullmatch(value) is not None
    return is_address and int(str(value), 16) != 0 and str(value).lower() != token


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingExtra(_MISSING) from None
