"""The sixth set's honest services without OpenAPI: pages, an index, JSON-RPC, GraphQL, a chat."""

import asyncio
import datetime as dt
import json
import random
import re
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

from graphql import build_schema, graphql
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from tests.ground_truth.fourth_base import limited
from tests.ground_truth.site import App, Site
from tests.ground_truth.sixth_base import honest, plain_web
from tests.ground_truth.sixth_sums import barcode, check_digit, feries, moon, slug, working_days

Handler = Callable[[Request], Awaitable[Response]]


def page(html: str) -> Handler:
    async def show(_request: Request) -> Response:
        return HTMLResponse(f"<!doctype html><meta charset=utf-8>{html}")

    return show


def slugs(site: Site) -> App:
    """Texts for addresses."""

    async def made(request: Request) -> Response:
        text = (await request.body()).decode("utf-8", "replace")
        if not text.strip():
            return PlainTextResponse("empty body\n", 400)
        return PlainTextResponse("\n".join(slug(line) for line in text.splitlines()) + "\n")

    home = page(
        "<title>slugs</title><h1>slugs</h1><p>Turns headlines into the last part of an address, "
        "one to a line.</p>"
        f"<pre>curl -d 'Crème brûlée chez Øystein' {site.url}/slug\n"
        "creme-brulee-chez-oystein</pre><p>No key, no cookies, no logs.</p>"
    )
    return Starlette(routes=[Route("/", home), Route("/slug", made, methods=["POST"])])


OPENRPC = {
    "openrpc": "1.2.6",
    "info": {"title": "Barcode desk", "version": "2.0.0"},
    "methods": [
        {
            "name": "gtin.check", "summary": "Whether an EAN, UPC or GTIN holds",
            "params": [{"name": "code", "required": True, "schema": {"type": "string"},
                        "description": "8, 12, 13 or 14 digits; spaces and dashes are ignored"}],
            "result": {"name": "verdict", "schema": {"type": "object"}},
            "examples": [{"name": "good", "params": [{"name": "code", "value": "4006381333931"}]}],
        },
        {
            "name": "gtin.complete", "summary": "Adds the check digit",
            "params": [{"name": "digits", "required": True, "schema": {"type": "string"},
                        "description": "7, 11, 12 or 13 digits"}],
            "result": {"name": "code", "schema": {"type": "string"}},
        },
    ],
}  # fmt: skip


def argument(params: Any, name: str) -> str:
    """By its name, or the first of a list."""
    if isinstance(params, list):
        return "".join(str(one) for one in params[:1])
    return str(params.get(name, "")) if isinstance(params, dict) else ""


def run_method(method: Any, params: Any) -> Any:
    """ValueError for wrong values, LookupError for a method that is not there."""
    if method == "rpc.discover":
        return OPENRPC
    if method == "gtin.check":
        return barcode(argument(params, "code"))
    if method == "gtin.complete":
        first = argument(params, "digits")
        if not re.fullmatch(r"\d{7}|\d{11,13}", first):
            raise ValueError("digits: 7, 11, 12 or 13 digits are needed")
        return f"{first}{check_digit(first)}"
    raise LookupError("Method not found")


def desk(site: Site) -> App:
    """Check digits over JSON-RPC."""

    async def call(request: Request) -> Response:
        try:
            asked = json.loads(await request.body())
            number, method = asked.get("id"), asked["method"]
        except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
            error = {"code": -32600, "message": "Invalid Request"}
            return JSONResponse({"jsonrpc": "2.0", "id": None, "error": error}, 400)
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": number}
        try:
            answer["result"] = run_method(method, asked.get("params", {}))
        except ValueError as wrong:
            answer["error"] = {"code": -32602, "message": str(wrong)}
        except LookupError as wrong:
            answer["error"] = {"code": -32601, "message": str(wrong)}
        return JSONResponse(answer)

    asked = {"jsonrpc": "2.0", "id": 1, "method": "gtin.check", "params": {"code": "4006381333931"}}
    home = page(
        "<title>Barcode desk</title><h1>Barcode desk</h1><p>JSON-RPC 2.0 at <code>/rpc</code>, "
        "methods <code>gtin.check</code> and <code>gtin.complete</code>; "
        "<code>rpc.discover</code> describes them.</p>"
        f"<pre>curl {site.url}/rpc -d '{json.dumps(asked)}'</pre>"
    )
    return Starlette(routes=[Route("/", home), Route("/rpc", call, methods=["POST"])])


