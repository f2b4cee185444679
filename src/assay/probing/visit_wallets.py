"""Derives wallets of single visits from one key, and reads balances of an asset."""

import hashlib
import hmac
from collections.abc import Mapping

from assay.chains.evm.abi import AbiReader, BadAnswer
from assay.chains.evm.eip191 import address_of_key
from assay.chains.model import Network
from assay.chains.rpc import ContractCall, Returned, Rpc
from assay.payments.model import PaymentNetwork, PaymentsUnavailable
from assay.payments.ports import Authorization
from assay.payments.x402.eip3009 import sign_authorization
from assay.payments.x402.eip3009_contract import balance_of

_ORDER = int("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141", 16)
"""Order of secp256k1. Source: SEC 2, section 2.4.1."""


class DerivedWallets:
    """Derives each wallet from the key and an id; implements `probing.paid_calls.VisitWallets`."""

    def __init__(self, private_key: str) -> None:
        """Load the key. Raises `ValueError` unless it is a key of 64 hex digits."""
        address_of_key(private_key)
        self._secret = bytes.fromhex(private_key.removeprefix("0x"))

    def address(self, call_id: str) -> str:
        return address_of_key(self._key(call_id))

    def sign(self, call_id: str, transfer: Authorization, network: PaymentNetwork) -> Authorization:
        return sign_authorization(self._key(call_id), transfer, network)

    def _key(self, call_id: str) -> str:
        digest = hmac.digest(self._secret, f"assay.paid-call.v1/{call_id}".encode(), hashlib.sha512)
        return f"{int.from_bytes(digest) % (_ORDER - 1) + 1:064x}"


class AssetBalances:
    """Reads balances; implements `probing.paid_calls.Balances`."""

    def __init__(self, rpc: Rpc, chains: Mapping[str, Network]) -> None:
        self._rpc = rpc
        self._chains = chains

    async def balance(self, network: PaymentNetwork, wallet: str) -> int:
        call = ContractCall(network.asset.address, balance_of(wallet))
        (found,) = await self._rpc.call_newest(self._chains[network.id], (call,))
        try:
            if isinstance(found, Returned):
                return AbiReader(found.data).number(0)
        except BadAnswer:
            pass
        raise PaymentsUnavailable("The chain does not say what a wallet holds.")
