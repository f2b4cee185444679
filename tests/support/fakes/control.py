"""Hosts, records, cards and a store, as proofs of control ask for them."""

import json
from collections.abc import Sequence
from typing import Any

from assay.control.ports import (
    Card,
    Elder,
    LookUpUnavailable,
    OpenFinding,
    Past,
    Tool,
)
from assay.control.proofs import ControlDependencies
from assay.control.scope import scope_of
from assay.net.egress.ports import EgressError, EgressResponse, Failure, Limits, OutboundRequest
from assay.registries.model import Subject
from tests.support.fakes.trust import NETWORK, WALLET, onchain_agent

FILE = "/.well-known/agent-registration.json"
REGISTRY = NETWORK.agent_registry


def agent(agent_id: str = "7") -> Subject:
    return Subject(NETWORK, agent_id, WALLET, onchain_agent(agent_id))


def naming(*agent_ids: str) -> dict[str, Any]:
    """A registration file that names agents of the local registry."""
    rows = [{"agentId": int(one), "agentRegistry": REGISTRY} for one in agent_ids]
    return {"registrations": rows}


def record(agent_id: str) -> str:
    return f"agent-registration={REGISTRY}/{agent_id}"


class Hosts:
    """Answers by address: an object is a JSON page, a text a redirect there, else a failure."""

    def __init__(self, **pages: Any) -> None:
        self.pages: dict[str, Any] = pages
        self.asked: list[str] = []

    async def send(self, request: OutboundRequest, limits: Limits = Limits()) -> EgressResponse:  # noqa: B008
        del limits
        url = request.url.replace(":443/", "/") if request.url.startswith("https:") else request.url
        self.asked.append(url)
        page = self.pages.get(url)
        if isinstance(page, Failure):
            raise EgressError(page, "scripted")
        if isinstance(page, EgressResponse):
            return page
        if isinstance(page, str):
            return EgressResponse(308, (("location", page),), b"", truncated=False, elapsed_ms=1.0)
        if page is None:
            return EgressResponse(404, (), b"{}", truncated=False, elapsed_ms=1.0)
        body = page if isinstance(page, bytes) else json.dumps(page).encode()
        return EgressResponse(200, (), body, truncated=False, elapsed_ms=1.0)


class Records:
    """TXT records by name; a name may be unavailable."""

    def __init__(self) -> None:
        self.of: dict[str, list[str] | None] = {}

    async def find(self, name: str) -> Sequence[str]:
        found = self.of.get(name, [])
        if found is None:
            raise LookUpUnavailable
        return found


class Services:
    """What a visit would have read."""

    def __init__(self) -> None:
        self.cards: dict[str, Card] = {}
        self.listed: dict[str, list[Tool]] = {}
        self.paid: dict[str, set[str]] = {}

    async def card(self, endpoint: str) -> Card | None:
        return self.cards.get(endpoint)

    async def tools(self, endpoint: str) -> Sequence[Tool]:
        return self.listed.get(endpoint, [])

    async def payees(self, endpoint: str) -> frozenset[str]:
        return frozenset(self.paid.get(endpoint, set()))


class Kept:
    """A store in memory, as far as a test fills it."""

    def __init__(self) -> None:
        self.pasts: dict[str, Past] = {}
        self.proven: set[tuple[str, str]] = set()
        self.open: list[OpenFinding] = []
        self.copied: list[Elder] = []
        self.named: list[Elder] = []

    async def past(self, agent: str) -> Past:
        return self.pasts.get(agent, Past(None, None, None, frozenset()))

    async def proven_by(
        self, keys: Sequence[str], agents: Sequence[str]
    ) -> Sequence[tuple[str, str]]:
        return [(k, a) for k, a in self.proven if k in keys and a in agents]

    async def proven_on(self, site: str) -> Sequence[str]:
        held = [(a, k) for a, past in self.pasts.items() for k in past.keys]
        urls = [(a, scope_of(k.partition(" ")[2])) for a, k in held]
        return sorted({a for a, scope in urls if scope is not None and scope.site == site})

    async def holders(self, keys: Sequence[str], exclude: str) -> Sequence[str]:
        return sorted(a for a, past in self.pasts.items() if past.keys & set(keys) and a != exclude)

    async def following(self, keys: Sequence[str], exclude: str) -> Sequence[OpenFinding]:
        return [one for one in self.open if one.key in keys and one.agent != exclude]

    async def alike(self, bands: Sequence[str], exclude: str) -> Sequence[Elder]:
        del bands
        return [one for one in self.copied if one.agent != exclude]

    async def of_name(self, skeleton: str, exclude: str) -> Sequence[Elder]:
        return [one for one in self.named if one.name == skeleton and one.agent != exclude]


class World:
    """Everything that one collection of proofs is asked of."""

    def __init__(self) -> None:
        self.hosts, self.records, self.services, self.kept = Hosts(), Records(), Services(), Kept()

    @property
    def needs(self) -> ControlDependencies:
        return ControlDependencies(self.hosts, self.services, self.records, self.kept)