SCORES = (
    ("Evening on the fjord", "Solveig Brandt", "SATB", 4, True),
    ("Three market songs", "Tomé Arriaga", "SSA", 7, False),
    ("Psalm for low water", "Edda Lindqvist", "SATB", 6, True),
    ("The glassblower", "Tomé Arriaga", "TTBB", 5, False),
    ("Lullaby in seven", "Noor Haddad", "SSA", 3, True),
    ("Harvest round", "Solveig Brandt", "unison", 2, False),
)
CHOIR = build_schema('''
"""A score in our library."""
type Score { title: String!, composer: String!, voices: String!, minutes: Int!, sacred: Boolean! }
type Query {
  """Scores, filtered by what is given."""
  scores(voices: String, composer: String, longest: Int): [Score!]!
  """Voicings we have."""
  voices: [String!]!
}
''')


class Library:
    """The root of each query."""

    def voices(self, _info: Any) -> list[str]:
        return sorted({row[2] for row in SCORES})

    def scores(
        self, _info: Any, voices: str = "", composer: str = "", longest: int = 99
    ) -> list[dict[str, Any]]:
        keys = ("title", "composer", "voices", "minutes", "sacred")
        return [
            dict(zip(keys, row, strict=True)) for row in SCORES
            if voices in {"", row[2]} and composer.lower() in row[1].lower() and row[3] <= longest
        ]  # fmt: skip


def choir(_site: Site) -> App:
    """A choir's library over GraphQL."""

    async def query(request: Request) -> Response:
        try:
            asked = json.loads(await request.body())
            text, given = str(asked["query"]), asked.get("variables")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return JSONResponse({"errors": [{"message": "POST a body with a query"}]}, 400)
        made = await graphql(CHOIR, text, Library(), variable_values=given)
        body: dict[str, Any] = {"data": made.data}
        if made.errors:
            body["errors"] = [error.formatted for error in made.errors]
        return JSONResponse(body, 400 if made.data is None else 200)

    return Starlette(routes=[Route("/graphql", query, methods=["POST"])])


def holidays(site: Site) -> App:
    """Les jours fériés et les jours ouvrés."""

    async def index(_request: Request) -> Response:
        return JSONResponse({
            "service": "Jours ouvrés",
            "feries": f"{site.url}/feries/2026",
            "ouvres": f"{site.url}/ouvres?du=2026-05-01&au=2026-05-31",
        })  # fmt: skip

    async def year(request: Request) -> Response:
        number = request.path_params["year"]
        if not 1950 <= number <= 2199:
            return JSONResponse({"erreur": "année hors de 1950-2199"}, 422)
        return JSONResponse({day.isoformat(): name for day, name in feries(number).items()})

    async def span(request: Request) -> Response:
        try:
            first, last = (dt.date.fromisoformat(request.query_params[k]) for k in ("du", "au"))
        except (KeyError, ValueError):
            return JSONResponse({"erreur": "du et au : deux dates AAAA-MM-JJ"}, 422)
        if not 0 <= (last - first).days <= 3660:
            return JSONResponse({"erreur": "au doit suivre du, dix ans au plus"}, 422)
        return JSONResponse({"jours_ouvres": working_days(first, last)})

    return Starlette(routes=[
        Route("/", index), Route("/feries/{year:int}", year), Route("/ouvres", span),
    ])  # fmt: skip


LOAVES = {
    "broa": (3.2, "milho e centeio"), "papo-seco": (0.2, "trigo"),
    "bolo do caco": (1.8, "batata-doce"), "pastel de nata": (1.3, "ovos e leite"),
    "folar": (6.5, "ovos e canela"), "regueifa": (2.9, "trigo e manteiga"),
}  # fmt: skip


