"""The demo's own caller: it uses the service over HTTP, as any operator and agent would."""

import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2

from assay.app import address_of_key, sign_message

_GATE_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class GradedAgent:
    """One agent as the gate judged it; `owner` is the address that signed for it."""

    agent_id: str
    name: str
    owner: str
    score: float
    tier: str
    risk_level: str
    route: str
    allow: bool
    reasons: tuple[str, ...]
    rung: int
    rung_name: str

    def row(self) -> dict[str, object]:
        """The row of `--json`."""
        return {
            "agentId": self.agent_id,
            "name": self.name,
            "score": self.score,
            "tier": self.tier,
            "riskLevel": self.risk_level,
            "route": self.route,
            "allow": self.allow,
            "reasons": list(self.reasons),
            "rung": self.rung,
            "rungName": self.rung_name,
        }


class DemoClient:
    """An operator with an API key, and agents that sign for themselves."""

    def __init__(
        self, http: httpx2.AsyncClient, address: str, api_key: str, token: str, operator_id: str
    ) -> None:
        self._http = http
        self.address = address
        self.api_key = api_key
        self._token = token
        self._operator_id = operator_id

    @classmethod
    @asynccontextmanager
    async def open(cls, address: str) -> AsyncGenerator["DemoClient"]:
        """Register an operator at `address` and act for it."""
        async with httpx2.AsyncClient(
            base_url=address, timeout=_GATE_TIMEOUT_S, trust_env=False
        ) as http:
            account = {"email": "demo@example.com", "password": secrets.token_urlsafe(24)}
            new = {**account, "name": "Demo"}
            registered = _body(await http.post("/operator/register", json=new))
            login = _body(await http.post("/operator/login", json=account))
            operator_id = str(login["operator"]["id"])
            yield cls(http, address, str(registered["apiKey"]), str(login["token"]), operator_id)

    async def wrap(self, **endpoint: object) -> str:
        """A new wrapper; its public address."""
        answer = await self._http.post(
            "/operator/endpoints",
            json=endpoint,
            headers={"authorization": f"Bearer {self._token}"},
        )
        return f"{self.address}/wrap/{self._operator_id}{_body(answer)['path']}"

    async def grade(self, agent_id: str, name: str, owner_key: str) -> GradedAgent:
        """Challenge, sign, gate: the agent's owner proves it, the operator asks."""
        owner = address_of_key(owner_key)
        challenge = _body(await self._http.post(f"/operator/key/{owner}/challenge"))
        text = str(challenge["challenge"])
        answer = await self._http.post(
            "/operator/key/verify",
            json={
                "agentAddress": owner,
                "challenge": text,
                "signature": sign_message(owner_key, text),
            },
        )
        _body(answer)
        decision = _body(
            await self._http.post(
                f"/operator/gate/{agent_id}",
                headers={
                    "authorization": f"Bearer {self.api_key}",
                    "x-agent-address": owner,
                    "x-agent-session": answer.headers["x-agent-session"],
                },
            )
        )
        return GradedAgent(
            agent_id=agent_id,
            name=name,
            owner=owner,
            score=decision["score"],
            tier=decision["tier"],
            risk_level=decision["riskLevel"],
            route=decision["route"],
            allow=decision["allow"],
            reasons=tuple(decision["reasons"]),
            rung=decision["ladder"]["rung"],
            rung_name=decision["ladder"]["name"],
        )


def _body(answer: httpx2.Response) -> dict[str, Any]:
    """The JSON body of a good answer; anything else ends the demo with what was said."""
    if not answer.is_success:
        raise RuntimeError(f"{answer.request.url.path}: {answer.status_code} {answer.text[:300]}")
    return answer.json()
