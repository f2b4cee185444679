"""A seller's OpenAPI document of its paid calls over MPP, for agents that look for prices.

It is at `/wrap/{operatorId}/openapi.json`, unless a wrapper of the seller answers there. It lists
active wrappers with a price and a description. It is advice: the 402 alone says what is owed.

Source: draft-payment-discovery-01 (mpp.md#discovery); ADR 0057.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from assay.common.http_heads import HeaderPairs
from assay.common.json import JsonObject, JsonValue
from assay.common.numbers import usd
from assay.payments.model import PaymentNetwork
from assay.server.public_documents import MAX_AGE_S, is_current, tag_of
from assay.wrappers.model import ANY_METHOD, InboundRequest, WrapperConfig, WrapperResponse
from assay.wrappers.route_table import Routes
from assay.wrappers.stages.forward import SANDBOX

PATH: Final = "/openapi.json"

OPERATIONS_MAX: Final = 100
"""In one document; `?page=2` has the next ones, and `Link` names it (RFC 8288)."""

_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
"""Methods of OpenAPI."""
_OF_ANY: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
"""Methods that a wrapper for every method sells: a HEAD of it is only told the price."""
_WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH"})
_PAGE = re.compile(r"page=([1-9][0-9]{0,3})")
_READS: Final = frozenset({"GET", "HEAD"})
_NOT_MODIFIED: Final = 304


@dataclass(frozen=True, slots=True)
class SoldOperation:
    """A method and a path of OpenAPI, and the wrapper that sells it."""

    path: str
    """Such as `/items/{id}`, below the seller's address."""
    parameters: tuple[str, ...]
    method: str
    config: WrapperConfig


class SellerDocuments:
    """Answers requests for sellers' documents. `address` is the public one of wrappers."""

    def __init__(
        self, routes: Routes, networks: Mapping[str, PaymentNetwork], address: str, app: str
    ) -> None:
        """`app` is the public address of the service."""
        self._routes = routes
        self._networks = networks
        self._address = address
        self._app = app

    async def answer(self, operator_id: str, incoming: InboundRequest) -> WrapperResponse | None:
        """Return the document, or None if the request is not for one that lists anything."""
        page = _page(incoming.query)
        if incoming.path != PATH or incoming.method not in _READS or page is None:
            return None
        configs = await self._routes.active(operator_id)
        sold = list(sold_operations(configs, self._networks))
        first = (page - 1) * OPERATIONS_MAX
        shown = sold[first : first + OPERATIONS_MAX]
        if not shown:
            return None
        base = f"{self._address}/wrap/{operator_id}"
        body = json.dumps(self._document(operator_id, base, shown), ensure_ascii=False).encode()
        more = len(sold) > first + OPERATIONS_MAX
        return _response(incoming, body, f"{base}{PATH}?page={page + 1}" if more else None)

    def _document(self, operator_id: str, base: str, shown: Sequence[SoldOperation]) -> JsonObject:
        paths: dict[str, dict[str, JsonValue]] = {}
        for one in shown:
            network = self._networks[one.config.network]
            paths.setdefault(one.path, {})[one.method.lower()] = _operation(one, network)
        return {
            "openapi": "3.1.0",
            "info": {
                "title": f"Paid calls of {operator_id}",
                "version": "1.0.0",
                "description": "What calls cost without proof of an agent. The 402 decides.",
            },
            "servers": [{"url": base}],
            "x-service-info": {
                "docs": {"homepage": f"{self._app}/docs", "llms": f"{self._app}/llms.txt"}
            },
            "paths": {path: dict(item) for path, item in paths.items()},
        }


