"""Sends probes' requests and classifies the answers, so that a probe is only its question.

Only the class of an answer is stored, never its text, time or number: the same agent gives the same
evidence. Source: conventions.md#behavioural-evidence.

Follows redirects within a site, and recognises agent cards.

Reads a service's payment demand from its 402; shared by the probes of payment.

Source: x402 specification, versions 1 (body) and 2 (header `PAYMENT-REQUIRED`); x402.md#documents.
"""

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast
from urllib.parse import urljoin, urlsplit

from assay.common.json import (
    JsonObject,
    JsonValue,
    has_values_beyond,
    is_array,
    is_nested_beyond,
    is_object,
)
from assay.net.egress.ports import (
    EgressClient,
    EgressError,
    EgressResponse,
    Failure,
    Limits,
    OutboundRequest,
)
from assay.net.egress.url import GRPC, grpc_origins
from assay.probing.ports import (
    A2aConversation,
    AgentCallFailed,
    ProbeSession,
    ServiceKind,
    VisitedService,
)

AnswerClass = Literal[
    "ok", "redirect", "closed", "busy", "refused", "broken", "timeout", "unreachable", "cut"
]
"""The class of an answer.

`closed` requires credentials or payment (401, 402, 403, 407); `busy` is 429 and 503; `refused` is
every other 4xx, and 501; `broken` every other 5xx; `cut` is incomplete HTTP.
"""

LIMITS = Limits(connect_s=2.0, total_s=4.0, events_s=0.5)
"""Limits of one request: less than the 5 s after which an answer counts as hanging."""

GLANCE_BYTES = 1024
"""Bytes read of an answer of which only the class is needed."""

MALFORMED_JSON = b'{"assay": '
"""Ends where a value must follow, so that no parser can accept it."""

MALFORMED_RPC = b'{"jsonrpc": "2.0", "id": 1, '
"""The same for a JSON-RPC request."""

JSON_DEPTH_MAX = 100
"""Deeper JSON is treated as invalid: no card, document or schema in use comes near."""

JSON_VALUES_MAX = 40_000
"""JSON with more values is treated as invalid: parsing it would block the event loop."""

_CLOSED = frozenset({401, 402, 403, 407})
_BUSY = frozenset({429, 503})
_NOT_IMPLEMENTED = 501
_FAILURES: dict[Failure, AnswerClass] = {Failure.TIMEOUT: "timeout", Failure.PROTOCOL: "cut"}


def first(visit: ProbeSession, kind: ServiceKind) -> VisitedService | None:
    """Return the first declared service of that kind, which is probed in depth."""
    return next((v for v in visit.services if v.kind == kind), None)


def canary(visit: ProbeSession, purpose: str) -> str:
    """Return a word that nobody else uses, the same at every visit to this agent.

    In a visit that does not identify itself, it is specific to that visit and without our name.
    """
    if not visit.announced:
        word = hashlib.sha256(f"{visit.nonce}/{purpose}".encode()).digest()[:8]
        return base64.b32encode(word).decode().rstrip("=").lower()
    return "assay" + hashlib.sha256(f"{visit.seed}/{purpose}".encode()).hexdigest()[:12]


async def ask(
    visit: ProbeSession, request: OutboundRequest, limits: Limits = LIMITS
) -> EgressResponse | Failure:
    """Return the reply, or why there is none."""
    try:
        return await visit.http.send(request, limits)
    except EgressError as error:
        return error.failure


async def ask_class(visit: ProbeSession, request: OutboundRequest) -> EgressResponse | Failure:
    """Like `ask`, if only the answer's class is needed.

    For a host that has not consented to more, only the beginning is read: many long pages would use
    up a small budget.
    """
    if visit.may_burden(request.url):
        return await ask(visit, request)
    return await ask(visit, request, replace(LIMITS, body_bytes_max=GLANCE_BYTES))


def answer_class(response: EgressResponse | Failure) -> AnswerClass:
    """Return the class of a reply (see `AnswerClass`)."""
    if isinstance(response, Failure):
        return _FAILURES.get(response, "unreachable")
    return _status_class(response.status)


