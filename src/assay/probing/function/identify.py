"""Detects the protocol of an address; its declared name only decides what is tried first.

Source: evidence.md#asking-the-endpoint.

A read-only operation, and the request that calls it. Pure.

Sources: OpenAPI 3.1, "Style Values"; OpenAPI 2.0, "Parameter Object"; URL Standard, section 5.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import quote, urlencode, urljoin, urlsplit

from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.net.egress.ports import EgressError, EgressResponse, Failure, OutboundRequest
from assay.probing.function.examples import documents_linked
from assay.probing.ports import AgentCallFailed, BudgetExhausted, ProbeSession
from assay.probing.probe_client import (
    LIMITS,
    answer_class,
    decode,
    follow,
    is_agent_card,
    is_html,
    read,
    unpaid,
)
from assay.probing.session import COLD_START_S, is_tight
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
    return "http" if _is_openapi(document) else None


def _is_openapi(document: JsonObject) -> bool:
    """Return whether a document is an OpenAPI description, of version 2 or 3."""
    return bool(document.keys() & {"openapi", "swagger"}) and is_object(document.get("paths"))


async def find_openapi(visit: ProbeSession, address: Address) -> bool:
    """Search for documentation beside the address; return whether there is any."""
    if address.document is not None and _is_openapi(address.document):
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
        if reply.status == 200 and is_object(document) and _is_openapi(document):  # noqa: PLR2004
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


FORM: Final = "application/x-www-form-urlencoded"
JOINED: Final[Mapping[str, str]] = {"csv": ",", "ssv": " ", "tsv": "\t", "pipes": "|"}
"""Separators of lists in one query value, by the place of the argument."""

WHOLE: Final = "whole"
TEXT: Final = "text"


@dataclass(frozen=True, slots=True)
class Operation:
    """A documented operation that only reads, according to its document."""

    method: str
    path: str
    schema: JsonObject
    """Its required parameters, by name, as one object."""
    places: JsonObject
    """Where each parameter goes: `path`, `query` or one of `JOINED`, a member of a JSON `body` or
    of a `form`; or the `whole` JSON body, or all of it as `text`."""
    answer: JsonValue
    """Schema of its documented answer."""
    about: str = ""
    """Its description in the document."""
    is_talk: bool = False
    """Whether it takes a message in words, and answers."""
    media: str = ""
    """Media type of a text body."""
    shown: tuple[JsonObject, ...] = ()
    """Arguments of whole calls that its owner shows."""

    def is_shown(self, arguments: JsonObject) -> bool:
        """Return whether its owner shows exactly these: an answer may be prepared for them."""
        if arguments in self.shown:
            return True
        declared = self.schema.get("properties")
        properties: JsonObject = declared if is_object(declared) else {}
        open_to_us = [n for n in arguments if not _is_listed(properties.get(n))]
        return bool(open_to_us) and all(
            arguments[name] in _examples(properties.get(name)) for name in open_to_us
        )


def _is_listed(declared: JsonValue) -> bool:
    return is_object(declared) and bool(declared.keys() & {"enum", "const"})


def _examples(declared: JsonValue) -> list[JsonValue]:
    if not is_object(declared):
        return []
    examples = declared.get("examples")
    return [*(examples if is_array(examples) else ()), declared.get("example")]


def request_for(operation: Operation, base: str, arguments: JsonObject) -> OutboundRequest:
    """Return the request that calls an operation with these arguments."""
    path = operation.path
    query: dict[str, str | list[str]] = {}
    body: dict[str, JsonValue] = {}
    for name, value in arguments.items():
        where = str(operation.places.get(name))
        if where == "path":
            path = path.replace("{" + name + "}", quote(_joined(value, ","), safe=","))
        elif where == "query":
            query[name] = list(map(_plain, value)) if is_array(value) else _plain(value)
        elif where in JOINED:
            query[name] = _joined(value, JOINED[where])
        else:
            body[name] = value
    joined = base + "/" + path.lstrip("/") if path else base
    url = joined + (f"?{urlencode(query, doseq=True)}" if query else "")
    if operation.method != "POST":
        return OutboundRequest(operation.method, url, ACCEPTS)
    media, content = _body(operation, body)
    return OutboundRequest("POST", url, {**ACCEPTS, "content-type": media}, content)


def _body(operation: Operation, given: JsonObject) -> tuple[str, bytes]:
    """Return media type and bytes of a body with these members."""
    places = {str(operation.places.get(name)) for name in given}
    only = next(iter(given.values()), None)
    if "form" in places:
        pairs = {n: list(map(_plain, v)) if is_array(v) else _plain(v) for n, v in given.items()}
        return FORM, urlencode(pairs, doseq=True).encode()
    if TEXT in places:
        return operation.media or "text/plain", _plain(only).encode("utf-8", "replace")
    return "application/json", json.dumps(only if WHOLE in places else given).encode()


def _plain(value: JsonValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _joined(value: JsonValue, mark: str) -> str:
    rows: Sequence[JsonValue] = value if is_array(value) else [value]
    return mark.join(map(_plain, rows))
