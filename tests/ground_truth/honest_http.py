"""Honest HTTP services: several frameworks, GraphQL, sellers, browser keys, shared hosts."""

import base64
import itertools
import json
import random
from typing import Any

from graphql import build_schema, graphql_sync
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Mount, Route

from tests.ground_truth.a2a_parts import face_of, hand_made_a2a
from tests.ground_truth.honest_a2a import specialist
from tests.ground_truth.knowledge import CAPITALS, DOMAINS, Domain
from tests.ground_truth.mcp_parts import HandMade, domain_tool
from tests.ground_truth.site import (
    App,
    Build,
    Built,
    Proof,
    Scope,
    Site,
    Spec,
    registration,
    send_json,
)
from tests.ground_truth.web_parts import (
    aiohttp_service,
    around,
    behind_key,
    by_path,
    described,
    fastapi_service,
    limited,
    slow,
    starlette_service,
    stdlib_service,
    werkzeug_service,
)

USDC = "0x036CbD53842c5426634e7929541eC2318f3dCF7e"
"""Of Base Sepolia."""


def fastapi_at(key: str, name: str = "REST API", *, whole: bool = False) -> Build:
    """FastAPI, declared by its root or by its document."""

    def build(site: Site) -> Built:
        app = fastapi_service(site, DOMAINS[key])
        return Built([(name, site.url + ("/openapi.json" if whole else "/"))], app)

    return build


def starlette_at(key: str) -> Build:
    """No document at all."""

    def build(site: Site) -> Built:
        return Built([("api", site.url + "/ask")], starlette_service(DOMAINS[key]))

    return build


async def on_aiohttp(site: Site) -> Built:
    await aiohttp_service(site, DOMAINS["element"])
    return Built([("OpenAPI", site.url + "/openapi.json")])


def on_werkzeug(site: Site) -> Built:
    werkzeug_service(site, DOMAINS["weather"])
    return Built([("web", site.url + "/")])


def on_stdlib(site: Site) -> Built:
    stdlib_service(site, DOMAINS["length"])
    return Built([("http", site.url + "/openapi.json")])


SCHEMA = build_schema(
    "type Country { name: String! capital: String! millions: Int! }"
    " type Query { countries: [Country!]! country(name: String!): Country }"
)


def graph_ql(site: Site) -> Built:
    """GraphQL over GET and POST, with introspection."""

    def row(name: str) -> dict[str, Any]:
        return {"name": name, "capital": CAPITALS[name][0], "millions": CAPITALS[name][1]}

    def find(_info: Any, name: str) -> dict[str, Any] | None:
        return row(name.lower()) if name.lower() in CAPITALS else None

    root = {"countries": lambda _info: [row(n) for n in CAPITALS], "country": find}

    async def query(request: Request) -> Response:
        if request.method == "GET":
            asked: Any = dict(request.query_params)
        else:
            try:
                asked = json.loads(await request.body())
            except ValueError:
                return JSONResponse({"errors": [{"message": "not JSON"}]}, 400)
        if not isinstance(asked, dict) or not isinstance(asked.get("query"), str):
            return JSONResponse({"errors": [{"message": "no query"}]}, 400)
        done = graphql_sync(SCHEMA, asked["query"], root)
        return JSONResponse(done.formatted, 400 if done.errors and done.data is None else 200)

    app = Starlette(routes=[Route("/graphql", query, methods=["GET", "POST"])])
    return Built([("GraphQL", site.url + "/graphql")], app)


def offer(site: Site, path: str, amount: int, payee: str = "", asset: str = USDC) -> dict[str, Any]:
    """A price of protocol version 1."""
    return {
        "scheme": "exact", "network": "base-sepolia", "maxAmountRequired": str(amount),
        "resource": site.url + path, "description": "One report", "mimeType": "application/json",
        "payTo": payee or site.wallet, "maxTimeoutSeconds": 60, "asset": asset,
        "extra": {"name": "USDC", "version": "2"},
    }  # fmt: skip


async def ask_payment(send: Any, offers: list[dict[str, Any]], version: int = 1) -> None:
    """402 in the shape of either version."""
    if version == 1:
        body = {"x402Version": 1, "error": "X-PAYMENT header is required", "accepts": offers}
        await send_json(send, body, 402)
        return
    new = [
        {"scheme": o["scheme"], "network": "eip155:84532", "amount": o["maxAmountRequired"],
         "payTo": o["payTo"], "asset": o["asset"], "maxTimeoutSeconds": 60, "extra": o["extra"]}
        for o in offers
    ]  # fmt: skip
    resource = {"url": offers[0]["resource"], "mimeType": "application/json"}
    body = {"x402Version": 2, "error": "payment required", "resource": resource, "accepts": new}
    named = {"payment-required": base64.b64encode(json.dumps(body).encode()).decode()}
    await send_json(send, body, 402, named)


