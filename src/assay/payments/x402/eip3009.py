"""Signatures over EIP-3009 authorisations (EIP-712 typed data), by libsecp256k1."""

from dataclasses import replace
from functools import lru_cache

from coincurve import PrivateKey, PublicKey

from assay.chains.evm.abi import address_word, word
from assay.chains.evm.eip191 import HALF_ORDER, address_of
from assay.common.keccak import keccak256
from assay.payments.model import PaymentNetwork
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
        digest = authorization_digest(authorization, network)
        try:
            key = PublicKey.from_signature_and_message(plain, digest, hasher=None)
        except Exception:  # noqa: BLE001 - coincurve raises bare Exception for an r off the curve
            return None
        return address_of(key)


def authorization_digest(signed: Authorization, network: PaymentNetwork) -> bytes:
    """What is signed. Source: EIP-712, "encode"."""
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
    """The same authorisation, signed; raises `ValueError` for what is no key."""
    digits = private_key.removeprefix("0x")
    if len(digits) != 64:  # noqa: PLR2004 - 32 bytes
        raise ValueError("a private key has 64 hexadecimal digits")
    plain = PrivateKey(bytes.fromhex(digits)).sign_recoverable(  # pyright: ignore[reportUnknownMemberType] - half-typed
        authorization_digest(unsigned, network), hasher=None
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
