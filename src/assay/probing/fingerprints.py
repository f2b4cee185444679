"""Fingerprints of an agent's services, so that a later visit can detect changes.

Most of it comes from documents that the visit has already read. A payment demand is read once more:
a payee or price that differs between two reads is not a change.
"""

import asyncio
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

from assay.common.json import JsonObject, JsonValue, canonical_bytes, is_array, is_object
from assay.net.egress.ports import EgressError, EgressResponse, OutboundRequest
from assay.net.egress.url import domain_of
from assay.probing.ports import (
    AgentCallFailed,
    BudgetExhausted,
    McpTool,
    ProbeSession,
    VisitedService,
)
from assay.probing.probe_client import PaymentDemand, ask, decode, read
from assay.probing.session import VisitHttp

READING_S: Final = 2.0
"""Time for reading beyond the probes: a slow agent must not delay a gate for it."""

TOOLS_MAX: Final = 128
URLS_MAX: Final = 16
"""Kept of one service."""

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_ACTS: Final = frozenset((
    "approve", "book", "burn", "buy", "call", "cancel", "charge", "create", "delete", "deploy",
    "drop", "email", "exec", "execute", "grant", "install", "invoke", "kill", "mint", "move",
    "order", "patch", "pay", "post", "publish", "purchase", "put", "remove", "run", "sell",
    "send", "shell", "sign", "submit", "swap", "transfer", "update", "upload", "withdraw",
    "write",
))  # fmt: skip


async def collect_fingerprints(
    visit: ProbeSession,
    services: Sequence[VisitedService],
    limit_s: float,
    but_of: frozenset[str] = frozenset(),
) -> JsonObject:
    """Return facts of every service that answered within the visit's time; never raises.

    `services` as they are spoken; of those in `but_of` nothing is read.

    The members are `fingerprints` by fact and service, `payees`, `hosts`, `prices`, `tools`, `uri`,
    and `unstable`: names of facts that differ between two reads of this visit.
    """
    facts = _Facts()
    facts.declared(visit, services)
    try:
        async with asyncio.timeout(min(limit_s, READING_S)):
            for visited in services:
                if visited.service.endpoint not in but_of:
                    await _read(visit, visited, facts)
    except TimeoutError:
        pass  # What was read in time is kept.
    return facts.as_json()


def evidence_of(facts: JsonObject) -> JsonObject:
    """Return the evidence members made of facts: `fingerprints` separately, and the rest."""
    kept = {name: fact for name, fact in facts.items() if name != "fingerprints"}
    return {"fingerprints": facts["fingerprints"], "facts": kept}


async def _read(visit: ProbeSession, visited: VisitedService, facts: "_Facts") -> None:
    url = visited.service.endpoint
    try:
        if visited.kind == "mcp":
            async with visit.dialers.mcp(url, visit.http) as server:
                facts.tools(url, await server.list_tools())
        elif visited.kind == "a2a":
            async with visit.dialers.a2a(url, visit.http) as agent:
                again = await ask(visit, OutboundRequest("GET", agent.card_url, VisitHttp.FRESH))
                is_same = isinstance(again, EgressResponse) and decode(again.body) == agent.card
                facts.card(url, agent.card, agent.card_url, is_same=is_same)
        else:
            first = read(await ask(visit, OutboundRequest("GET", url)))
            if first is not None and first.is_valid:
                again = read(await ask(visit, OutboundRequest("GET", url, VisitHttp.FRESH)))
                facts.payment(url, first, again)
    except (AgentCallFailed, BudgetExhausted, EgressError):
        return  # Nothing is known of this service now: that is not a change.