def seller(key: str, cents: float, version: int, *, free_part: bool) -> Build:
    """Sells answers; some give a free sample beside the paid ones."""
    domain = DOMAINS[key]

    def build(site: Site) -> Built:
        async def app(scope: Scope, receive: Any, send: Any) -> None:
            del receive
            if scope["path"] == "/report" and scope["method"] in {"GET", "HEAD", "POST"}:
                await ask_payment(send, [offer(site, "/report", int(cents * 10_000))], version)
            elif free_part and scope["path"] == "/sample":
                query = scope["query_string"].decode().partition("=")[2].replace("%20", " ")
                said = domain.answer(query or domain.examples[0])
                await send_json(send, {"result": said}, 200 if said else 400)
            elif free_part and scope["path"] == "/openapi.json":
                await send_json(send, described(site, domain, "/sample", "q"))
            else:
                await send_json(send, {"error": "not sold here"}, 404)

        sold = [("x402", site.url + "/report")]
        free = [("api", site.url + "/openapi.json")] if free_part else []
        return Built(sold + free, app)

    return build


PAGE = """<!doctype html><html><head><title>{title}</title>
<script>const firebase = {{apiKey: "AIzaSyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY",
projectId: "shop-front", messagingSenderId: "448618578101"}};
const stripe = Stripe("pk_live_51HCe7yKZ3pQvTnWm8aRbXdLs");
const search = algolia("YG2QJ8M1KD", "6be0576ff61c053d5f9a3225e2a90f76");</script></head>
<body><h1>{title}</h1><p>{text}</p></body></html>"""


def with_browser_keys(key: str, *, everywhere: bool) -> Build:
    """Ordinary pages carry the keys that browsers need; error pages are such pages too."""

    def build(site: Site) -> Built:
        domain = DOMAINS[key]
        api = fastapi_service(site, domain)

        async def app(scope: Scope, receive: Any, send: Any) -> None:
            if scope["path"].startswith(("/v1/", "/openapi.json")):
                await api(scope, receive, send)
                return
            known = scope["path"] == "/"
            text = domain.summary if known else "We could not find this page."
            page = HTMLResponse(PAGE.format(title=domain.title, text=text), 200 if known else 404)
            if known or everywhere:
                await page(scope, receive, send)
            else:
                await send_json(send, {"error": "no such page"}, 404)

        return Built([("web", site.url + "/"), ("api", site.url + "/openapi.json")], app)

    return build


def shared_host(*keys: str) -> list[Spec]:
    """Several agents on one origin, each under a path of its own."""
    names = [f"Tenant {key}" for key in keys]

    def tenant(name: str, domain: Domain, *, tools: bool) -> Build:
        def build(site: Site) -> Built:
            host, prefix = site.others[names[0]], f"/t/{domain.key}"
            if tools:
                part: App = HandMade(
                    site, name, lambda _scope: [domain_tool(domain)], path=f"{prefix}/mcp"
                )
                service = ("MCP", f"{host.url}{prefix}/mcp")
            else:
                face = face_of(domain, path=f"{prefix}/rpc")
                card = f"{prefix}/.well-known/agent-card.json"
                part = hand_made_a2a(
                    site, face, specialist(domain.key), card_path=card, base=host.url
                )
                service = ("A2A", host.url + card)
            tenants(host)[prefix] = part
            app = by_path(tenants(host)) if site is host else None
            return Built([service], _with_proofs(app, site, names) if app else None)

        return build

    return [
        Spec("shared host", name, "honest", tenant(name, DOMAINS[key], tools=number % 2 == 1),
             "well_known" if number % 2 else "card")
        for number, (name, key) in enumerate(zip(names, keys, strict=True))
    ]  # fmt: skip


_TENANTS: dict[str, dict[str, App]] = {}


def tenants(host: Site) -> dict[str, App]:
    """The apps of one origin by prefix."""
    return _TENANTS.setdefault(host.url, {})


def _with_proofs(app: App, host: Site, names: list[str]) -> App:
    """The origin's file names every tenant that has no proof of its own."""

    async def outer(scope: Scope, receive: Any, send: Any) -> None:
        if scope["path"] != "/.well-known/agent-registration.json":
            await app(scope, receive, send)
            return
        file = registration(host, Built([]))
        sites = [host.others[name] for name in names]
        file["registrations"] = [
            {"agentId": s.agent_id, "agentRegistry": s.registry} for s in sites
        ]
        await send_json(send, file)

    return outer


