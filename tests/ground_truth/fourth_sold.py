"""Two honest GraphQL services and two honest x402 sellers of the fourth set."""

import asyncio
import base64
import json
import random
import re
import string
import time
from itertools import pairwise
from typing import Any

from eth_account import Account
from graphql import GraphQLError, build_schema, graphql_sync
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from tests.ground_truth.fourth_base import honest, on_http
from tests.ground_truth.site import App, Site

USDC = "0x036CbD53842c5426634e7929541eC2318f3dCF7e"
BARS, POEM = 2 * 1000, 5 * 1000
"""Prices in millionths of a dollar."""
LINES = {"1": ["Harbour", "Market", "Old Bridge", "University", "Hospital"],
         "2": ["Castle", "Market", "Theatre", "Station"],
         "5": ["Station", "Old Bridge", "Stadium", "Airport"]}  # fmt: skip
TRAMS = build_schema("""
"A line of the town's trams."
type Line { number: String! stops: [String!]! }
type Leg { line: String! from: String! to: String! stops: Int! }
type Query {
  lines: [Line!]!
  "The lines that stop here."
  stop(name: String!): [Line!]!
  "The way with the fewest stops, e.g. from Harbour to Airport."
  route(from: String!, to: String!): [Leg!]!
}
""")
CHEESES = [
    ("Comt\u00e9", "France", "cow", 8),
    ("Manchego", "Spain", "sheep", 6),
    ("Feta", "Greece", "sheep", 2),
    ("Gouda", "Netherlands", "cow", 4),
    ("Roquefort", "France", "sheep", 3),
    ("Parmigiano", "Italy", "cow", 24),
    ("Pecorino", "Italy", "sheep", 8),
    ("Cheddar", "England", "cow", 12),
    ("Halloumi", "Cyprus", "goat", 0),
    ("Gruy\u00e8re", "Switzerland", "cow", 6),
    ("Cabrales", "Spain", "cow", 4),
    ("Gjetost", "Norway", "goat", 0),
]
BOARD = build_schema("""
type Cheese { name: String! country: String! milk: String! months: Int! }
type Query {
  cheeses(country: String, milk: String, atLeastMonths: Int = 0, limit: Int = 20): [Cheese!]!
  cheese(name: String!): Cheese
}
""")


TRACKS = [
    (one, two, number)
    for number, stops in LINES.items()
    for one, two in (*pairwise(stops), *pairwise(stops[::-1]))
]


def joined(way: list[tuple[str, str, str]]) -> list[dict[str, Any]]:
    """Legs in place of single stops."""
    legs: list[dict[str, Any]] = []
    for line, first, last in way:
        if legs and legs[-1]["line"] == line:
            legs[-1] |= {"to": last, "stops": legs[-1]["stops"] + 1}
        else:
            legs.append({"line": line, "from": first, "to": last, "stops": 1})
    return legs


def ride(_info: Any, **asked: str) -> list[dict[str, Any]]:
    """Breadth first over stops."""
    start, goal = asked["from"], asked["to"]
    known = {stop for stops in LINES.values() for stop in stops}
    if not {start, goal} <= known:
        raise GraphQLError(f"stops are: {', '.join(sorted(known))}")
    ways: list[list[tuple[str, str, str]]] = [[]]
    seen = {start}
    while ways:
        way = ways.pop(0)
        here = way[-1][2] if way else start
        if here == goal:
            return joined(way)
        for one, two, number in TRACKS:
            if one == here and two not in seen:
                seen.add(two)
                ways.append([*way, (number, one, two)])
    return []


TRAM_ROOT = {
    "lines": [{"number": n, "stops": s} for n, s in LINES.items()],
    "stop": lambda _i, name: [{"number": n, "stops": s} for n, s in LINES.items() if name in s],
    "route": ride,
}


def board(_info: Any, country: str = "", milk: str = "", **more: int) -> list[dict[str, Any]]:
    rows = [dict(zip(("name", "country", "milk", "months"), row, strict=True)) for row in CHEESES]
    rows = [r for r in rows if not country or r["country"].lower() == country.lower()]
    rows = [r for r in rows if not milk or r["milk"] == milk.lower()]
    return [r for r in rows if r["months"] >= more["atLeastMonths"]][: max(0, more["limit"])]