class _Facts:
    def __init__(self) -> None:
        self._fingerprints: dict[str, str] = {}
        self._payees: dict[str, list[str]] = {}
        self._hosts: dict[str, list[str]] = {}
        self._prices: dict[str, dict[str, str]] = {}
        self._tools: dict[str, dict[str, bool]] = {}
        self._unstable: set[str] = set()
        self._uri: str | None = None

    def declared(self, visit: ProbeSession, services: Sequence[VisitedService]) -> None:
        """Record what the registration declares."""
        agent = visit.subject.agent
        if agent is None:
            return
        self._uri = _hashed(agent.token_uri)
        self._note("texts", "registration", agent.registration.raw if agent.registration else None)
        self._hosts["registration"] = _hosts(v.service.endpoint for v in services)

    def tools(self, url: str, tools: Sequence[McpTool]) -> None:
        """Record the tools of an MCP server; their order does not count."""
        listed = sorted(tools, key=lambda tool: tool.name)[:TOOLS_MAX]
        self._tools[url] = {
            _clean(tool.name): acts(tool.name, is_read_only=tool.read_only) for tool in listed
        }
        self._note("tools", url, sorted(self._tools[url]))
        self._note("schema", url, {tool.name: tool.input_schema for tool in listed})
        self._note("texts", url, {tool.name: tool.description for tool in listed})

    def card(self, url: str, card: JsonObject, card_url: str, *, is_same: bool) -> None:
        """Record an agent card: where it says the agent is, and the rest of it."""
        if not is_same:
            self._unstable.add(f"card {url}")
        self._note("card", url, card)
        skills = card.get("skills")
        self._note("tools", url, skills if is_array(skills) else [])
        self._hosts[url] = _hosts([card_url, *_interfaces(card)])

    def payment(self, url: str, first: PaymentDemand, again: PaymentDemand | None) -> None:
        """Record the payee and price of a call."""
        self._payees[url] = sorted({offer.pay_to for offer in first.offers})[:URLS_MAX]
        prices = _prices(first)
        self._prices[url] = prices
        self._note("payee", url, self._payees[url])
        self._note("price", url, prices)
        if again is None or {o.pay_to for o in again.offers} != {o.pay_to for o in first.offers}:
            self._unstable |= {f"payees {url}", f"payee {url}"}
        if again is None or _prices(again) != prices:
            self._unstable |= {f"prices {url}", f"price {url}"}

    def as_json(self) -> JsonObject:
        """Return all facts that are the same at every read."""
        return {
            "fingerprints": self._stable("", self._fingerprints),
            "payees": self._stable("payees ", self._payees),
            "hosts": self._stable("hosts ", self._hosts),
            "prices": self._stable("prices ", self._prices),
            "tools": self._stable("tools ", self._tools),
            "uri": self._uri,
            "unstable": sorted(self._unstable),
        }

    def _stable(self, fact: str, by_service: Mapping[str, JsonValue]) -> JsonObject:
        """Drop what differed between two reads: the same agent must have the same facts."""
        rows = sorted(by_service.items())
        return {name: value for name, value in rows if f"{fact}{name}" not in self._unstable}

    def _note(self, fact: str, service: str, value: JsonValue) -> None:
        try:
            data = canonical_bytes(value)
        except ValueError:  # NaN or a lone surrogate: unhashable text has no fingerprint.
            return
        self._fingerprints[f"{fact} {service}"] = hashlib.sha256(data).hexdigest()


def acts(name: str, *, is_read_only: bool) -> bool:
    """Return whether a tool has side effects, as far as its name tells.

    A tool that declares itself read-only is trusted unless its name begins with an act.
    """
    words = [word.lower() for word in _WORDS.findall(name)]
    if is_read_only:
        return bool(words) and words[0] in _ACTS
    return not _ACTS.isdisjoint(words)


def _prices(asked: PaymentDemand) -> dict[str, str]:
    """Return the highest amount by network and asset."""
    prices: dict[str, int] = {}
    for offer in asked.offers:
        asset = _clean(f"{offer.network} {offer.asset}")[:128]
        prices[asset] = max(prices.get(asset, 0), int(offer.amount))
    return {asset: str(amount) for asset, amount in sorted(prices.items())[:URLS_MAX]}


def _interfaces(card: Mapping[str, JsonValue]) -> list[str]:
    """Return where a card says the agent is called: 0.3's `url` and both versions' lists."""
    urls: list[JsonValue] = [card.get("url")]
    for name in ("additionalInterfaces", "supportedInterfaces"):
        rows = card.get(name)
        urls += [row.get("url") for row in rows if is_object(row)] if is_array(rows) else []
    return [url for url in urls[:URLS_MAX] if isinstance(url, str)]


def _hosts(urls: Iterable[str]) -> list[str]:
    """Return the registrable domains of addresses, without invalid ones."""
    found: set[str] = set()
    for url in urls:
        try:
            host = urlsplit(url).hostname
        except ValueError:
            continue
        if host:
            found.add(_clean(domain_of(host)))
    return sorted(found)[:URLS_MAX]


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _clean(text: str) -> str:
    """Return text that can be hashed: without lone surrogates from JSON escapes."""
    return text.encode("utf-8", "replace").decode("utf-8")
