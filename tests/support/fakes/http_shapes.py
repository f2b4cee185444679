"""Small services without a document, each called in a way of its own, and what only looks so.

What a service says of itself stays the same in its hollow twins: only who answers differs.
"""

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import date
from math import gcd, hypot, log10
from statistics import median
from urllib.parse import parse_qsl, unquote

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from assay.common.json import JsonObject

Handler = Callable[[Request], Awaitable[Response]]

_random = random.Random(11)


async def echo(request: Request) -> Response:
    """Give back what was sent."""
    body = (await request.body()).decode()
    said = {"path": unquote(request.url.path), "query": unquote(request.url.query), "body": body}
    return JSONResponse(said)


async def template(request: Request) -> Response:
    """Put what was sent into a sentence."""
    body = (await request.body()).decode()
    asked = unquote(request.url.query) or unquote(request.url.path)
    return JSONResponse({"ok": True, "message": f"We have handled {body or asked} with care."})


async def measures(request: Request) -> Response:
    """Say how much was sent."""
    body = await request.body()
    sizes = len(body), len(request.url.query), len(request.url.path)
    return JSONResponse({"received": sizes[0], "query": sizes[1], "path": sizes[2]})


async def makes_up(_request: Request) -> Response:
    """Say any number."""
    return JSONResponse({"value": _random.randint(1, 10**6)})


async def always(_request: Request) -> Response:
    """Say one thing."""
    return JSONResponse({"value": 42, "unit": "cubits"})


HOLLOW: dict[str, Handler] = {
    "echo": echo,
    "template": template,
    "measures": measures,
    "makes up": makes_up,
    "always": always,
}


@dataclass(frozen=True)
class Shape:
    """A service: where it is declared and called, what it says of itself, and how it works."""

    declared: str
    route: str
    works: Handler
    says: str | JsonObject | None = None
    """Its home page, or index."""
    method: str = "GET"

    def app(self, handler: Handler | None = None) -> Starlette:
        """The service, or with another handler its twin."""

        async def index(_request: Request) -> Response:
            is_page = isinstance(self.says, str)
            return HTMLResponse(str(self.says)) if is_page else JSONResponse(self.says)

        methods = [self.method]
        routes = [Route(self.route, handler or self.works, methods=methods)]
        return Starlette(routes=routes + ([Route("/", index)] if self.says is not None else []))


def _refused(why: str, status: int = 400) -> Response:
    return JSONResponse({"error": why}, status)