def one_cheese(info: Any, name: str) -> dict[str, Any] | None:
    every = board(info, atLeastMonths=0, limit=99)
    return next((r for r in every if r["name"].lower() == name.lower()), None)


def graph(schema: Any, root: dict[str, Any], title: str, example: str) -> App:
    async def ask(request: Request) -> Response:
        if request.method == "GET" and "query" not in request.query_params:
            return HTMLResponse(f"<h1>{title}</h1><p>GraphQL. Try <code>{example}</code></p>")
        try:
            asked = dict(request.query_params) if request.method == "GET" else await request.json()
            query, values = str(asked["query"]), asked.get("variables") or None
        except (ValueError, KeyError, TypeError, RecursionError):
            return JSONResponse({"errors": [{"message": "a query is needed"}]}, 400)
        if len(query) > 8 * 1000:
            return JSONResponse({"errors": [{"message": "the query is too long"}]}, 413)
        made = graphql_sync(schema, query, root, variable_values=values)
        return JSONResponse(made.formatted, 400 if made.data is None and made.errors else 200)

    return Starlette(routes=[Route("/graphql", ask, methods=["GET", "POST"])])


def paid(site: Site, headers: Any, price: int) -> str:
    """Empty where a payment's signature holds; else what is wrong with it."""
    raw = headers.get("payment-" + "signature") or headers.get("x-payment")
    if not raw:
        return "payment is required"
    try:
        given = json.loads(base64.b64decode(raw, validate=True))["payload"]
        grant = given["authorization"]
        whole = {
            "types": {
                "EIP712Domain": [
                    {"name": "name", "type": "string"},
                    {"name": "version", "type": "string"},
                    {"name": "chainId", "type": "uint256"},
                    {"name": "verifyingContract", "type": "address"},
                ],
                "TransferWithAuthorization": [
                    {"name": n, "type": t}
                    for n, t in (
                        ("from", "address"),
                        ("to", "address"),
                        ("value", "uint256"),
                        ("validAfter", "uint256"),
                        ("validBefore", "uint256"),
                        ("nonce", "bytes32"),
                    )
                ],
            },
            "primaryType": "TransferWithAuthorization",
            "domain": {"name": "USDC", "version": "2", "chainId": 84532, "verifyingContract": USDC},
            "message": {k: int(v) if k.startswith("val") else v for k, v in grant.items()},
        }
        from eth_account.messages import encode_typed_data  # noqa: PLC0415 - only buyers need it

        signer = Account.recover_message(
            encode_typed_data(full_message=whole), signature=given["signature"]
        )
        fits = (
            signer.lower() == grant["from"].lower()
            and grant["to"].lower() == site.wallet.lower()
            and int(grant["value"]) >= price
            and int(grant["validBefore"]) > time.time()
        )
    except Exception:  # noqa: BLE001 - whatever a stranger sends, the answer is the same
        return "no readable payment"
    return "" if fits else "the payment does not fit this offer"


def offer(site: Site, path: str, about: str, price: int, *, new: bool, wrong: str) -> Response:
    """402 in either version of the protocol."""
    resource = {"url": site.url + path, "description": about, "mimeType": "application/" + "json"}
    terms = {"scheme": "exact", "asset": USDC, "payTo": site.wallet, "maxTimeoutSeconds": 120,
             "extra": {"name": "USDC", "version": "2"}}  # fmt: skip
    if new:
        body = {"x402Version": 2, "error": wrong, "resource": resource,
                "accepts": [terms | {"network": "eip155:84532", "amount": str(price)}]}  # fmt: skip
        packed = base64.b64encode(json.dumps(body).encode()).decode()
        return JSONResponse(body, 402, {"PAYMENT-REQUIRED": packed})
    old = terms | {"network": "base-sepolia", "maxAmountRequired": str(price),
                   "resource": resource["url"], "description": about,
                   "mimeType": resource["mimeType"]}  # fmt: skip
    return JSONResponse({"x402Version": 1, "error": wrong, "accepts": [old]}, 402)


