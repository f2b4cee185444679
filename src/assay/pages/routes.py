"""Pages for people, as HTML, Markdown and JSON, and badges. Beyond the specification.

No page reads a cookie or a credential, and none has a script. No GET evaluates an agent or makes
an outgoing request.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final, TypeAlias
from urllib.parse import quote, urlencode, urlsplit

from fastapi import APIRouter, Path, Request
from fastapi.responses import RedirectResponse, Response

from assay.chains.model import Network
from assay.chains.networks import Networks
from assay.common.clock import Clock
from assay.common.errors import Forbidden, InvalidRequest, NotFound, ServiceError
from assay.common.http_heads import origin_of
from assay.evaluation.listing import PROTOCOLS, AgentQuery, AgentSearch
from assay.evaluation.public_agents import NotEvaluated, PublicAccess, PublicAgents
from assay.evaluation.routes_public import (
    MAX_AGE_S,
    FiltersAsked,
    history_of,
    page_of,
    query_of,
    report_of,
)
from assay.evaluation.schemas_public import (
    AgentHistoryResponse,
    ListedAgentsResponse,
    PublicReportResponse,
)
from assay.pages import markdown, texts, views
from assay.pages.badge import badge
from assay.pages.render import BADGE_POLICY, HTML, POLICY, SVG, render, style, style_name
from assay.pages.schemas import HomeResponse
from assay.server.errors import error_headers, status_of
from assay.server.negotiation import preferred
from assay.server.public_documents import public_document
from assay.server.route import service
from assay.server.schemas import ResponseModel

router = APIRouter(include_in_schema=False)
"""These routes are not part of the document: the operations behind them are."""

Trigger: TypeAlias = Callable[[Request, Network, str], Awaitable[None]]
"""Evaluates an agent under the limits of the open operation."""

JSON, TEXT = "application/json", "text/markdown"
_TEXT: Final = "text/markdown; charset=utf-8"
_KINDS: Final = ("text/html", JSON, TEXT)
_LATEST: Final = 8
_HISTORY: Final = 30
_IMMUTABLE: Final = {
    "cache-control": "public, max-age=31536000, immutable",
    "content-security-policy": BADGE_POLICY,
}

Chain = Annotated[str, Path(max_length=64)]
Name = Annotated[str, Path(max_length=80)]
AgentPath = Annotated[str, Path(max_length=100)]


@dataclass(frozen=True, slots=True)
class PageFacts:
    """What pages say of the service itself."""

    address: str
    """The service's address, without a slash at the end."""
    about: str
    """What the service is, in a sentence or two."""
    trigger: Trigger | None
    """None if evaluations need an API key."""

    @property
    def base(self) -> str:
        """Return the path below which the service answers; empty for most."""
        return urlsplit(self.address).path


@router.get("/")
async def home(request: Request) -> Response:
    """Show what this is, a search, and the latest grades; JSON unless a browser asks."""
    access, facts = service(request, PublicAccess), service(request, PageFacts)
    access.require_reports()
    wanted = _wanted(request, (JSON, "text/html", TEXT))
    if wanted != "text/html":
        return _home_for_programs(request, wanted)
    latest = None
    if access.mode == "on":
        newest = AgentQuery(AgentSearch(), None, None, None, "visited", None, _LATEST)
        latest = await page_of(request, newest)
    return _page(request, "home.html", {"latest": latest, "about": facts.about})


def _home_for_programs(request: Request, wanted: str) -> Response:
    facts = service(request, PageFacts)
    links = {
        "docs": f"{facts.address}/docs",
        "openapi": f"{facts.address}/openapi.json",
        "agents": f"{facts.address}/operator/agents",
        "guide": f"{facts.address}/llms.txt",
    }
    if wanted == TEXT:
        lines = (f"- {name}: {link}\n" for name, link in links.items())
        return _sent(request, f"# Assay\n\n{facts.about}\n\n{''.join(lines)}".encode(), _TEXT)
    return _json(request, HomeResponse(service="assay", about=facts.about, **links))


@router.get("/agents")
async def agents(request: Request, asked: FiltersAsked) -> Response:
    """Show the list, with filters in the address."""

    async def shown(wanted: str) -> Response:
        found = await page_of(request, query_of(request, asked))
        if wanted == JSON:
            return _json(request, found)
        if wanted == TEXT:
            body = markdown.listed(found, service(request, PageFacts).address)
            return _sent(request, body.encode(), _TEXT)
        return _page(request, "agents.html", _list_values(request, found))

    return await _answered(request, shown)


