"""The real service in this process: real stores, real use cases, a registry of three agents."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from argon2 import PasswordHasher
from eth_account import Account
from eth_account.messages import encode_defunct

from assay.accounts.model import Plan
from assay.app import App, assemble
from assay.app.web import build
from assay.registries.model import OnchainAgent, RegistrationFile, Service
from assay.settings import load
from tests.support.databases import give_schema
from tests.support.fakes.clock import FrozenClock
from tests.support.fakes.trust import NETWORK, FakeChain
from tests.support.promises import promises_of

OWNER_KEY = "0x" + "11" * 32
STRANGER_KEY = "0x" + "22" * 32
PASSWORD = "correct horse battery"


def address(key: str) -> str:
    return Account.from_key(key).address.lower()


def agent(agent_id: str) -> OnchainAgent:
    """An agent whose one service is a port nobody listens on: a visit ends at once."""
    file = RegistrationFile(
        name=f"Agent {agent_id}", services=(Service("web", "http://127.0.0.1:9/"),)
    )
    return OnchainAgent(NETWORK, agent_id, address(OWNER_KEY), None, "data:,", file, None)


@dataclass
class TestService:
    """The service, its clock and its chain, and requests that most tests send to it."""

    __test__ = False  # not a class of tests, though pytest would take it for one

    app: App
    http: httpx2.AsyncClient
    clock: FrozenClock
    chain: FakeChain

    async def operator(self, email: str = "op@example.com") -> dict[str, str]:
        """A new account; its API key as a header."""
        body = {"email": email, "password": PASSWORD, "name": "Op"}
        answer = await self.http.post("/operator/register", json=body)
        assert answer.status_code == 200, answer.text
        return {"authorization": f"Bearer {answer.json()['apiKey']}"}

    async def token(self, email: str = "op@example.com") -> dict[str, str]:
        """The account's dashboard token as a header."""
        body = {"email": email, "password": PASSWORD}
        answer = await self.http.post("/operator/login", json=body)
        return {"authorization": f"Bearer {answer.json()['token']}"}

    async def pro(self, email: str = "op@example.com") -> None:
        await self.app.operators.set_plan_for_admin(email, Plan.PRO)

    async def challenge(self, key: str) -> dict[str, str]:
        """A signed challenge, as the body of verify."""
        answer = await self.http.post(f"/operator/key/{address(key)}/challenge")
        text = answer.json()["challenge"]
        signature = Account.sign_message(encode_defunct(text=text), key).signature.hex()
        return {"agentAddress": address(key), "challenge": text, "signature": signature}

    async def session(self, key: str = OWNER_KEY) -> dict[str, str]:
        """The agent headers of a fresh session."""
        answer = await self.http.post("/operator/key/verify", json=await self.challenge(key))
        token = answer.headers["x-agent-session"]
        return {"x-agent-address": address(key), "x-agent-session": token}

    async def gate(
        self, headers: dict[str, str], agent_id: str = "7", **body: Any
    ) -> httpx2.Response:
        return await self.http.post(f"/operator/gate/{agent_id}", headers=headers, json=body)


@asynccontextmanager
async def start_test_service(folder: Path, **settings: Any) -> AsyncGenerator[TestService]:
    clock, chain = FrozenClock(), FakeChain(agent("7"), agent("8"))
    if "database_url" not in settings:
        give_schema(folder)
    made = load(
        data_dir=folder,
        chains={
            "local": {
                "chain_id": NETWORK.chain_id,
                "identity_registry": NETWORK.identity_registry,
                "reputation_registry": NETWORK.reputation_registry,
                "rpc_urls": list(NETWORK.rpc_urls),
            },
            **settings.pop("chains", {}),
        },
        default_chain="local",
        log_level="error",
        self_registry="",
        **{
            "allow_private_upstreams": True,
            "anonymous_per_minute": 100_000,
            "accounts_per_address": 10_000,
            **settings,
        },
    )
    async with assemble(made, clock, {"evm": chain}) as app:  # type: ignore[arg-type]
        hash_cheaply(app)
        sender = httpx2.ASGITransport(build(app), raise_app_exceptions=False)
        hooks = {"response": [promises_of(app)]}
        async with httpx2.AsyncClient(
            transport=sender, base_url="http://assay", event_hooks=hooks
        ) as http:
            yield TestService(app, http, clock, chain)


def hash_cheaply(app: App) -> None:
    """What a password costs is another test's; here it would be a tenth of every test."""
    hasher: Any = app.operators._hasher
    hasher._argon2 = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)


def forged(session: Mapping[str, str]) -> dict[str, str]:
    """The headers of a session with another character, not the last: it holds bits nobody reads."""
    token = session["x-agent-session"]
    other = "B" if token[-5] == "A" else "A"
    return {**session, "x-agent-session": token[:-5] + other + token[-4:]}


def refused(answer: httpx2.Response, status: int, code: str) -> dict[str, Any]:
    """The body of a refusal, checked to be in the one envelope."""
    body = answer.json()
    assert (answer.status_code, body["code"]) == (status, code), answer.text
    assert body["error"] == code.lower()
    assert body["message"]
    assert body["requestId"] == answer.headers["x-request-id"]
    return body
