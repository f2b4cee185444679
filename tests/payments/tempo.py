"""A Tempo node in memory: balances of one token, receipts, and stock clients that pay by it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import mpp
import rlp
from mpp.methods.tempo import client as tempo_client
from mpp.methods.tempo.account import TempoAccount

from assay.chains.evm.abi import address_word
from assay.chains.model import ChainUnavailable, Network
from assay.chains.rpc import ContractCall, Returned, Reverted, RpcRefused
from assay.common.addresses import keccak256
from assay.payments.mpp.tempo import TRANSFER_WITH_MEMO
from assay.payments.networks import payment_networks
from assay.payments.x402.eip3009 import TRANSFERRED
from tests.payments.boundary import Boundary

NETWORK = payment_networks({"tempo:42431": ("http://one.test", "http://two.test")})["tempo:42431"]
TOKEN = NETWORK.asset.address
KEY = "0x" + "0b" * 32
PAYER = TempoAccount.from_key(KEY).address.lower()
_BALANCE_OF = keccak256(b"balanceOf(address)")[:4].hex()


@dataclass(slots=True)
class FakeTempo:
    """The chain; every transaction is mined at once unless `holds`."""

    now_s: Callable[[], float]
    balances: dict[str, int] = field(default_factory=dict[str, int])
    receipts: dict[str, Any] = field(default_factory=dict[str, Any])
    held: dict[str, str] = field(default_factory=dict[str, str])
    holds: bool = False
    """Whether transactions wait to be mined."""
    refuses: str = ""
    """What it says of any transaction that it does not take."""
    is_down: bool = False
    height: int = 1000

    def answer(self, method: str, params: Sequence[Any]) -> Any:
        if self.is_down:
            raise ChainUnavailable("The chain cannot be read right now", detail="down")
        known: dict[str, Callable[[], Any]] = {
            "eth_chainId": lambda: hex(NETWORK.chain_id),
            "eth_gasPrice": lambda: hex(20 * 10**9),
            "eth_estimateGas": lambda: hex(100_000),
            "eth_getTransactionCount": lambda: "0x0",
            "eth_blockNumber": lambda: hex(self.height),
            "eth_getBlockByNumber": self._block,
            "eth_call": lambda: hex(self._called(params[0]["data"])),
            "eth_getTransactionReceipt": lambda: self.receipts.get(params[0]),
            "eth_getTransactionByHash": lambda: None,
            "eth_sendRawTransaction": lambda: self._sent(params[0])[0],
            "eth_sendRawTransactionSync": lambda: self._sent(params[0])[1],
            "tempo_simulateV1": lambda: {"blocks": []},
        }
        return known[method]()

    def mine(self) -> None:
        """All that waits."""
        for transaction, raw in [*self.held.items()]:
            del self.held[transaction]
            self._execute(transaction, raw)

    def _block(self) -> Any:
        time_s = hex(int(self.now_s()))
        return {"number": hex(self.height), "timestamp": time_s, "hash": "0x" + "01" * 32}

    def _called(self, data: str) -> int:
        asked = data.removeprefix("0x")
        return self.balances.get("0x" + asked[-40:], 0) if asked.startswith(_BALANCE_OF) else 0

    def _sent(self, raw: str) -> tuple[str, Any]:
        if self.refuses:
            raise RpcRefused("refused", rpc_code=-32000, rpc_message=self.refuses)
        transaction = "0x" + keccak256(bytes.fromhex(raw[2:])).hex()
        if transaction not in self.receipts:
            self.held[transaction] = raw
        if not self.holds:
            self.mine()
        return transaction, self.receipts.get(transaction)

    def _execute(self, transaction: str, raw: str) -> None:
        self.height += 1
        fields: Any = rlp.decode(bytes.fromhex(raw[4:]))
        logs: list[Any] = []
        for to, _value, data in fields[4]:
            payee, amount = "0x" + data[16:36].hex(), int.from_bytes(data[36:68])
            if self.balances.get(PAYER, 0) < amount:
                logs.clear()
                break
            self.balances[PAYER] -= amount
            self.balances[payee] = self.balances.get(payee, 0) + amount
            parties = ["0x" + address_word(one).hex() for one in (PAYER, payee)]
            place = {"address": "0x" + to.hex(), "data": "0x" + data[36:68].hex()}
            logs.append({**place, "topics": [TRANSFERRED, *parties]})
            if len(data) > 68:
                memo = "0x" + data[68:100].hex()
                logs.append({**place, "topics": [TRANSFER_WITH_MEMO, *parties, memo]})
        self.receipts[transaction] = {
            "status": "0x1" if logs else "0x0",
            "transactionHash": transaction,
            "blockNumber": hex(self.height),
            "from": PAYER,
            "to": TOKEN,
            "logs": logs,
        }


@dataclass(slots=True)
class TempoClient:
    """Implements `chains.rpc.Rpc`, as one process reaches it."""

    tempo: FakeTempo
    boundary: Boundary

    async def call_newest(
        self, network: Network, calls: Sequence[ContractCall]
    ) -> list[Returned | Reverted]:
        del network
        return await self._ask("eth_call", lambda: [self._returned(one) for one in calls])

    async def request(self, network: Network, method: str, params: Sequence[Any]) -> Any:
        del network
        return await self._ask(method, lambda: self.tempo.answer(method, params))

    async def request_all(
        self, network: Network, requests: Sequence[tuple[str, Sequence[Any]]]
    ) -> list[Any]:
        del network
        return await self._ask("batch", lambda: [self.tempo.answer(*one) for one in requests])

    def _returned(self, call: ContractCall) -> Returned:
        found = self.tempo.answer("eth_call", [{"to": call.to, "data": call.data.hex()}])
        return Returned(int(found, 16).to_bytes(32))

    async def _ask(self, name: str, ask: Callable[[], Any]) -> Any:
        async def effect() -> Any:
            return ask()

        lost = ChainUnavailable("The chain cannot be read right now", detail="timeout")
        return await self.boundary.cross(name, effect, lambda: lost)


async def credential(tempo: FakeTempo, monkeypatch: Any, demand: Sequence[Any]) -> str:
    """What a stock client sends for a 402: its own transaction, signed."""

    async def ask(_url: str, method: str, params: list[Any], **_: object) -> Any:
        return tempo.answer(method, params)

    async def gas(*_: object, **__: object) -> int:
        return 100_000

    monkeypatch.setattr(tempo_client, "_rpc_call", ask)
    monkeypatch.setattr(tempo_client, "estimate_gas", gas)
    (asked,) = [value.decode() for name, value in demand if name == b"www-authenticate"]
    challenge = mpp.Challenge.from_www_authenticate(asked)
    account = TempoAccount.from_key(KEY)
    url, chain_id = "http://tempo.test", NETWORK.chain_id
    method = tempo_client.charge(account=account, rpc_url=url, chain_id=chain_id)
    params: Any = SimpleNamespace(challenge=challenge)
    return await method.create_credential(params)
