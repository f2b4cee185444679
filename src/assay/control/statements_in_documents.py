"""Reads which agents a host, a card or a record names, from untrusted documents. Pure.

EIP-8004's form is a list `registrations` of `{agentId, agentRegistry}`, the registry in CAIP-10. A
wallet is an address, plain or in CAIP-10.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, cast
from urllib.parse import urlsplit

from assay.common.json import (
    JsonObject,
    JsonValue,
    has_values_beyond,
    is_array,
    is_nested_beyond,
    is_object,
)
from assay.net.egress.url import GRPC, grpc_origins
from assay.registries.model import Subject

BYTES_MAX: Final = 256 * 1024
"""Largest document that is read: some two thousand registrations. A larger one proves nothing."""

VALUES_MAX: Final = 20_000
DEPTH_MAX: Final = 40
TEXT_CHARS_MAX: Final = 300
MEMBERS_MAX: Final = 64
"""Extensions of a card that are examined."""

INTERFACES_MAX: Final = 8
"""Addresses of a card's interfaces that are examined."""

RECORD_AGENT: Final = "agent-registration="
RECORD_WALLET: Final = "agent-wallet="
"""How a TXT record at `_agent-registration.<host>` names a wallet."""

_LISTS = ("registrations", "x-agent-registrations", "x-registrations")
_WALLETS = ("agentWallet", "x-agent-wallet", "wallet", "walletAddress", "x-wallet")
_AGENT_ID = re.compile(r"[0-9]{1,78}|[1-9A-HJ-NP-Za-km-z]{32,44}")


@dataclass(frozen=True, slots=True)
class NamedAgents:
    """The agents (`registry/id`) and wallets that a document names; nothing else of it counts."""

    agents: frozenset[str] = frozenset()
    wallets: frozenset[str] = frozenset()


def names(named: NamedAgents, subject: Subject) -> bool:
    """Return whether the document names this agent by id, or its owner or wallet."""
    agent = subject.agent
    if agent is None:
        return False
    if agent_name(subject.network.agent_registry, subject.agent_id) in named.agents:
        return True
    return any(_address(address) in named.wallets for address in agent.controllers)


def agent_name(registry: str, agent_id: str) -> str:
    """Return the one spelling of an agent: EVM registries are in lower case."""
    shown = registry.lower() if registry.startswith("eip155:") else registry
    return f"{shown}/{agent_id}"


def read_json(body: bytes) -> JsonValue:
    """Return the JSON value of a bounded document; None for anything else."""
    if len(body) > BYTES_MAX or has_values_beyond(body, VALUES_MAX):
        return None
    if is_nested_beyond(body, DEPTH_MAX):
        return None
    try:
        return cast("JsonValue", json.loads(body.decode("utf-8-sig")))
    except ValueError:
        return None


def read_document(document: JsonValue) -> NamedAgents:
    """Return what a registration file, an agent card or an OpenAPI document names.

    Only members of these names count, at the top, in `info`, `provider`, and in extensions and
    their parameters: a text that quotes an id or address names no agent.
    """
    if not is_object(document):
        return NamedAgents()
    agents: set[str] = set()
    wallets: set[str] = set()
    for place in _places(document):
        for name in _LISTS:
            agents |= _agents(place.get(name))
        wallets |= {_address(w) for n in _WALLETS if isinstance(w := place.get(n), str)}
    return NamedAgents(frozenset(agents), frozenset(wallets - {""}))


def read_records(records: Iterable[str]) -> NamedAgents:
    """Read TXT records: `agent-registration=<registry>/<id>`, `agent-wallet=<address>`."""
    agents: set[str] = set()
    wallets: set[str] = set()
    for record in records:
        text = record.strip()
        if text.startswith(RECORD_AGENT):
            registry, slash, agent_id = text.removeprefix(RECORD_AGENT).rpartition("/")
            if slash and _is_id(agent_id):
                agents.add(agent_name(registry, agent_id))
        elif text.startswith(RECORD_WALLET):
            wallets.add(_address(text.removeprefix(RECORD_WALLET)))
    return NamedAgents(frozenset(agents), frozenset(wallets - {""}))