def _list_values(request: Request, found: ListedAgentsResponse) -> dict[str, object]:
    asked = {
        name: request.query_params.get(name, "")
        for name in ("q", "tier", "chain", "protocol", "sort")
    }
    following = {**{n: v for n, v in asked.items() if v}, "cursor": found.next_cursor or ""}
    networks = service(request, Networks)
    return {
        "found": found,
        "asked": asked,
        "is_filtered": any(value for name, value in asked.items() if name != "sort"),
        "next": urlencode(following) if found.next_cursor else None,
        "is_first": "cursor" not in request.query_params,
        "tiers": tuple(views.TONES),
        "protocols": PROTOCOLS,
        "chains": [(row.slug, row.name) for row in networks.rows.values()],
    }


@router.get("/agents/{chain}/{agent_id}")
async def report(request: Request, chain: Chain, agent_id: AgentPath) -> Response:
    """Show the report of an agent; one that was never evaluated is 404, and says what to do."""

    async def shown(wanted: str) -> Response:
        network = _network(request, chain)
        found = await report_of(request, network, agent_id)
        if wanted == JSON:
            return _json(request, found)
        past = await history_of(request, network, agent_id, None, _HISTORY)
        facts = service(request, PageFacts)
        if wanted == TEXT:
            return _sent(request, markdown.report(found, past, facts.address).encode(), _TEXT)
        return _page(request, "report.html", _report_values(request, found) | _past(past))

    return await _answered(request, shown, _unknown(request, chain, agent_id))


def _report_values(request: Request, found: PublicReportResponse) -> dict[str, object]:
    outcomes = [one.outcome for one in found.checks]
    until = datetime.fromisoformat(found.valid_until)
    return {
        "found": found,
        "bars": views.bars(found.parts),
        "gains": views.gains(found),
        "probes": texts.probes(),
        "counts": {name: outcomes.count(name) for name in ("fail", "not_tested", "pass")},
        "can_trigger": service(request, PageFacts).trigger is not None,
        "is_expired": service(request, Clock).now() > until,
        "path": f"{quote(found.chain)}/{quote(found.agent_id)}",
    }


def _past(past: AgentHistoryResponse) -> dict[str, object]:
    return {"past": past, "chart": views.chart(past.items), "entries": views.log(past.items)}


def _unknown(request: Request, chain: str, agent_id: str) -> Mapping[str, object]:
    """Return what the page of an agent that was never evaluated shows."""
    return {
        "chain": chain,
        "agent_id": agent_id,
        "path": f"{quote(chain, safe='')}/{quote(agent_id, safe='')}",
        "can_trigger": service(request, PageFacts).trigger is not None,
    }


@router.post("/agents/{chain}/{agent_id}")
async def evaluate(request: Request, chain: Chain, agent_id: AgentPath) -> Response:
    """Evaluate the agent now under the open operation's limits, then lead to its report."""

    async def shown(wanted: str) -> Response:
        del wanted
        service(request, PublicAccess).require_reports()
        facts = service(request, PageFacts)
        if facts.trigger is None:
            raise NotFound("This installation evaluates agents for its operators only.")
        if _is_of_another_site(request, facts):
            raise Forbidden("Another site's page cannot start an evaluation here.")
        network = _network(request, chain)
        await facts.trigger(request, network, agent_id)
        where = f"{facts.base}/agents/{quote(network.slug)}/{quote(agent_id, safe='')}"
        return RedirectResponse(where, 303, {"content-type": HTML})

    return await _answered(request, shown)


