"""A node with one agent and a funded wallet, and a plain client of it, for tests of the grounds."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import httpx2
from solders.instruction import AccountMeta, Instruction
from solders.keypair import Keypair
from solders.transaction import VersionedTransaction

from tests.support.solana.clusters import keypair
from tests.support.solana.feedback import Args
from tests.support.solana.registry import Agent, Registry
from tests.support.solana.rpc import Node, node
from tests.support.solana.transactions import give_feedback, limit, signed, wire

WALLET = keypair("wallet")
STARRED = Args(value=87, score=87, tag1="starred")


@dataclass
class Ground:
    registry: Registry
    rpc: Node
    http: httpx2.Client
    agent: Agent

    def ask(self, method: str, *params: Any) -> dict[str, Any]:
        body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": list(params)}
        answer = self.http.post(self.rpc.url, json=body)
        assert answer.status_code == 200, answer.text
        reply = answer.json()
        assert (reply["jsonrpc"], reply["id"]) == ("2.0", 7)
        return reply

    def get(self, method: str, *params: Any) -> Any:
        return self.ask(method, *params)["result"]

    def blockhash(self) -> str:
        return self.get("getLatestBlockhash", {"commitment": "confirmed"})["value"]["blockhash"]

    def rating(
        self,
        args: Args = STARRED,
        client: Keypair = WALLET,
        metas: Mapping[int, AccountMeta] = MappingProxyType({}),
    ) -> VersionedTransaction:
        """Signed; `metas` replaces accounts of the instruction by their places."""
        made = give_feedback(self.agent, client.pubkey(), args)
        accounts = [metas.get(place, meta) for place, meta in enumerate(made.accounts)]
        changed = Instruction(made.program_id, made.data, accounts)
        return signed(client, self.blockhash(), limit(), changed)

    def send(self, made: VersionedTransaction, **options: Any) -> dict[str, Any]:
        asked = {"encoding": "base64", "preflightCommitment": "confirmed", **options}
        return self.ask("sendTransaction", wire(made), asked)


@contextmanager
def ground(registry: Registry, agent: Agent) -> Generator[Ground]:
    with node(registry) as rpc, httpx2.Client(timeout=5) as http:
        rpc.fund(WALLET.pubkey())
        yield Ground(registry, rpc, http, agent)