def aurora(text: str) -> str:
    """O que diz o balcão."""
    low = text.lower()
    named = [loaf for loaf in LOAVES if loaf in low or f"{loaf}s" in low]
    if named:
        return " ".join(
            f"{random.choice(('Temos', 'Hoje há', 'Sai agora do forno'))} {loaf}, a "
            f"{LOAVES[loaf][0]:.2f} €, com {LOAVES[loaf][1]}." for loaf in named
        )  # fmt: skip
    if re.search(r"hor|abre|fecha|aberto", low):
        return random.choice(("Abrimos das 6h30 às 19h, menos à segunda.",
                              "De terça a domingo, das 6h30 às 19h."))  # fmt: skip
    if re.search(r"tem|há|vend|lista|pão|quais|cardápio", low):
        return f"Fazemos {', '.join(LOAVES)}. Qual lhe apetece?"
    return random.choice(("Disso não sei, só percebo de pão. Quer saber o que temos hoje?",
                          "Olá! Pergunte-me por pão, preços ou horas."))  # fmt: skip


def bakery(site: Site) -> App:
    """A chat endpoint as many frontends expect it."""

    async def chat(request: Request) -> Response:
        try:
            asked = json.loads(await request.body())
            said = [m["content"] for m in asked["messages"] if m["role"] == "user"]
            text = str(said[-1])
        except (ValueError, KeyError, TypeError, IndexError, RecursionError):
            error = {"message": "falta uma mensagem do utilizador", "type": "bad_input"}
            return JSONResponse({"error": error}, 400)
        await asyncio.sleep(random.uniform(1.0, 1.6))
        choice = {"index": 0, "finish_reason": "stop",
                  "message": {"role": "assistant", "content": aurora(text)}}  # fmt: skip
        number = f"chatcmpl-{uuid.uuid4().hex[:20]}"
        return JSONResponse({"id": number, "object": "chat.completion",
                             "model": "aurora-balcao", "choices": [choice]})  # fmt: skip

    asks = [{"role": "user", "content": "Quanto custa a broa?"}]
    body = {"model": "aurora-balcao", "messages": asks}
    home = page(
        "<title>Padaria Aurora</title><h1>Padaria Aurora</h1><p>Fale com o nosso balcão:</p>"
        f"<pre>curl {site.url}/v1/chat/completions "
        f"--json '{json.dumps(body, ensure_ascii=False)}'</pre>"
    )
    return Starlette(
        routes=[Route("/", home), Route("/v1/chat/completions", chat, methods=["POST"])]
    )


def moons(site: Site) -> App:
    """The moon in a terminal."""

    async def show(request: Request) -> Response:
        try:
            day = dt.date.fromisoformat(request.path_params["day"])
        except ValueError:
            return PlainTextResponse("dates look like 2026-03-01\n", 404)
        phase, lit, drawn = moon(day)
        return PlainTextResponse(f"{day}  {phase}, {lit} % lit\n\n{drawn}\n")

    async def home(_request: Request) -> Response:
        return PlainTextResponse(
            f"Moon in your terminal\n\n  curl {site.url}/2026-03-01\n\nAny date will do.\n"
        )

    return limited(Starlette(routes=[Route("/", home), Route("/{day}", show)]), 50, 10.0)


AGENTS = (
    honest("http", "Slugs", plain_web(slugs), "Makes slugs of headlines."),
    honest("http", "Barcode desk", plain_web(desk), "Check digits of barcodes over JSON-RPC.",
           read=True, inputs={"code": ["4006381333931", "96385074"],
                              "digits": ["400638133393", "9638507"]}),
    honest("http", "Choir library", plain_web(choir, "/graphql", "graphql"), "Scores of a choir."),
    honest("http", "Jours ouvrés", plain_web(holidays), "Jours fériés et jours ouvrés en France."),
    honest("http", "Padaria Aurora", plain_web(bakery), "O balcão da padaria, em conversa."),
    honest("http", "Moon in a terminal", plain_web(moons), "Moon phases as text."),
)  # fmt: skip
