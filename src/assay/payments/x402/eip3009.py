"""EIP-3009 assets: signatures over authorisations, and the contract's calls and receipts.

Signatures are EIP-712 typed data, by libsecp256k1. Source: EIP-3009; ERC-20.
"""

from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

from coincurve import PrivateKey, PublicKey

from assay.chains.evm.abi import address_word, word
from assay.chains.evm.signing import HALF_ORDER, address_of
from assay.common.addresses import keccak256
from assay.common.json import JsonValue, is_array, is_object
from assay.common.numbers import NotANumber, hex_number
from assay.payments.model import LedgerEntry, PaymentNetwork, WatchedPayment
from assay.payments.ports import Authorization

_DOMAIN_TYPE = keccak256(
    b"EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"
)
_TRANSFER_TYPE = keccak256(
    b"TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,"
    b"uint256 validBefore,bytes32 nonce)"
)
"""Source: EIP-712, "definition of domainSeparator"; EIP-3009, "typeHash"."""

_SIGNATURE_BYTES = 65


class Eip3009Signers:
    """Implements `payments.ports.AuthorizationSigners`."""

    def signer(self, authorization: Authorization, network: PaymentNetwork) -> str | None:
        signature = bytes.fromhex(authorization.signature[2:])
        if len(signature) != _SIGNATURE_BYTES or signature[64] not in {0, 1, 27, 28}:
            return None
        if not 0 < int.from_bytes(signature[32:64]) <= HALF_ORDER:
            return None
        plain = signature[:64] + bytes([signature[64] % 27])
        digest = _authorization_digest(authorization, network)
        try:
            key = PublicKey.from_signature_and_message(plain, digest, hasher=None)
        except Exception:  # noqa: BLE001 - coincurve raises bare Exception for an r off the curve
            return None
        return address_of(key)


def _authorization_digest(signed: Authorization, network: PaymentNetwork) -> bytes:
    """Return the digest that is signed. Source: EIP-712, "encode"."""
    struct = keccak256(
        _TRANSFER_TYPE
        + address_word(signed.payer)
        + address_word(signed.to)
        + word(signed.value)
        + word(signed.valid_after)
        + word(signed.valid_before)
        + bytes.fromhex(signed.nonce[2:])
    )
    return keccak256(b"\x19\x01" + _domain(network) + struct)


def sign_authorization(
    private_key: str, unsigned: Authorization, network: PaymentNetwork
) -> Authorization:
    """Return the authorisation, signed; raises `ValueError` for an invalid key."""
    digits = private_key.removeprefix("0x")
    if len(digits) != 64:  # noqa: PLR2004 - 32 bytes
        raise ValueError("a private key has 64 hexadecimal digits")
    plain = PrivateKey(bytes.fromhex(digits)).sign_recoverable(  # pyright: ignore[reportUnknownMemberType] - half-typed
        _authorization_digest(unsigned, network), hasher=None
    )
    return replace(unsigned, signature="0x" + (plain[:64] + bytes([plain[64] + 27])).hex())


@lru_cache(maxsize=64)
def _domain(network: PaymentNetwork) -> bytes:
    asset = network.asset
    return keccak256(
        _DOMAIN_TYPE
        + keccak256(asset.eip712_name.encode())
        + keccak256(asset.eip712_version.encode())
        + word(network.chain_id)
        + address_word(asset.address)
    )


def _selector(signature: str) -> bytes:
    return keccak256(signature.encode())[:4]


_TRANSFER = _selector(
    "transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)"
)
_BALANCE_OF = _selector("balanceOf(address)")
_STATE = _selector("authorizationState(address,bytes32)")
USED = "0x" + keccak256(b"AuthorizationUsed(address,bytes32)").hex()
CANCELLED = "0x" + keccak256(b"AuthorizationCanceled(address,bytes32)").hex()
TRANSFERRED = "0x" + keccak256(b"Transfer(address,address,uint256)").hex()
"""Source: EIP-3009; ERC-20."""