def sold_operations(
    configs: Sequence[WrapperConfig], networks: Mapping[str, PaymentNetwork]
) -> Iterator[SoldOperation]:
    """Yield what is listed, each method of a path once: of the wrapper that answers it.

    Two routes that differ in the names of their parameters are one path of OpenAPI, which must not
    be listed twice (OpenAPI 3.1, section 4.8.8).
    """
    claimed: set[tuple[str, str]] = set()
    spelled: dict[str, tuple[str, tuple[str, ...]]] = {}
    for config in sorted(configs, key=_precedence):
        path, names = _templated(config.path)
        form = re.sub(r"\{[^}]*\}", "{}", path)
        methods = _OF_ANY if config.method == ANY_METHOD else (config.method,)
        for method in methods:
            if method not in _METHODS or (form, method) in claimed:
                continue
            claimed.add((form, method))
            if _is_listed(config, networks):
                yield SoldOperation(*spelled.setdefault(form, (path, names)), method, config)


def _is_listed(config: WrapperConfig, networks: Mapping[str, PaymentNetwork]) -> bool:
    is_sold = config.protocol == "mpp" and config.price > 0 and config.network in networks
    return is_sold and bool(config.target_url) and bool(config.description)


def _precedence(config: WrapperConfig) -> tuple[bool, bool, str, str]:
    """Return what sorts the wrappers that answer first to the front, and all in one order."""
    return config.path.endswith("/*"), config.method == ANY_METHOD, config.path, config.method


def _templated(path: str) -> tuple[str, tuple[str, ...]]:
    """Return a route as OpenAPI writes it, and its parameters: `/files/*` is `/files/{rest}`."""
    names: list[str] = []
    shown = path.split("/")
    for place, segment in enumerate(shown):
        if segment != "*" and not segment.startswith("{"):
            continue
        name = "rest" if segment == "*" else segment[1:-1]
        while name in names:  # a name may not be used twice
            name += "_"
        names.append(name)
        shown[place] = f"{{{name}}}"
    return "/".join(shown), tuple(names)


def _operation(sold: SoldOperation, network: PaymentNetwork) -> JsonObject:
    """Return the operation with its offer. Source: mpp.md#discovery."""
    config = sold.config
    price = f"{usd(config.price)} USD on {network.short_name}"
    offer: dict[str, JsonValue] = {
        "intent": "charge",
        "method": "tempo",
        "amount": None if config.pricing else str(config.price),
        "currency": network.asset.address,
        "description": f"At most {price}, by the agent's grade." if config.pricing else price,
    }
    found: dict[str, JsonValue] = {
        "summary": config.description,
        "x-payment-info": {"offers": [offer]},
        "responses": {
            "200": {"description": "The seller's answer."},
            "402": {"description": "Payment Required"},
        },
    }
    if sold.parameters:
        found["parameters"] = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in sold.parameters
        ]
    if sold.method in _WITH_BODY:  # what it takes is not known here
        found["requestBody"] = {"content": {"*/*": {}}}
    return found


def _page(query: str | None) -> int | None:
    """Return the page that is asked for; None for another query."""
    if not query:
        return 1
    found = _PAGE.fullmatch(query)
    return None if found is None else int(found[1])


def _response(incoming: InboundRequest, body: bytes, following: str | None) -> WrapperResponse:
    tag = tag_of(body)
    headers: list[tuple[bytes, bytes]] = [
        (b"content-type", b"application/json"),
        (b"cache-control", b"public, max-age=%d" % MAX_AGE_S),
        (b"etag", tag.encode()),
        (b"access-control-allow-origin", b"*"),
        *SANDBOX,
    ]
    if following is not None:
        headers.append((b"link", f'<{following}>; rel="next"'.encode()))
    if is_current(_values(incoming.headers, b"if-none-match"), tag):
        return WrapperResponse(_NOT_MODIFIED, headers, b"")
    if incoming.method == "HEAD":
        return WrapperResponse(200, [*headers, (b"content-length", b"%d" % len(body))], b"")
    return WrapperResponse(200, headers, body)


def _values(headers: HeaderPairs, name: bytes) -> list[str]:
    return [value.decode("latin-1") for found, value in headers if found == name]
