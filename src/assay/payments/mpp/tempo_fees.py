"""What a payer's own Tempo transaction may cost besides what it pays, and when it can be mined.

Source: Tempo's transaction type 0x76, fields 2, 3, 8, 9, 10 and 11 (most per gas in 10^-18 dollars,
gas, `valid_before` and `valid_after` in seconds or empty, token of the fees, signature of somebody
else who pays them); Tempo's fee rules: a token that the transaction does not name is the one its
sender has chosen, else the one it calls.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from assay.chains.evm.abi import AbiReader, BadAnswer, address_word
from assay.chains.model import ChainUnavailable, Network
from assay.chains.rpc import ContractCall, Returned, Rpc
from assay.common.json import JsonObject, is_object
from assay.common.keccak import keccak256
from assay.payments.model import Fees, PaymentNetwork, PaymentRefused, PaymentsUnavailable

FEE_MANAGER = "0xfeec000000000000000000000000000000000000"
"""Keeps who pays fees in which token. Source: pytempo, `contracts.addresses`."""

_USER_TOKENS = keccak256(b"userTokens(address)")[:4]
_ATTO_PER_BASE_UNIT = 10**12
FEES_MAX = 10**15
"""A thousand million dollars: more than anybody has, and thousands of it fit into a sum."""

_FOREVER = 2**40
"""A moment beyond all that are compared with it, which a number of any size may be."""

_TYPE = 0x76
_SPONSOR_FIELD = 11
_NONE = b""


@dataclass(frozen=True, slots=True)
class Validity:
    """When a transaction can be mined, in seconds since 1970: `after` and later, before `before`.

    None where it sets no bound.
    """

    after: int | None = None
    before: int | None = None


@dataclass(frozen=True, slots=True)
class _Said:
    """What a transaction says of its fees; `token` is empty where it names none."""

    most: int
    token: str


async def fees_of(
    rpc: Rpc, chain: Network, network: PaymentNetwork, payer: str, credential: JsonObject
) -> Fees:
    """The most that is taken besides the payment, rounded up to base units.

    Raises `PaymentRefused` for a transaction whose fees somebody else is to pay: whether he can is
    looked at by nobody. Raises `PaymentsUnavailable`.
    """
    payload = credential.get("payload")
    said = _said(str(payload.get("signature")) if is_object(payload) else "")
    if said.token:
        return Fees(said.token, said.most)
    chosen = await _chosen(rpc, chain, payer)
    return Fees(chosen or network.asset.address, said.most)


def validity_of(credential: JsonObject) -> Validity:
    """When the payer's transaction can be mined. Raises `PaymentRefused` for one of no form."""
    payload = credential.get("payload")
    _, fields = _decoded(str(payload.get("signature")) if is_object(payload) else "")
    try:
        times = (int.from_bytes(bytes(fields[place])) for place in (8, 9))
        before, after = (min(time, _FOREVER) for time in times)
    except Exception as error:
        raise PaymentRefused("invalid-payload", "The payment is malformed.") from error
    return Validity(after or None, before or None)


def _decoded(raw: str) -> tuple[int, Any]:
    """The type and the fields of a transaction."""
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
    """The token an account pays fees in wherever it names none; empty: it has chosen none."""
    call = ContractCall(FEE_MANAGER, _USER_TOKENS + address_word(payer))
    try:
        (answer,) = await rpc.call_newest(chain, (call,))
        token = AbiReader(answer.data).number(0) if isinstance(answer, Returned) else 0
    except (ChainUnavailable, BadAnswer) as error:
        raise PaymentsUnavailable(
            "Payments cannot be checked now.", detail=f"tempo: {error!r}", retry_after_s=5
        ) from error
    return f"0x{token:040x}" if token else ""