async def _fraction(request: Request) -> Response:
    """Terms of a continued fraction."""
    over, under = int(request.path_params["p"]), int(request.path_params["q"])
    terms: list[int] = []
    while under:
        terms.append(over // under)
        over, under = under, over % under
    return JSONResponse({"terms": terms})


async def _sowing(request: Request) -> Response:
    """When to harvest what was sown on a day; of three crops."""
    days = {"rye": 290, "oats": 110, "flax": 95}.get(request.path_params["crop"])
    try:
        sown = date.fromisoformat(request.path_params["day"])
    except ValueError:
        return _refused("a day is written YYYY-MM-DD")
    if days is None:
        return _refused("no such crop", 404)
    return PlainTextResponse(f"cut on {date.fromordinal(sown.toordinal() + days)}")


async def _ladder(request: Request) -> Response:
    """How long a ladder has to be."""
    try:
        given = {n: float(request.query_params[n]) for n in ("wall", "foot")}
    except (KeyError, ValueError):
        return _refused("wall and foot are numbers of feet")
    return JSONResponse({"length": round(hypot(*given.values()), 3), "format": "feet"})


async def _loudness(request: Request) -> Response:
    """Several sources of sound together."""
    levels = [float(level) for level in request.query_params.getlist("db")]
    if len(levels) < 2:
        return _refused("give db at least twice")
    return JSONResponse({"sum": round(10 * log10(sum(10 ** (one / 10) for one in levels)), 2)})


async def _gear(request: Request) -> Response:
    """Gear inches of a bicycle, from a form."""
    given = dict(parse_qsl((await request.body()).decode()))
    if "form-urlencoded" not in request.headers.get("content-type", ""):
        return _refused("a form, please", 415)
    try:
        return PlainTextResponse(f"{27 * int(given['ring']) / int(given['cog']):.2f}")
    except (KeyError, ValueError):
        return _refused("ring and cog are teeth")


async def _vowels(request: Request) -> Response:
    """What is left of a text without its vowels, the last word first."""
    text = (await request.body()).decode()
    if "json" in request.headers.get("content-type", "") or not text.strip():
        return _refused("plain text, please", 415)
    bare = "".join(c for c in text if c.casefold() not in "aeiou")
    return PlainTextResponse(" ".join(reversed(bare.split())))


async def _middle(request: Request) -> Response:
    """The median of numbers, times a factor."""
    given = await request.json()
    try:
        return JSONResponse({"middle": median(given["rows"]) * given["options"]["factor"]})
    except (KeyError, TypeError):
        return _refused("rows and options, please", 422)


async def _bolts(request: Request) -> Response:
    """Teeth that two wheels meet after."""
    given = await request.json()
    try:
        one, other = int(given["one"]), given["other"]
        return JSONResponse({"turns": one * other // gcd(one, other)})
    except (KeyError, TypeError, ValueError):
        return _refused("one and other, please", 422)


async def _slope(request: Request) -> Response:
    """A slope in thousandths."""
    try:
        rise, run = (float(request.query_params[n]) for n in ("rise", "run"))
    except (KeyError, ValueError):
        return _refused("this way: ?rise=17&run=240")
    return JSONResponse({"thousandths": round(1000 * rise / run)})


SHAPES: dict[str, Shape] = {
    "numbers in the declared path": Shape("/cf/355/113", "/cf/{p:int}/{q:int}", _fraction),
    "a date in the declared path": Shape(
        "/v2/sown/rye/2031-04-07", "/v2/sown/{crop}/{day}", _sowing
    ),
    "a declared query": Shape("/ladder?wall=14&foot=3.5&format=feet", "/ladder", _ladder),
    "a declared list": Shape("/loud?db=60&db=70", "/loud", _loudness),
    "a linked list": Shape("/", "/loud", _loudness, "<a href='/loud?db=61&db=64&db=70'>three</a>"),
    "a linked path": Shape("/", "/cf/{p:int}/{q:int}", _fraction, "<a href='/cf/649/200'>pi</a>"),
    "an index that shows a path": Shape(
        "/", "/cf/{p:int}/{q:int}", _fraction, {"try": ["GET /cf/{p}/{q}", "GET /cf/649/200"]}
    ),
    "curl with a form": Shape(
        "/", "/gear", _gear,
        "<h1>Gears</h1><p>Calculates gear inches.</p><pre>curl -s -X POST \\\n"
        "  -d 'ring=48' -d 'cog=17' http://localhost:9000/gear</pre>", "POST",
    ),
    "curl with urlencoded parts": Shape(
        "/", "/gear", _gear,
        {"about": "Calculates gear inches.",
         "usage": "curl --data-urlencode ring=48 --data-urlencode 'cog=17' $BASE/gear"}, "POST",
    ),
    "curl with a text": Shape(
        "/", "/strip", _vowels,
        "<p>Returns a text without its vowels, from behind.</p><pre>$ curl --data-binary \\\n"
        "    'Seven herons crossed the quiet river' \\\n    -H 'Content-Type: text/plain' \\\n"
        "    https://your-host/strip</pre>", "POST",
    ),
    "curl that reads a pipe": Shape(
        "/", "/strip", _vowels,
        "<p>Returns a text without its vowels.</p>"
        "<pre>echo 'Herons cross the river' | curl --data-binary @- -H 'Content-Type: text/plain'"
        " http://localhost/strip</pre>", "POST",
    ),
    "curl with nested JSON": Shape(
        "/", "/v1/compute-median", _middle,
        "<pre>curl --json '{\n  \"rows\": [3, 18, 7, 11],\n  \"options\": {\"factor\": 6}\n}' \\\n"
        " https://api.example.com/v1/compute-median</pre>", "POST",
    ),
    "curl -G": Shape(
        "/", "/slope", _slope,
        {"example": "curl -G http://localhost:3000/slope -d rise=17 --data-urlencode 'run=240'"},
    ),
    "HTTPie with JSON": Shape(
        "/", "/lookup/teeth", _bolts,
        "<p>Finds the turns.</p><pre>http POST :8080/lookup/teeth one=14 other:=21</pre>", "POST",
    ),
    "HTTPie with a query": Shape(
        "/", "/slope", _slope, "<pre>http :8080/slope rise==17 run==240</pre>"
    ),
    "a refusal that shows a call": Shape("/slope", "/slope", _slope),
}  # fmt: skip
"""By how each is called."""