WIDTHS = (
    "000110100 100100001 001100001 101100000 000110001 100110000 001110000 000100101 "
    "100100100 001100100 100001001 001001001 101001000 000011001 100011000 001011000 "
    "000001101 100001100 001001100 000011100 100000011 001000011 101000010 000010011 "
    "100010010 001010010 000000111 100000110 001000110 000010110 110000001 011000001 "
    "111000000 010010001 110010000 011010000 010000101 110000100 011000100 010010100"
)
CODE39 = dict(zip(string.digits + string.ascii_uppercase + "-. *", WIDTHS.split(), strict=True))


def bars(text: str) -> dict[str, Any] | None:
    upper = text.upper()
    if not upper or len(upper) > 40 or any(c not in CODE39 or c == "*" for c in upper):
        return None
    return {"text": upper, "code39": " ".join(CODE39[c] for c in f"*{upper}*"),
            "modules": (len(upper) + 2) * 16 - 1}  # fmt: skip


def barcodes(site: Site) -> App:
    async def index(_request: Request) -> Response:
        return HTMLResponse("<h1>Bars and gaps</h1><p>Code 39 as wide (1) and narrow (0)"
                            " elements. Free:"
                            " <a href='/sample'>/sample</a>. Any text: /code39?text=A-1 for"
                            " 0.002 USDC.")  # fmt: skip

    async def sample(_request: Request) -> Response:
        return JSONResponse(bars("SAMPLE"))

    async def sell(request: Request) -> Response:
        made = bars(request.query_params.get("text", "A-1"))
        if made is None:
            return JSONResponse({"error": "letters, digits, space, dash and dot; 40 at most"}, 400)
        wrong = paid(site, request.headers, BARS)
        if wrong:
            return offer(site, "/code39", "Code 39 of a text", BARS, new=True, wrong=wrong)
        return JSONResponse(made)

    return Starlette(routes=[Route("/", index), Route("/sample", sample), Route("/code39", sell)])


SILENT = r"(?<=[^aeiouyscxz])es$|(?<=[^aeiouytd])ed$|(?<=[^aeiouyl])e$"


def syllables(line: str) -> int:
    words = re.findall(r"[a-z]+", line.lower().replace("'", ""))
    return sum(max(1, len(re.findall(r"[aeiouy]+", re.sub(SILENT, "", word)))) for word in words)


def haiku(site: Site) -> App:
    async def line(request: Request) -> Response:
        text = request.query_params.get("text", "An old silent pond")[:300]
        return JSONResponse({"line": text, "syllables": syllables(text)})

    async def scan(request: Request) -> Response:
        wrong = paid(site, request.headers, POEM)
        if wrong:
            return offer(site, "/scan", "Metre of a whole poem", POEM, new=False, wrong=wrong)
        await asyncio.sleep(random.uniform(0.2, 0.6))
        poem = request.query_params.get("poem", "")[: 4 * 1000].splitlines()
        counts = [syllables(row) for row in poem if row.strip()]
        return JSONResponse({"syllables": counts, "haiku": counts == [5, 7, 5]})

    return Starlette(routes=[Route("/line", line), Route("/scan", scan, methods=["GET", "POST"])])


AGENTS = [
    honest("graphql", "Tram map", on_http(
        lambda _s: graph(TRAMS, TRAM_ROOT, "Tram map", ('{route(from: "Harbour", to:'
                                                       ' "Airport"){line to}}')),
        "/graphql", "graphql")),
    honest("graphql", "Cheese board", on_http(
        lambda _s: graph(BOARD, {"cheeses": board, "cheese": one_cheese}, "Cheese board",
                         '{cheeses(milk: "goat"){name country}}'), "/graphql", "GraphQL")),
    honest("x402", "Bars and gaps", on_http(barcodes, "/code39", "x402"), "payee"),
    honest("x402", "Haiku meter", on_http(haiku, "/scan", "x402"), "payee"),
]  # fmt: skip
