"""The test dollar of a local chain, and EIP-3009 authorisations over it."""

import secrets
import time

from eth_abi.abi import encode
from eth_account import Account

from assay_demo.chain.registries import Wallet, checksum, selector

BASE_SEPOLIA = 84532
BASE_SEPOLIA_USDC = "0x036cbd53842c5426634e7929541ec2318f3dcf7e"
"""Where Circle's dollar is on Base Sepolia. Source: x402.md#assets."""

_AUTHORIZATION = [
    {"name": "from", "type": "address"},
    {"name": "to", "type": "address"},
    {"name": "value", "type": "uint256"},
    {"name": "validAfter", "type": "uint256"},
    {"name": "validBefore", "type": "uint256"},
    {"name": "nonce", "type": "bytes32"},
]
"""Source: EIP-3009."""


def mint(wallet: Wallet, key: str, token: str, to: str, amount: int) -> None:
    """Give somebody test dollars, in base units."""
    data = selector("mint(address,uint256)") + encode(["address", "uint256"], [to, amount])
    wallet.send(key, token, data)


def balance(wallet: Wallet, token: str, owner: str) -> int:
    """What somebody has, in base units."""
    data = selector("balanceOf(address)") + encode(["address"], [owner])
    return int(wallet.request("eth_call", {"to": token, "data": "0x" + data.hex()}, "latest"), 16)


def authorize(
    key: str,
    requirement: dict[str, object],
    chain_id: int,
    *,
    valid_s: int = 120,
    nonce: bytes | None = None,
) -> dict[str, object]:
    """The `payload` that pays an x402 requirement (either version), signed with `key`."""
    now = int(time.time())
    value = str(requirement.get("amount") or requirement["maxAmountRequired"])
    extra = requirement["extra"]
    message = {
        "from": Account.from_key(key).address,
        "to": checksum(str(requirement["payTo"])),
        "value": int(value),
        "validAfter": now - 60,
        "validBefore": now + valid_s,
        "nonce": nonce or secrets.token_bytes(32),
    }
    signed = Account.sign_typed_data(
        key,
        domain_data={
            "name": extra["name"],  # type: ignore[index] - as the requirement has it
            "version": extra["version"],  # type: ignore[index]
            "chainId": chain_id,
            "verifyingContract": checksum(str(requirement["asset"])),
        },
        message_types={"TransferWithAuthorization": _AUTHORIZATION},
        message_data=message,
    )
    return {
        "signature": "0x" + signed.signature.hex().removeprefix("0x"),
        "authorization": {
            "from": message["from"],
            "to": message["to"],
            "value": value,
            "validAfter": str(message["validAfter"]),
            "validBefore": str(message["validBefore"]),
            "nonce": "0x" + message["nonce"].hex(),  # type: ignore[attr-defined]
        },
    }
