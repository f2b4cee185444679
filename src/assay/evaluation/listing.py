"""What lists show of a registered agent, and what a search asks for. Pure.

Names, descriptions and addresses are the agent's own words: they are cut and cleaned here, and are
never more than text.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal
from urllib.parse import urlsplit

from assay.chains.model import Network, is_address, is_public_key
from assay.chains.networks import Networks
from assay.common.errors import InvalidRequest
from assay.common.json import JsonObject, is_array, is_object
from assay.evaluation.model import SignalResult
from assay.probing.declared_services import hint_of
from assay.registries.model import Service, Subject

NAME_CHARS, DESCRIPTION_CHARS, URL_CHARS, SERVICE_NAME_CHARS = 80, 400, 300, 32
SERVICES_LISTED = 8
SEARCH_CHARS = 300
HOST_CHARS = 255

PROTOCOLS: Final = ("a2a", "mcp", "http", "x402", "grpc")
"""Protocols that lists can be filtered by. Stored by position: append only."""

Sort = Literal["score", "visited"]

_MARKS_MAX = 2
"""Combining marks kept on one letter: more are a tower of marks over other lines."""

_TOKEN_ID = re.compile(r"[0-9]{1,78}")
_ACCOUNT = re.compile(
    r"((?:eip155|solana):[A-Za-z0-9]{1,32})[:/]([A-Za-z0-9]{1,78})(?:/(.{1,78}))?"
)
"""A CAIP-10 account, or a registry and the agent's id in it. Source: CAIP-10; EIP-8004."""

_HOST = re.compile(
    r"(?:[a-z0-9_-]{1,63}\.){1,8}[a-z0-9-]{2,63}|localhost|[0-9.]{7,15}|\[[0-9a-f:]+\]"
)


@dataclass(frozen=True, slots=True)
class AgentListing:
    """What a registration says of its agent; `has_file` is false if it could not be read."""

    owner: str
    has_file: bool
    name: str
    description: str
    services: tuple[tuple[str, str], ...]
    """Names and addresses, as declared."""
    protocols: tuple[str, ...]
    hosts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ListedAgent:
    """A registered agent with its newest grade."""

    id: int
    subject_key: str
    chain: str
    """The network's slug."""
    agent_id: str
    wallet: str
    owner: str
    """Empty for an agent that was last evaluated before there were lists."""
    name: str
    description: str
    services: tuple[tuple[str, str], ...]
    protocols: tuple[str, ...]
    score: float
    tier: str
    rung: int | None
    evaluated_us: int
    score_before: float | None
    """The score of the evaluation before the newest; None for the first."""


@dataclass(frozen=True, slots=True)
class AgentSearch:
    """What a search text means; the fields that are set must all match."""

    network: Network | None = None
    agent_id: str | None = None
    address: str | None = None
    """Wallet or owner."""
    host: str | None = None
    name_begins: str | None = None


@dataclass(frozen=True, slots=True)
class AgentQuery:
    """A page of the list: filters, order, and where it begins."""

    search: AgentSearch
    tier: str | None
    chain: str | None
    protocol: str | None
    sort: Sort
    after: tuple[int, int] | None
    """Sort value and id of the last row of the page before."""
    limit: int


def listing_of(subject: Subject, collected: Sequence[SignalResult]) -> AgentListing | None:
    """Return what lists show of the subject; None for a key agent, which is never listed."""
    agent = subject.agent
    if agent is None:
        return None
    file = agent.registration
    declared = () if file is None else file.services[:SERVICES_LISTED]
    callable_ones = [one for one in declared if host_in(one.endpoint) is not None]
    spoken = _spoken(collected) or frozenset(map(hint_of, callable_ones))
    if file is not None and file.x402_support:
        spoken |= {"x402"}
    hosts = (host_in(one.endpoint) for one in declared)
    return AgentListing(
        owner=agent.owner,
        has_file=file is not None,
        name="" if file is None else one_line(file.name, NAME_CHARS),
        description="" if file is None else one_line(file.description, DESCRIPTION_CHARS),
        services=tuple(_shown(one) for one in declared),
        protocols=tuple(one for one in PROTOCOLS if one in spoken),
        hosts=tuple(sorted({host for host in hosts if host is not None})),
    )


def _shown(service: Service) -> tuple[str, str]:
    return one_line(service.name, SERVICE_NAME_CHARS), one_line(service.endpoint, URL_CHARS)


def _spoken(collected: Sequence[SignalResult]) -> frozenset[str]:
    """Return the protocols that the last visit spoke with the agent's services."""
    found: set[str] = set()
    for one in collected:
        data: JsonObject = one.evidence.data
        listed = data.get("services")
        for row in listed if is_array(listed) else ():
            if is_object(row) and row.get("state") == "visited":
                found.add(str(row.get("kind")))
    return frozenset(found)


def one_line(text: str, chars: int) -> str:
    """Return a stranger's text for one line: visible characters only, cut to `chars`.

    Control, format and bidirectional characters are removed, and so are towers of combining marks.
    """
    kept: list[str] = []
    marks = 0
    for character in text[: chars * 8]:
        category = unicodedata.category(character)
        marks = marks + 1 if category.startswith("M") else 0
        if category[0] == "Z" or character in "\t\r\n":
            kept.append(" ")
        elif category[0] != "C" and marks <= _MARKS_MAX:
            kept.append(character)
    line = " ".join("".join(kept).split())
    return line if len(line) <= chars else line[: chars - 1].rstrip() + "…"


def name_key(name: str) -> str:
    """Return the form in which names are compared: without regard to case."""
    return unicodedata.normalize("NFKC", name).casefold()[:NAME_CHARS]


def host_in(address: str) -> str | None:
    """Return the host of an address in lower case; None if it has none that can be searched."""
    text = address.strip()
    try:
        parts = urlsplit(text if "://" in text else f"//{text}")
        host = (parts.hostname or "").rstrip(".").lower()
        host = f"[{host}]" if ":" in host else host
        host = host if host.isascii() else host.encode("idna").decode()
    except (ValueError, UnicodeError):
        return None
    return host if len(host) <= HOST_CHARS and _HOST.fullmatch(host) else None


def search_of(text: str, networks: Networks) -> AgentSearch:
    """Return what a search text asks for: an id, a wallet, a CAIP-10 name, a URL, or a name.

    An unknown chain in a CAIP-10 name is a search that finds nothing.
    """
    text = one_line(text, SEARCH_CHARS)
    if not text:
        return AgentSearch()
    account = _ACCOUNT.fullmatch(text)
    if account is not None:
        return _of_account(account, networks)
    if is_address(text) or is_public_key(text) or _TOKEN_ID.fullmatch(text):
        return _of_id(text)
    host = host_in(text) if "." in text or "://" in text else None
    if host is not None and " " not in text:
        return AgentSearch(host=host)
    return AgentSearch(name_begins=name_key(text))


def _of_account(found: re.Match[str], networks: Networks) -> AgentSearch:
    try:
        network = networks.by_slug(found[1])
    except InvalidRequest:
        return AgentSearch(agent_id="")
    if found[3] is not None:
        return AgentSearch(network=network, agent_id=found[3])
    return replace(_of_id(found[2]), network=network)


def _of_id(text: str) -> AgentSearch:
    if is_address(text):
        return AgentSearch(address=text.lower())
    if is_public_key(text):
        return AgentSearch(address=text)
    return AgentSearch(agent_id=str(int(text)) if _TOKEN_ID.fullmatch(text) else text)
