"""Whether the registration is readable, complete and bound to what it names."""

import re
from collections.abc import Iterable
from ipaddress import ip_address
from urllib.parse import urljoin

from assay.common.json import JsonObject, is_array
from assay.net.egress.ports import EgressResponse
from assay.probing.consent import WELL_KNOWN, binding_request, lists_agent
from assay.probing.ports import Finding, ProbeSession, Severity, probe
from assay.probing.probe_client import ask, host_of
from assay.registries.model import RegistrationFile
from assay.registries.registration import TYPE


def _weigh_registration_readable(seen: JsonObject) -> Finding:
    if seen["readable"]:
        return Finding("pass", "The registration file can be read.")
    return Finding("fail", "The registration file cannot be fetched or is not JSON.")


@probe("registration_readable", "registration", Severity.MAJOR, weigh=_weigh_registration_readable)
async def registration_readable(visit: ProbeSession) -> JsonObject | None:
    """Requires that the file at the agent's URI can be fetched and parsed.

    Source: EIP-8004, "Agent URI".
    """
    agent = visit.subject.agent
    return None if agent is None else {"readable": agent.registration is not None}


_CALLED = frozenset({"a2a", "mcp", "web", "api", "http", "https", "openapi", "rest"})


def _weigh_registration_complete(seen: JsonObject) -> Finding:
    wrong = seen["wrong"]
    if is_array(wrong) and wrong:
        listed = ", ".join(str(field) for field in wrong)
        return Finding("fail", f"The registration file lacks or misstates: {listed}.")
    return Finding("pass", "The registration file has every required field.")


@probe("registration_complete", "registration", Severity.MINOR, weigh=_weigh_registration_complete)
async def registration_complete(visit: ProbeSession) -> JsonObject | None:
    """Requires plain JSON with type, name and description, and services with addresses.

    Source: EIP-8004, registration-v1.
    """
    agent = visit.subject.agent
    if agent is None or agent.registration is None:
        return None
    return {"wrong": sorted(_wrong(agent.registration))}


def _wrong(registration: RegistrationFile) -> Iterable[str]:
    if any(problem.where == "file" for problem in registration.problems):
        yield "format"
    if registration.raw.get("type") != TYPE:
        yield "type"
    if not registration.name.strip():
        yield "name"
    if not registration.description.strip():
        yield "description"
    called = [s for s in registration.services if s.name.strip().lower() in _CALLED]
    if not all(_is_web(s.endpoint) for s in called):
        yield "services"


def _is_web(endpoint: str) -> bool:
    return endpoint.lower().startswith(("http://", "https://")) and bool(host_of(endpoint))


def _weigh_registration_names_agent(seen: JsonObject) -> Finding:
    if not seen["claims"]:
        return Finding("not_tested", "The registration file names no registration.")
    if seen["names_this"]:
        return Finding("pass", "The registration file names this agent at this registry.")
    return Finding("fail", "The registration file names other agents and not this one.")


@probe(
    "registration_names_agent",
    "registration",
    Severity.MAJOR,
    weigh=_weigh_registration_names_agent,
)
async def registration_names_agent(visit: ProbeSession) -> JsonObject | None:
    """Requires that its `registrations` name this id at this registry.

    A file that names only others belongs to another agent: anyone can register a copy of it. A file
    that names none is inconclusive: an id is not known before the file is first written. So is the
    id 0, a common placeholder, unless the agent is number 0.

    Source: EIP-8004, `registrations`.
    """
    agent = visit.subject.agent
    if agent is None or agent.registration is None:
        return None
    here = visit.subject.network.agent_registry.lower()
    claims = agent.registration.registrations
    names = any(c.agent_id == agent.agent_id and c.agent_registry.lower() == here for c in claims)
    others = agent.agent_id == "0" or any(c.agent_id != "0" for c in claims)
    return {"claims": bool(claims) and others, "names_this": names}


_ACCOUNT = re.compile(r"(?:eip155:([0-9]{1,20}):)?(0x[0-9a-fA-F]{40})")
"""CAIP-10, or a bare address. Source: erc8004.md#registration-files-in-use (`agentWallet` in older
files)."""


def _weigh_wallet_matches_chain(seen: JsonObject) -> Finding:
    if seen["known"] == seen["declared"]:
        return Finding("pass", "The wallet it declares is the one in the registry.")
    return Finding("fail", "It declares a wallet that the registry does not know as its own.")


@probe("wallet_matches_chain", "registration", Severity.MAJOR, weigh=_weigh_wallet_matches_chain)
async def wallet_matches_chain(visit: ProbeSession) -> JsonObject | None:
    """Requires that a wallet declared for this chain is the one on chain, or the owner's.

    Source: EIP-8004; checks.md#registration.
    """
    agent = visit.subject.agent
    if agent is None or agent.registration is None:
        return None
    services = agent.registration.services
    declared = [s.endpoint for s in services if s.name.strip().lower() == "agentwallet"]
    here = str(visit.subject.network.chain_id)
    found = [_ACCOUNT.fullmatch(text.strip()) for text in declared]
    wallets = [m[2].lower() for m in found if m is not None and m[1] in {None, here}]
    if not wallets:
        return None
    return {"declared": len(wallets), "known": sum(w in agent.controllers for w in wallets)}


DOMAINS_MAX = 3


def _weigh_domain_binding(seen: JsonObject) -> Finding:
    if seen["contradicted"]:
        return Finding("fail", "A service's domain lists its agents, and this is none of them.")
    if seen["bound"]:
        return Finding("pass", "A service's domain acknowledges this agent.")
    return Finding("not_tested", "No service's domain says which agents it belongs to.")


@probe("domain_binding", "domain", Severity.MINOR, weigh=_weigh_domain_binding)
async def domain_binding(visit: ProbeSession) -> JsonObject | None:
    """Requires that the domain's file lists this agent, or that it serves the registration.

    Optional in the EIP, so a domain without the file is not tested. A domain that lists agents, and
    not this one, contradicts the registration. Literal addresses have no domain to bind.

    Source: EIP-8004, domain verification.
    """
    agent = visit.subject.agent
    origins = {urljoin(v.service.endpoint, WELL_KNOWN) for v in visit.services}
    domains = sorted(url for url in origins if _is_name(host_of(url)))[:DOMAINS_MAX]
    if agent is None or not domains:
        return None
    home = host_of(agent.token_uri)
    says = {url: await _says(visit, url) for url in domains if host_of(url) != home}
    return {
        "bound": len(domains) - len(says) + sum(v is True for v in says.values()),
        "contradicted": sum(v is False for v in says.values()),
    }


async def _says(visit: ProbeSession, url: str) -> bool | None:
    """Return whether the domain's file lists this agent; None if there is no such file."""
    response = await ask(visit, binding_request(url))
    return lists_agent(response, visit.subject) if isinstance(response, EgressResponse) else None


def _is_name(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return host not in {"", "localhost"}
    return False
