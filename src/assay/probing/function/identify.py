"""Detects the protocol of an address; its declared name only decides what is tried first.

Source: evidence.md#asking-the-endpoint.
"""

from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urljoin, urlsplit

from assay.common.json import JsonObject, is_object
from assay.net.egress.ports import EgressError, EgressResponse, Failure, OutboundRequest
from assay.probing.function.linked import documents_linked
from assay.probing.ports import AgentCallFailed, BudgetExhausted, ProbeSession
from assay.probing.probe_client import LIMITS, answer_class, decode, is_html
from assay.probing.redirects import follow, is_agent_card
from assay.probing.session import COLD_START_S, is_tight
from assay.probing.x402_reader import read, unpaid
from assay.registries.model import Service

OPENAPI_PLACES: Final = (
    "openapi.json",
    "/openapi.json",
    "/swagger.json",
    "/v3/api-docs",
    "/api/openapi.json",
    "/swagger/v1/swagger.json",
    "/api-docs",
)
"""Usual paths of documentation if the declared address has none, in this order."""

PLACES_OF_SEVERAL = 3
"""The number of these tried in an announced visit of several services, with few requests each."""

ACCEPTS: Final = {"accept": "application/json"}


@dataclass(slots=True)
class Address:
    """A declared service, and what is known about it so far."""

    service: Service
    hint: str
    url: str
    """Its address after redirects on its site."""
    reply: EgressResponse | None = None
    document: JsonObject | None = None
    """A card, an OpenAPI document or another JSON object, depending on its kind."""
    document_url: str = ""
    is_callable: bool = True


def is_web_address(endpoint: str) -> bool:
    """Return whether an endpoint is an http(s) URL that can be parsed and printed."""
    try:
        parts = urlsplit(endpoint)
        return parts.scheme in {"http", "https", "grpc", "grpcs"} and bool(parts.hostname)
    except ValueError:
        return False


async def glance(visit: ProbeSession, address: Address) -> str:
    """Fetch the declared address; return the class of the answer."""
    if urlsplit(address.url).path.rstrip("/").endswith("/sse"):
        return "ok"  # It would keep the answer open; only a client of that transport can read it.
    again = {**ACCEPTS, "cache-control": "no-cache"}
    for headers, limits in ((ACCEPTS, LIMITS), (again, replace(LIMITS, total_s=COLD_START_S))):
        try:
            address.url, address.reply = await follow(
                visit.http, OutboundRequest("GET", address.url, headers), limits
            )
            break
        except EgressError as error:
            found = answer_class(error.failure)
            if found != "timeout" or limits is not LIMITS:
                return "protocol" if found == "cut" else found
    if address.reply is None:
        return "timeout"
    if address.hint == "x402" and read(address.reply) is None:
        response = await unpaid(visit, address.url)
        address.reply = response if isinstance(response, EgressResponse) else address.reply
    document = decode(address.reply.body)
    if is_object(document):
        address.document, address.document_url = document, address.url
    return answer_class(address.reply)


def documented_kind(address: Address) -> str | None:
    """Return the kind that the document or 402 at the declared address shows."""
    if address.reply is not None and read(address.reply) is not None:
        return "x402"
    document = address.document
    if document is None:
        return None
    if is_agent_card(document):
        return "a2a"
    return "http" if is_openapi(document) else None


def is_openapi(document: JsonObject) -> bool:
    """Return whether a document is an OpenAPI description, of version 2 or 3."""
    return bool(document.keys() & {"openapi", "swagger"}) and is_object(document.get("paths"))


async def find_openapi(visit: ProbeSession, address: Address) -> bool:
    """Search for documentation beside the address; return whether there is any."""
    if address.document is not None and is_openapi(address.document):
        return True
    base = (
        address.url.rstrip("/") + "/" if "." not in address.url.rpartition("/")[2] else address.url
    )
    linked = [] if address.reply is None else documents_linked(address.reply, address.url)
    places = OPENAPI_PLACES[:PLACES_OF_SEVERAL] if is_tight(visit) else OPENAPI_PLACES
    for url in dict.fromkeys([*linked, *(urljoin(base, place) for place in places)]):
        try:
            found_at, reply = await follow(visit.http, OutboundRequest("GET", url, ACCEPTS), LIMITS)
        except EgressError as error:
            if error.failure in {Failure.CONNECT, Failure.NAME, Failure.TIMEOUT}:
                return False
            continue
        document = decode(reply.body)
        if reply.status == 200 and is_object(document) and is_openapi(document):  # noqa: PLR2004
            address.document, address.document_url = document, found_at
            return True
    return False


async def speaks_a2a(visit: ProbeSession, address: Address) -> str:
    """Return `ok` if a card is found from the address, else the class of the failure."""
    try:
        async with visit.dialers.a2a(address.service.endpoint, visit.http) as agent:
            address.document, address.document_url = agent.card, agent.card_url
            return "ok"
    except AgentCallFailed as error:
        return failure_of(error)


async def speaks_mcp(visit: ProbeSession, address: Address) -> str:
    """Return `ok` if an MCP session can be opened, else the class of the failure."""
    try:
        async with visit.dialers.mcp(address.service.endpoint, visit.http):
            return "ok"
    except AgentCallFailed as error:
        return failure_of(error)


def failure_of(error: AgentCallFailed | BudgetExhausted) -> str:
    """Return the class of a failure in a transcript: as `AnswerClass`, with more for refusals.

    `busy_for` is a 429 or 503 with a retry time.
    """
    if isinstance(error, BudgetExhausted):
        return "cut"
    if error.kind != "error":
        return error.kind
    by_code = {401: "closed", 402: "closed", 403: "closed", 407: "closed", 404: "not_found"}
    if error.code in {429, 503}:
        return "busy" if error.retry_s is None else "busy_for"
    return by_code.get(error.code or 0, "error")


def is_page(address: Address) -> bool:
    """Return whether the declared address is a page for people."""
    return address.reply is not None and address.reply.status < 400 and is_html(address.reply)  # noqa: PLR2004 - an error
