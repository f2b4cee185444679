"""The whole service in this process, on a loopback node and indexer of the Solana registry."""

import base64
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from solders.keypair import Keypair

from assay.app import App, assemble
from assay.app.web import build
from assay.registries.registration import TYPE
from assay.settings import load
from tests.support.databases import give_schema
from tests.support.live_service import hash_cheaply
from tests.support.promises import promises_of
from tests.support.solana.indexer import Indexer, indexer
from tests.support.solana.registry import Registry
from tests.support.solana.rpc import Node, node

FREE = {
    "allow_private_upstreams": True,
    "anonymous_per_minute": 100_000,
    "sandbox_per_minute": 1000,
    "self_registry": "",
}
"""What a test need not think of."""


def file_uri(services: Sequence[Mapping[str, Any]] = ()) -> str:
    """A token URI that is its own registration file; the registry keeps 250 bytes of one."""
    text = json.dumps({"type": TYPE, "name": "S", "services": list(services)})
    return "data:application/json;base64," + base64.b64encode(text.encode()).decode()


@dataclass
class SolanaTestService:
    app: App
    http: httpx2.AsyncClient
    registry: Registry
    node: Node
    index: Indexer

    async def get(self, path: str, **more: Any) -> httpx2.Response:
        return await self.http.get(path, params={"chain": "solana"}, **more)

    async def post(self, path: str, **more: Any) -> httpx2.Response:
        return await self.http.post(path, params={"chain": "solana"}, **more)

    async def operator(self, email: str = "op@example.com") -> dict[str, str]:
        body = {"email": email, "password": "correct horse battery", "name": "Op"}
        answer = await self.http.post("/operator/register", json=body)
        return {"authorization": f"Bearer {answer.json()['apiKey']}"}

    async def gate(
        self, agent_id: str, who: dict[str, str], key: Keypair | None = None, **body: Any
    ) -> httpx2.Response:
        """A gate call by the key: it answers the challenge with its signature."""
        path = f"/operator/gate/{agent_id}"
        if key is None:
            return await self.post(path, headers=who, json=body)
        address = {"x-agent-address": str(key.pubkey())}
        asked = await self.post(path, headers=who | address, json=body)
        text = asked.json()["challenge"]
        proof = {
            "x-agent-challenge": text,
            "x-agent-signature": str(key.sign_message(text.encode())),
        }
        return await self.post(path, headers=who | address | proof, json=body)


@asynccontextmanager
async def open_solana(folder: Path, **settings: Any) -> AsyncGenerator[SolanaTestService]:
    registry = Registry()
    give_schema(folder)
    with node(registry) as serving, indexer(registry) as listing:
        made = load(
            data_dir=folder,
            solana_rpc_url=serving.url,
            solana_indexer_url=listing.url,
            log_level="error",
            **{**FREE, **settings},
        )
        async with assemble(made) as app:
            hash_cheaply(app)
            sender = httpx2.ASGITransport(build(app), raise_app_exceptions=False)
            hooks = {"response": [promises_of(app)]}
            async with httpx2.AsyncClient(
                transport=sender, base_url="http://assay", event_hooks=hooks, timeout=40
            ) as http:
                yield SolanaTestService(app, http, registry, serving, listing)