def payees_named(payees: frozenset[str], subject: Subject) -> bool:
    """Return whether every payee of a service is this agent's registered wallet."""
    wallet = subject.agent.wallet if subject.agent else None
    return bool(payees) and wallet is not None and {p.lower() for p in payees} == {wallet.lower()}


def _places(document: JsonObject) -> list[JsonObject]:
    places = [document]
    for name in ("info", "provider", "x-erc8004", "erc8004", "x-agent"):
        place = document.get(name)
        if is_object(place):
            places.append(place)
    capabilities = document.get("capabilities")
    listed = capabilities.get("extensions") if is_object(capabilities) else None
    for extension in listed[:MEMBERS_MAX] if is_array(listed) else ():
        params = extension.get("params") if is_object(extension) else None
        if is_object(params):
            places.append(params)
    return places


def _agents(listed: JsonValue) -> set[str]:
    found: set[str] = set()
    for row in listed if is_array(listed) else ():
        registry = row.get("agentRegistry") if is_object(row) else None
        agent_id = row.get("agentId") if is_object(row) else None
        if isinstance(agent_id, bool) or not isinstance(agent_id, int | str):
            continue
        if isinstance(registry, str) and len(registry) <= TEXT_CHARS_MAX and _is_id(agent_id):
            found.add(agent_name(registry, str(agent_id)))
    return found


def _is_id(agent_id: int | str) -> bool:
    """Return whether it is a token id in decimal, or a Solana asset's key."""
    if isinstance(agent_id, int) and not 0 <= agent_id < 2**256:
        return False
    return _AGENT_ID.fullmatch(str(agent_id)) is not None


def _address(text: str) -> str:
    """Return the one spelling of an address; of CAIP-10 (`eip155:1:0x...`) the address."""
    if len(text) > TEXT_CHARS_MAX:
        return ""
    address = text.strip().rpartition(":")[2]
    return address.lower() if address.lower().startswith("0x") else address


def interfaces_of(card: JsonObject) -> tuple[str, ...]:
    """Return the addresses a card sends its callers to, at most one more than are examined."""
    listed: list[tuple[JsonValue, JsonValue]] = [(card.get("preferredTransport"), card.get("url"))]
    for name, binding in _BINDINGS.items():
        rows = card.get(name)
        found = [r for r in rows if is_object(r)] if is_array(rows) else []
        listed += [(r.get(binding), r.get("url")) for r in found]
    urls = (_called_at(bound, url) for bound, url in listed if isinstance(url, str))
    return tuple(dict.fromkeys(urls))[: INTERFACES_MAX + 1]


_BINDINGS = {"supportedInterfaces": "protocolBinding", "additionalInterfaces": "transport"}


def _called_at(binding: JsonValue, url: str) -> str:
    """Return the URL; for a gRPC interface, the origin at which it is called."""
    origins = grpc_origins(url) if binding == GRPC else ()
    return origins[-1] if origins else url


def is_openapi(document: JsonValue) -> bool:
    """Return whether it declares itself an OpenAPI document, of any version."""
    return is_object(document) and ("openapi" in document or "swagger" in document)


def lists_path(document: JsonValue, path: str) -> bool:
    """Return whether an OpenAPI document describes an operation at exactly that path."""
    paths = document.get("paths") if is_object(document) else None
    if not is_object(document) or not is_object(paths):
        return False
    servers = document.get("servers")
    listed: list[JsonValue] = [document.get("basePath")]
    listed += [s.get("url") for s in servers[:4] if is_object(s)] if is_array(servers) else []
    bases = {"", *(_path(url) for url in listed if isinstance(url, str))}
    return any(path == base.rstrip("/") + one for base in bases for one in paths)


def _path(url: str) -> str:
    try:
        return urlsplit(url).path
    except ValueError:
        return ""


def subject_key(name: str) -> str:
    """Return the subject key (`eip155:1/22`) of an agent as documents name it."""
    registry, _, agent_id = name.rpartition("/")
    return f"{registry.rpartition(':')[0]}/{agent_id}"
