"""What we sign and recover is what the reference implementation signs and recovers."""

import pytest
from eth_account import Account
from hypothesis import given
from hypothesis import strategies as st

from assay.chains.evm.signing import EvmTransaction, TransactionSigner
from assay.payments.networks import ROWS
from assay.payments.ports import Authorization
from assay.payments.x402.eip3009 import Eip3009Signers, sign_authorization
from assay_demo.chain.dollars import authorize
from assay_demo.chain.registries import checksum

KEY = "0x" + "42" * 32
ADDRESS = Account.from_key(KEY).address.lower()
BASE = [row for row in ROWS if row.protocol == "x402"]
UINT = st.integers(0, 2**64)
HEX20 = st.binary(min_size=20, max_size=20).map(lambda b: "0x" + b.hex())


def parsed(payload: dict[str, object]) -> Authorization:
    from assay.payments.x402.codec import authorization_of  # noqa: PLC0415

    return authorization_of(payload)  # type: ignore[arg-type]


@pytest.mark.parametrize("network", BASE, ids=lambda row: row.id)
def test_the_reference_implementations_signature_is_recovered(network: object) -> None:
    requirement = {
        "amount": "10000",
        "payTo": "0x" + "ab" * 20,
        "asset": network.asset.address,  # type: ignore[attr-defined]
        "extra": {
            "name": network.asset.eip712_name,  # type: ignore[attr-defined]
            "version": network.asset.eip712_version,  # type: ignore[attr-defined]
        },
    }
    payload = authorize(KEY, requirement, network.chain_id)  # type: ignore[attr-defined]
    assert Eip3009Signers().signer(parsed(payload), network) == ADDRESS  # type: ignore[arg-type]
    others = [row for row in BASE if row is not network]
    assert Eip3009Signers().signer(parsed(payload), others[0]) != ADDRESS


@given(HEX20, UINT, UINT, UINT, st.binary(min_size=32, max_size=32))
def test_what_we_sign_we_recover_and_nothing_else(
    to: str, value: int, after: int, before: int, nonce: bytes
) -> None:
    unsigned = Authorization(ADDRESS, to, value, after, before, "0x" + nonce.hex(), "")
    signed = sign_authorization(KEY, unsigned, BASE[0])
    assert Eip3009Signers().signer(signed, BASE[0]) == ADDRESS
    dearer = Authorization(ADDRESS, to, value + 1, after, before, signed.nonce, signed.signature)
    assert Eip3009Signers().signer(dearer, BASE[0]) != ADDRESS


@pytest.mark.parametrize("spoilt", ["ff" * 65, "00" * 65, "11" * 64 + "1d"])
def test_a_signature_that_is_none_has_no_signer(spoilt: str) -> None:
    broken = Authorization(ADDRESS, ADDRESS, 1, 0, 1, "0x" + "00" * 32, "0x" + spoilt)
    assert Eip3009Signers().signer(broken, BASE[0]) is None


def test_the_mirror_image_of_a_signature_has_no_signer() -> None:
    order = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
    unsigned = Authorization(ADDRESS, ADDRESS, 1, 0, 1, "0x" + "00" * 32, "")
    raw = bytes.fromhex(sign_authorization(KEY, unsigned, BASE[0]).signature[2:])
    mirrored = raw[:32] + (order - int.from_bytes(raw[32:64])).to_bytes(32) + bytes([55 - raw[64]])
    other = Authorization(ADDRESS, ADDRESS, 1, 0, 1, "0x" + "00" * 32, "0x" + mirrored.hex())
    assert Eip3009Signers().signer(other, BASE[0]) is None


@given(
    st.integers(1, 2**32),
    UINT,
    UINT,
    UINT,
    st.integers(21000, 2**24),
    HEX20,
    st.binary(max_size=300),
)
def test_transactions_are_the_reference_implementations(
    chain: int, nonce: int, tip: int, fee: int, gas: int, to: str, data: bytes
) -> None:
    fee = max(fee, tip)
    made = EvmTransaction(chain, nonce, tip, fee, gas, to, data)
    raw, digest = TransactionSigner(KEY).sign(made)
    reference = Account.sign_transaction(
        {
            "type": 2,
            "chainId": chain,
            "nonce": nonce,
            "maxPriorityFeePerGas": tip,
            "maxFeePerGas": fee,
            "gas": gas,
            "to": checksum(to),
            "value": 0,
            "data": data,
        },
        KEY,
    )
    assert raw == "0x" + reference.raw_transaction.hex().removeprefix("0x")
    assert digest == "0x" + reference.hash.hex().removeprefix("0x")