def _status_class(status: int) -> AnswerClass:
    """Return the class of an HTTP status."""
    if status in _CLOSED:
        return "closed"
    if status in _BUSY:
        return "busy"
    if status == _NOT_IMPLEMENTED:
        return "refused"
    by_hundreds: dict[int, AnswerClass] = {2: "ok", 3: "redirect", 4: "refused"}
    return by_hundreds.get(status // 100, "broken")


def failure_class(error: AgentCallFailed) -> str:
    """Return a client failure's class.

    An `AnswerClass`, `protocol`, or `error` (protocol error).
    """
    if error.kind == "error" and error.code is not None and error.code in _CLOSED | _BUSY:
        return _status_class(error.code)
    return error.kind


def retry_after_s(reply: EgressResponse) -> float | None:
    """Return the seconds after which a 429 or 503 allows a retry, if given in seconds."""
    said = (reply.header("retry-after") or "").strip()
    if reply.status not in _BUSY or not (said.isascii() and said.isdigit() and len(said) < 6):  # noqa: PLR2004 - a day
        return None
    return float(said)


def is_html(reply: EgressResponse | Failure) -> bool:
    """Return whether the reply is a page for people."""
    return (
        isinstance(reply, EgressResponse) and "html" in (reply.header("content-type") or "").lower()
    )


def text_of(response: EgressResponse | Failure) -> str:
    """Return the body as text; empty if there is no reply."""
    return response.body.decode("utf-8", "replace") if isinstance(response, EgressResponse) else ""


def decode(body: bytes) -> JsonValue:
    """Return the JSON value of a body, or None if it is invalid (or nested too deeply)."""
    if has_values_beyond(body, JSON_VALUES_MAX) or is_nested_beyond(body, JSON_DEPTH_MAX):
        return None
    try:
        return cast("JsonValue", json.loads(body.decode("utf-8-sig")))
    except ValueError:
        return None


def host_of(url: str) -> str:
    """Return the host of a URL, lower case; empty if it has none."""
    try:
        return (urlsplit(url).hostname or "").lower().rstrip(".")
    except ValueError:
        return ""


def same_site(url: str, other: str) -> bool:
    """Return whether both URLs are on one host, or one host is below the other's.

    A host of one label (`com`) is unrelated to hosts below it.
    """
    a, b = sorted((host_of(url), host_of(other)), key=len)
    return bool(a) and (a == b or ("." in a and b.endswith("." + a)))


def unknown_url(visit: ProbeSession, endpoint: str) -> str:
    """Return an address below the endpoint that cannot exist.

    It is two segments deep, so that a route with one parameter (`/{name}`) does not answer it
    correctly.
    """
    word = canary(visit, "unknown path")
    return urljoin(_folder(endpoint), f"{word}/{word}")


def _folder(endpoint: str) -> str:
    """Return the endpoint as a folder: without query and without a file as last segment."""
    bare = urlsplit(endpoint)._replace(query="", fragment="").geturl()
    last = bare.rpartition("/")[2]
    is_file = "." in last and urlsplit(bare).path not in {"", "/"}
    return bare.removesuffix(last) if is_file else bare.rstrip("/") + "/"


def post_json(url: str, body: bytes) -> OutboundRequest:
    """Return a POST that is declared as JSON, whether or not it is."""
    headers = {"content-type": "application/json", "accept": "application/json"}
    return OutboundRequest("POST", url, headers, body)


async def json_target(visit: ProbeSession, endpoint: str) -> tuple[str, bool]:
    """Return where a JSON body is read, and whether the service documents that.

    It is the first operation of its OpenAPI document that takes JSON, else the endpoint itself.
    Only bodies that cannot be parsed are ever sent there, so they can change nothing.
    """
    root = urljoin(endpoint, "/")
    places = [endpoint, urljoin(_folder(endpoint), "openapi.json"), root + "openapi.json"]
    if not visit.may_burden(endpoint) and is_html(
        await ask(visit, OutboundRequest("GET", endpoint))
    ):
        places.remove(endpoint)  # A page for people, which is not requested twice.
    for url in dict.fromkeys(places):
        response = await ask(visit, OutboundRequest("GET", url, {"accept": "application/json"}))
        document = decode(response.body) if isinstance(response, EgressResponse) else None
        if is_object(document) and "openapi" in document:
            return _documented(document, url) or endpoint, _documented(document, url) is not None
    return endpoint, False


def _documented(document: JsonObject, url: str) -> str | None:
    """Return the first documented operation that reads JSON, on the document's own site."""
    paths = document.get("paths")
    base = urljoin(url, _server(document))
    for path, item in sorted(paths.items()) if is_object(paths) else ():
        operation = item.get("post") if is_object(item) else None
        body = operation.get("requestBody") if is_object(operation) else None
        content = body.get("content") if is_object(body) else None
        if "{" not in path and is_object(content) and "application/json" in content:
            target = base.rstrip("/") + "/" + path.lstrip("/")
            return target if same_site(target, url) else None
    return None


def _server(document: JsonObject) -> str:
    servers = document.get("servers")
    server = servers[0] if is_array(servers) and servers else None
    url = server.get("url") if is_object(server) else None
    return url if isinstance(url, str) else "/"


async def rpc_url(visit: ProbeSession, service: VisitedService) -> str | None:
    """Return the JSON-RPC address in the A2A agent's card; None without one, or on another site.

    Probes stay where the registration sent them: a card must not direct them to a third party.
    """
    try:
        async with visit.dialers.a2a(service.service.endpoint, visit.http) as agent:
            urls = [url for binding, url in interfaces(agent.card) if binding == "JSONRPC"]
            return next((u for u in urls if same_site(u, agent.card_url)), None)
    except AgentCallFailed:
        return None


def speaks(agent: A2aConversation) -> bool:
    """Return whether the agent can be addressed on the card's own site."""
    return any(
        same_site(one, agent.card_url)
        for binding, url in interfaces(agent.card)
        for one in called_at(binding, url)
    )


def called_at(binding: str, url: str) -> Sequence[str]:
    """Return the http(s) addresses of a card's interface; empty if none is known."""
    if binding == GRPC:
        return grpc_origins(url)
    return (url,) if binding in {"JSONRPC", "HTTP+JSON"} else ()


def said(answer: JsonValue) -> str:
    """Return an agent's own words: every text of its message, task or tool result.

    A task's history is left out: it repeats the question.
    """
    if is_object(answer):
        own = [value for key, value in answer.items() if key != "history"]
        text = answer.get("text")
        return "\n".join(
            [*([text] if isinstance(text, str) else []), *filter(None, map(said, own))]
        )
    if is_array(answer) and not isinstance(answer, str):
        return "\n".join(filter(None, map(said, answer)))
    return ""


def interfaces(card: JsonObject) -> list[tuple[str, str]]:
    """Return (binding, URL) of every interface in a card, in the forms of A2A 1.0 and of 0.3."""
    found: list[tuple[str, str]] = []
    for key, binding in (
        ("supportedInterfaces", "protocolBinding"),
        ("additionalInterfaces", "transport"),
    ):
        listed = card.get(key)
        rows = [row for row in listed if is_object(row)] if is_array(listed) else []
        found += [(str(row.get(binding)), str(row.get("url"))) for row in rows[:16]]
    url = card.get("url")
    if isinstance(url, str):
        found.insert(0, (str(card.get("preferredTransport") or "JSONRPC"), url))
    return found


REDIRECTS_MAX = 3
"""Redirects followed on one site: https, a new path and a slash."""

_REDIRECTS = frozenset({301, 302, 303, 307, 308})


async def follow(
    http: EgressClient, request: OutboundRequest, limits: Limits = LIMITS
) -> tuple[str, EgressResponse]:
    """Return where a GET ends after redirects that stay on its site, and the reply there.

    A redirect to another site is returned as the reply. Raises `EgressError`.
    """
    url = request.url
    reply = await http.send(request, limits)
    for _ in range(REDIRECTS_MAX):
        location = reply.header("location") if reply.status in _REDIRECTS else None
        try:
            following = urljoin(url, location) if location else ""
        except ValueError:
            break
        if not same_site(following, url) or _is_downgrade(url, following):
            break
        url = following
        reply = await http.send(replace(request, url=url), limits)
    return url, reply


def _is_downgrade(url: str, following: str) -> bool:
    """Return whether a redirect leads from https to http."""
    return url.lower().startswith("https:") and not following.lower().startswith("https:")


def is_agent_card(document: JsonObject) -> bool:
    """Return whether a document is an A2A card, of 0.3 or of 1.0."""
    return is_array(document.get("skills")) and bool(
        document.keys() & {"url", "supportedInterfaces", "protocolVersion", "capabilities"}
    )


HEADER_CHARS_MAX = 65_536
OFFERS_MAX = 32
_PAYMENT_REQUIRED = 402
_NOT_BY_GET = frozenset({400, 404, 405, 415, 422})
_AMOUNT = re.compile(r"[0-9]{1,40}")


@dataclass(frozen=True, slots=True)
class Offer:
    """A way to pay: payee, amount, asset and network, as demanded."""

    network: str
    asset: str
    amount: str
    pay_to: str


@dataclass(frozen=True, slots=True)
class PaymentDemand:
    """A parsed 402: the offers of either version, and whether every one of them is well-formed."""

    body: tuple[Offer, ...]
    header: tuple[Offer, ...]
    is_valid: bool

    @property
    def offers(self) -> frozenset[Offer]:
        """Return the offers of both versions."""
        return frozenset(self.body) | frozenset(self.header)


async def asked(visit: ProbeSession, headers: dict[str, str] | None = None) -> PaymentDemand | None:
    """Return the first HTTP service's demand for an unpaid call; None if it is not x402."""
    service = first(visit, "http")
    if service is None:
        return None
    response = await ask(visit, OutboundRequest("GET", service.service.endpoint, headers or {}))
    return read(response)


async def unpaid(
    visit: ProbeSession, url: str, headers: dict[str, str] | None = None
) -> EgressResponse | Failure:
    """Return the answer to an unpaid call, if payment is known or declared to be demanded.

    It is a GET; if only a POST is sold, a POST with an empty object: before payment it has no
    effect.
    """
    response = await ask(visit, OutboundRequest("GET", url, headers or {}))
    if not isinstance(response, EgressResponse) or response.status not in _NOT_BY_GET:
        return response
    posted = {**(headers or {}), "content-type": "application/json"}
    return await ask(visit, OutboundRequest("POST", url, posted, b"{}"))


def read(response: EgressResponse | Failure) -> PaymentDemand | None:
    """Return the offers of a 402, or None if it has none of x402's."""
    if not isinstance(response, EgressResponse) or response.status != _PAYMENT_REQUIRED:
        return None
    document = decode(response.body)
    spoken = is_object(document) and "x402Version" in document
    header = response.header("payment-required")
    if not spoken and header is None:
        return None
    is_old = is_object(document) and document.get("x402Version") == 1
    body = _offers(document, "maxAmountRequired" if is_old else "amount") if spoken else ()
    said = _offers(_decoded(header), "amount") if header is not None else ()
    valid = body is not None and said is not None and bool(body or said)
    return PaymentDemand(body or (), said or (), is_valid=valid)


def _decoded(header: str) -> JsonValue:
    try:
        return decode(base64.b64decode(header[:HEADER_CHARS_MAX], validate=True))
    except (binascii.Error, ValueError):
        return None


def _offers(document: JsonValue, amount: str) -> tuple[Offer, ...] | None:
    """Return the offers of one version; None if one of them cannot be read."""
    accepts = document.get("accepts") if is_object(document) else None
    if not is_array(accepts) or len(accepts) > OFFERS_MAX:
        return None
    offers = [_offer(row, amount) for row in accepts]
    whole = tuple(offer for offer in offers if offer is not None)
    return whole if len(whole) == len(offers) else None


def _offer(row: JsonValue, amount: str) -> Offer | None:
    if not is_object(row):
        return None
    fields = [row.get(name) for name in ("network", "asset", amount, "payTo", "scheme")]
    texts = [field for field in fields if isinstance(field, str) and field]
    if len(texts) != len(fields) or not _AMOUNT.fullmatch(texts[2]):
        return None
    return Offer(texts[0], texts[1].lower(), texts[2], texts[3].lower())


def consistent(found: PaymentDemand) -> bool:
    """Return whether both versions have the same price of each asset, and the same payee."""
    by_asset: dict[str, set[tuple[str, str]]] = {}
    for offer in found.offers:
        by_asset.setdefault(offer.asset, set()).add((offer.amount, offer.pay_to))
    return all(len(prices) == 1 for prices in by_asset.values())


def as_json(found: PaymentDemand) -> JsonObject:
    """Return what may be stored of it: classes only."""
    return {"valid": found.is_valid, "consistent": consistent(found)}