def _is_of_another_site(request: Request, facts: PageFacts) -> bool:
    """Return whether a browser says so; over http it sends no `Sec-Fetch-Site`, but `Origin`."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None:
        return site not in {"none", "same-origin"}
    return origin is not None and origin != origin_of(facts.address)


@router.get("/badge/{chain}/{agent_id}.svg")
async def badge_of(request: Request, chain: Chain, agent_id: AgentPath) -> Response:
    """Return a picture of the grade; "not rated" for an agent that has none."""
    access, now = service(request, PublicAccess), service(request, Clock).now()
    access.require_reports()
    tier, until = None, None
    try:
        network = _network(request, chain)
        found = await service(request, PublicAgents).report(network, agent_id)
        tier, until = found.evaluation.grade.tier, found.valid_until
    except (NotEvaluated, InvalidRequest):
        pass
    body = render("badge.svg", {"badge": badge(tier, until, now)})
    headers = {"content-security-policy": BADGE_POLICY, **access.headers}
    return public_document(request, body, SVG, headers, max_age_s=300)


@router.get("/probes")
async def probes(request: Request) -> Response:
    """Show the list of probes."""
    service(request, PublicAccess).require_reports()
    if _wanted(request, _KINDS) == TEXT:
        return _sent(request, texts.source("probes.md").encode(), _TEXT)
    return _page(request, "probes.html", {"probes": tuple(texts.probes().values())})


@router.get("/probes/{name}")
async def probe(request: Request, name: Name) -> Response:
    """Explain one probe, from the documentation's own text."""

    async def shown(wanted: str) -> Response:
        service(request, PublicAccess).require_reports()
        found = texts.probes().get(name)
        if found is None:
            raise NotFound("There is no probe of this name.")
        if wanted == TEXT:
            return _sent(request, f"# {found.name}\n\n{found.source}\n".encode(), _TEXT)
        body = texts.page(found.source, service(request, PageFacts).base)
        return _page(request, "probe.html", {"probe": found, "body": body})

    return await _answered(request, shown)


@router.get("/methodology")
async def methodology(request: Request) -> Response:
    """Explain how grades work, from the documentation's own text."""
    service(request, PublicAccess).require_reports()
    text = texts.source("grades.md")
    if _wanted(request, _KINDS) == TEXT:
        return _sent(request, text.encode(), _TEXT)
    body = texts.page(text, service(request, PageFacts).base)
    return _page(request, "text.html", {"title": "How grades work", "body": body})


@router.get("/pages/{name}")
def part(request: Request, name: Name) -> Response:
    """Return the style sheet under its present name; 404 for any other."""
    if name != style_name():
        raise NotFound("The pages have no such part.")
    return public_document(request, style(), "text/css; charset=utf-8", _IMMUTABLE)


def _network(request: Request, chain: str) -> Network:
    return service(request, Networks).by_slug(chain, "path")


def _wanted(request: Request, offers: tuple[str, ...]) -> str:
    return preferred(request.headers.get("accept", "*/*"), offers)


async def _answered(
    request: Request,
    shown: Callable[[str], Awaitable[Response]],
    unknown: Mapping[str, object] | None = None,
) -> Response:
    """Return a page, or a refusal as a page for those who asked for one."""
    wanted = _wanted(request, _KINDS)
    try:
        return await shown(wanted)
    except ServiceError as error:
        if wanted != "text/html":
            raise
        if unknown is not None and isinstance(error, NotEvaluated):
            return _refusal(request, "unknown.html", unknown, error)
        return _refusal(request, "problem.html", {"error": error}, error)


def _refusal(
    request: Request, template: str, values: Mapping[str, object], error: ServiceError
) -> Response:
    body = render(template, {**_common(request), **values})
    headers = {name.decode(): value.decode() for name, value in error_headers(error)}
    headers |= _headers(request) | {"cache-control": "no-store"}
    return Response(body, status_of(error), headers, HTML)


def _page(request: Request, template: str, values: Mapping[str, object]) -> Response:
    return _sent(request, render(template, {**_common(request), **values}), HTML)


def _common(request: Request) -> dict[str, object]:
    """Return what every template uses."""
    facts = service(request, PageFacts)
    return {
        "base": facts.base,
        "address": facts.address,
        "is_listed": service(request, PublicAccess).mode == "on",
        "url": f"{facts.address}{request.url.path}",
        "q": request.query_params.get("q", ""),
    }


def _json(request: Request, shown: ResponseModel) -> Response:
    return _sent(request, shown.model_dump_json().encode(), JSON)


def _sent(request: Request, body: bytes, media_type: str) -> Response:
    return public_document(request, body, media_type, _headers(request), max_age_s=MAX_AGE_S)


def _headers(request: Request) -> dict[str, str]:
    access = service(request, PublicAccess)
    return {"vary": "accept", "content-security-policy": POLICY, **access.headers}