def balance_of(payer: str) -> bytes:
    """Return the call that asks for a balance."""
    return _BALANCE_OF + address_word(payer)


def state_of(payer: str, nonce: str) -> bytes:
    """Return the call that asks whether an authorisation was used or cancelled."""
    return _STATE + address_word(payer) + bytes.fromhex(nonce[2:])


def _used_topics(entry: LedgerEntry | WatchedPayment) -> list[str]:
    """Return the topics of the log that says which transaction used it."""
    return [USED, *key_topics(entry)]


def key_topics(entry: LedgerEntry | WatchedPayment) -> list[str]:
    """Return its authorisation's topics in the logs of its use and of its cancellation."""
    return ["0x" + address_word(entry.payer).hex(), entry.nonce]


def transfer_data(signed: Authorization) -> bytes:
    """Return the call that moves the money. Source: EIP-3009, `transferWithAuthorization`."""
    signature = bytes.fromhex(signed.signature[2:])
    v = signature[64] if signature[64] >= 27 else signature[64] + 27  # noqa: PLR2004 - EIP-191's v
    return b"".join(
        (
            _TRANSFER,
            address_word(signed.payer),
            address_word(signed.to),
            word(signed.value),
            word(signed.valid_after),
            word(signed.valid_before),
            bytes.fromhex(signed.nonce[2:]),
            word(v),
            signature[:64],
        )
    )


def pays(receipt: JsonValue, entry: LedgerEntry | WatchedPayment) -> bool:
    """Return whether the transaction used this very authorisation, and moved the amount with it.

    The transfer to the payee is the asset's next log after `AuthorizationUsed`. A transaction may
    use several authorisations of one payer, and the transfer of one of them must not pay for two.
    Source: Circle's FiatTokenV2, `_transferWithAuthorization`, which writes both without a step
    between.
    """
    if not is_object(receipt) or receipt.get("status") != "0x1":
        return False
    logs = receipt.get("logs")
    ours = [
        log
        for log in (logs if is_array(logs) else ())
        if is_object(log) and str(log.get("address")).lower() == entry.asset
    ]
    used = _used_topics(entry)
    wanted = [TRANSFERRED, used[1], "0x" + address_word(entry.pay_to).hex()]
    return any(
        _topics(before.get("topics")) == used
        and _topics(log.get("topics")) == wanted
        and _hex_number(log.get("data")) == entry.amount
        for before, log in pairwise(ours)
    )


def event_of(receipt: JsonValue, entry: LedgerEntry) -> str:
    """Return the event by which a mined transaction used this authorisation, or an empty text."""
    if not is_object(receipt) or receipt.get("status") != "0x1":
        return ""
    logs = receipt.get("logs")
    events = {
        tuple(_topics(log.get("topics")))
        for log in (logs if is_array(logs) else ())
        if is_object(log) and str(log.get("address")).lower() == entry.asset
    }
    return next((e for e in (USED, CANCELLED) if (e, *key_topics(entry)) in events), "")


def gas_spent(receipt: JsonValue) -> int | None:
    """Return the cost of a mined transaction in wei, if its receipt says so, else None.

    It includes what an OP Stack chain takes for writing it to Ethereum. Source: EIP-1559,
    `effectiveGasPrice`; OP Stack, `l1Fee`.
    """
    if not is_object(receipt):
        return None
    gas, price = _hex_number(receipt.get("gasUsed")), _hex_number(receipt.get("effectiveGasPrice"))
    if gas < 0 or price < 0:
        return None
    return gas * price + max(0, _hex_number(receipt.get("l1Fee")))


def _topics(value: JsonValue) -> list[str]:
    return [str(topic).lower() for topic in value] if is_array(value) else []


def _hex_number(value: JsonValue) -> int:
    try:
        return hex_number(value, 256)
    except NotANumber:
        return -1
