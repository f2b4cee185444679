"""Deploying the registries and using them as anybody would: signed transactions over JSON-RPC."""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx2
from eth_abi.abi import encode
from eth_account import Account

from assay.common.addresses import keccak256

ARTIFACTS = json.loads((Path(__file__).parent / "artifacts.json").read_text("utf-8"))

RECEIPT_S = 10.0
_GAS_PRICE = 2 * 10**9


@dataclass(frozen=True, slots=True)
class Registries:
    """Where the registries are; lower case."""

    identity: str
    reputation: str


class Wallet:
    """Sends transactions to one node; each call returns when it is mined."""

    def __init__(self, url: str) -> None:
        self._http = httpx2.Client(base_url=url, timeout=30, trust_env=False)
        self._nonces: dict[str, int] = {}
        self._chain_id = int(self.request("eth_chainId"), 16)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._http.close()

    def request(self, method: str, *params: Any) -> Any:
        """One JSON-RPC request; an error answer raises `RuntimeError`."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = self._http.post("/", json=body).json()
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def send(self, key: str, to: str | None, data: bytes) -> dict[str, Any]:
        """A signed transaction, mined; its receipt. Raises `RuntimeError` when it reverted."""
        sender = Account.from_key(key).address
        nonce = self._nonces.get(sender)
        if nonce is None:
            nonce = int(self.request("eth_getTransactionCount", sender, "latest"), 16)
        call = {"from": sender, "data": "0x" + data.hex()} | ({"to": to} if to else {})
        gas = int(self.request("eth_estimateGas", call), 16)
        made = {
            "chainId": self._chain_id,
            "nonce": nonce,
            "gas": gas,
            "gasPrice": _GAS_PRICE,
            "value": 0,
            "data": data,
        }
        signed = Account.sign_transaction(made | ({"to": checksum(to)} if to else {}), key)
        digest = self.request("eth_sendRawTransaction", "0x" + signed.raw_transaction.hex())
        self._nonces[sender] = nonce + 1
        receipt = self._receipt(digest)
        if int(receipt["status"], 16) != 1:
            raise RuntimeError("the transaction reverted")
        return receipt

    def _receipt(self, digest: str) -> dict[str, Any]:
        """Of a transaction that was sent; some nodes take a moment to mine it."""
        ends_s = time.monotonic() + RECEIPT_S
        while (receipt := self.request("eth_getTransactionReceipt", digest)) is None:
            if time.monotonic() > ends_s:
                raise RuntimeError("the transaction was not mined")
            time.sleep(0.02)
        return receipt

    def deploy(self, key: str, contract: str, arguments: bytes = b"") -> str:
        """The address of a new contract."""
        code = bytes.fromhex(ARTIFACTS[contract]["bytecode"].removeprefix("0x"))
        return self.send(key, None, code + arguments)["contractAddress"].lower()


def deploy(wallet: Wallet, key: str) -> Registries:
    """Both registries, linked."""
    identity = wallet.deploy(key, "IdentityRegistry")
    reputation = wallet.deploy(key, "ReputationRegistry", encode(["address"], [identity]))
    return Registries(identity, reputation)


def register(wallet: Wallet, registries: Registries, key: str, uri: str) -> str:
    """A new agent owned by `key`; its id."""
    data = selector("register(string)") + encode(["string"], [uri])
    receipt = wallet.send(key, registries.identity, data)
    registered = "0x" + topic("Registered(uint256,string,address)").hex()
    log = next(log for log in receipt["logs"] if log["topics"][0] == registered)
    return str(int(log["topics"][1], 16))


def set_agent_uri(
    wallet: Wallet, registries: Registries, key: str, agent_id: str, uri: str
) -> None:
    """Point the agent at another registration file."""
    data = selector("setAgentURI(uint256,string)")
    wallet.send(
        key, registries.identity, data + encode(["uint256", "string"], [int(agent_id), uri])
    )


def transfer(wallet: Wallet, registries: Registries, key: str, agent_id: str, to: str) -> None:
    """Give the agent away; its agentWallet is cleared."""
    sender = Account.from_key(key).address
    types = ["address", "address", "uint256"]
    data = selector("transferFrom(address,address,uint256)")
    wallet.send(key, registries.identity, data + encode(types, [sender, to, int(agent_id)]))


def give_feedback(
    wallet: Wallet,
    registries: Registries,
    key: str,
    agent_id: str,
    value: int,
    decimals: int = 0,
    tag1: str = "starred",
    tag2: str = "",
    uri: str = "",
    digest: bytes = bytes(32),
) -> None:
    """One feedback entry by `key`; `uri` names its file, `digest` is the file's keccak256."""
    types = ["uint256", "int128", "uint8", "string", "string", "string", "string", "bytes32"]
    values = [int(agent_id), value, decimals, tag1, tag2, "", uri, digest]
    name = "giveFeedback(uint256,int128,uint8,string,string,string,string,bytes32)"
    wallet.send(key, registries.reputation, selector(name) + encode(types, values))


def revoke_feedback(
    wallet: Wallet, registries: Registries, key: str, agent_id: str, index: int
) -> None:
    """Take an entry back."""
    data = selector("revokeFeedback(uint256,uint64)")
    wallet.send(
        key, registries.reputation, data + encode(["uint256", "uint64"], [int(agent_id), index])
    )


def set_agent_wallet(
    wallet: Wallet, registries: Registries, key: str, agent_id: str, new_key: str, deadline: int
) -> None:
    """Another wallet speaks for the agent; it signs (EIP-712), the owner sends."""
    owner, new = Account.from_key(key).address, Account.from_key(new_key).address
    signed = Account.sign_typed_data(
        new_key,
        domain_data={
            "name": "ERC8004IdentityRegistry",
            "version": "1",
            "chainId": int(wallet.request("eth_chainId"), 16),
            "verifyingContract": checksum(registries.identity),
        },
        message_types={
            "AgentWalletSet": [
                {"name": "agentId", "type": "uint256"},
                {"name": "newWallet", "type": "address"},
                {"name": "owner", "type": "address"},
                {"name": "deadline", "type": "uint256"},
            ]
        },
        message_data={
            "agentId": int(agent_id),
            "newWallet": new,
            "owner": owner,
            "deadline": deadline,
        },
    )
    types = ["uint256", "address", "uint256", "bytes"]
    values = [int(agent_id), new, deadline, signed.signature]
    data = selector("setAgentWallet(uint256,address,uint256,bytes)") + encode(types, values)
    wallet.send(key, registries.identity, data)


def selector(signature: str) -> bytes:
    """The first four bytes of a signature's hash."""
    return topic(signature)[:4]


def topic(signature: str) -> bytes:
    """keccak256 of a signature."""
    return keccak256(signature.encode())


def checksum(address: str) -> str:
    """The checksummed spelling. Source: EIP-55."""
    digits = address.lower().removeprefix("0x")
    digest = topic(digits).hex()
    shown = (c.upper() if int(digest[n], 16) > 7 else c for n, c in enumerate(digits))  # noqa: PLR2004
    return "0x" + "".join(shown)