def several_kinds(site: Site) -> Built:
    """A card, tools and an API of one agent on one origin."""
    domain = DOMAINS["currency"]
    app = by_path(
        {
            "/rpc": (card := hand_made_a2a(site, face_of(domain), specialist("currency"))),
            "/.well-known/agent-card": card,
            "/mcp": HandMade(site, site.name, lambda _scope: [domain_tool(domain)]),
        },
        fastapi_service(site, domain),
    )
    services = [
        ("A2A", site.url + "/.well-known/agent-card.json"),
        ("MCP", site.url + "/mcp"),
        ("OpenAPI", site.url + "/openapi.json"),
    ]
    return Built(services, app)


def gradual_rollout(site: Site) -> Built:
    """Two versions of a page and of an extra field, by chance, as experiments do it."""
    inner = fastapi_service(site, DOMAINS["synonym"])
    dice = random.Random(site.name)

    async def app(scope: Scope, receive: Any, send: Any) -> None:
        if scope["path"] == "/":
            variant = dice.choice("AB")
            await send_json(send, {"service": "Thesaurus", "layout": variant})
        else:
            await inner(scope, receive, send)

    return Built([("REST API", site.url + "/openapi.json")], app)


def bot_wall(site: Site) -> Built:
    """Now and then a challenge page of the network in front."""
    inner, count = fastapi_service(site, DOMAINS["days"]), itertools.count(1)

    async def app(scope: Scope, receive: Any, send: Any) -> None:
        if next(count) % 23 == 0:
            page = HTMLResponse("<title>Just a moment...</title>Checking your browser.", 403)
            await page(scope, receive, send)
        else:
            await inner(scope, receive, send)

    return Built([("REST API", site.url + "/openapi.json")], app)


def mounted_below(site: Site) -> Built:
    """Everything under a version prefix; the root says nothing."""
    app = Starlette(routes=[Mount("/svc/v3", fastapi_service(site, DOMAINS["zone"]))])
    return Built([("REST API", site.url + "/svc/v3/openapi.json")], app)


def _h(name: str, build: Build, proof: Proof = "well_known", **more: Any) -> Spec:
    return Spec(more.pop("kind", "http"), name, "honest", build, proof, **more)


def _key(site: Site) -> Built:
    app = around(fastapi_service(site, DOMAINS["ticker"]), behind_key("k-3391"))
    return Built([("REST API", site.url + "/openapi.json")], app)


def _layered(key: str, layer: Any) -> Build:
    def build(site: Site) -> Built:
        app = around(fastapi_service(site, DOMAINS[key]), layer)
        return Built([("REST API", site.url + "/openapi.json")], app)

    return build


AGENTS = [
    _h("FastAPI rates", fastapi_at("currency", whole=True), "openapi"),
    _h("FastAPI by its root", fastapi_at("country")),
    _h("FastAPI trading", fastapi_at("ticker", "trading", whole=True), "openapi"),
    _h("Starlette without a document", starlette_at("recipe")),
    _h("Starlette colours", starlette_at("colour")),
    _h("aiohttp elements", on_aiohttp, "openapi", served=False),
    _h("WSGI weather", on_werkzeug, served=False),
    _h("Built-in server, lengths", on_stdlib, "openapi", served=False),
    _h("Below a prefix", mounted_below, "openapi"),
    _h("GraphQL atlas", graph_ql),
    _h("Three kinds of service", several_kinds),
    _h("Roll-out by chance", gradual_rollout, kind="nondeterministic"),
    _h("Behind a bot wall", bot_wall, kind="nondeterministic"),
    _h("Slow API", _layered("loan", slow(0.5, 1.0)), "openapi", kind="slow"),
    _h("Twenty API calls", _layered("circle", limited(20)), kind="rate limited"),
    _h("Closed API", _key, row="behind_auth", kind="behind auth"),
    _h("Seller with samples", seller("days", 1, 1, free_part=True), "payee", kind="x402"),
    _h("Seller with samples, new protocol", seller("zone", 0.5, 2, free_part=True), "payee",
       kind="x402"),
    _h("Seller", seller("ticker", 2, 1, free_part=False), "payee", kind="x402",
       row="payments_only"),
    _h("Seller, new protocol", seller("loan", 0.1, 2, free_part=False), "payee", kind="x402",
       row="payments_only"),
    _h("Shop front", with_browser_keys("colour", everywhere=False), kind="browser keys"),
    _h("Shop front with its own 404", with_browser_keys("synonym", everywhere=True), "openapi",
       kind="browser keys"),
    _h("Map front", with_browser_keys("zone", everywhere=True), kind="browser keys"),
    *shared_host("weather", "element", "currency", "country", "synonym"),
]  # fmt: skip
