"""Proof of function over plain HTTP: services as they show themselves without or beside a document.

Each works, or only looks so, in ways of its own.
"""

import random
from itertools import cycle
from typing import Annotated

import pytest
from fastapi import FastAPI, Query
from graphql import build_schema, graphql_sync
from pydantic import BaseModel, Field
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from assay.net.egress.client import GuardedHttp
from assay.registries.model import Service
from tests.probing.test_agents_function import proven
from tests.support.fakes import working_agents as agents


async def verdict(http: GuardedHttp, app: ASGIApp, path: str = "/") -> tuple[str, str]:
    async with agents.serving(lambda _: app) as base:
        [(_, state, why)] = await proven(http, Service("service", base + path))
    return state, why


def _index(page: str) -> Route:
    async def index(_request: Request) -> Response:
        return HTMLResponse(page)

    return Route("/", index)


async def _perimeter(request: Request) -> Response:
    side = float(request.query_params.get("side", "nan"))
    return JSONResponse({"perimeter": side * 6, "area": round(side * side * 2.598, 2)})


async def test_a_page_that_links_a_call_is_proven_by_it(http: GuardedHttp) -> None:
    page = "<h1>Hexagons</h1><a href='/hexagon?side=14'>a hexagon</a>"
    app = Starlette(routes=[_index(page), Route("/hexagon", _perimeter)])
    assert await verdict(http, app) == ("functional", "results_vary")


async def test_an_index_in_json_that_shows_a_call_is_proven_by_it(http: GuardedHttp) -> None:
    async def index(_request: Request) -> Response:
        return JSONResponse({"usage": ["GET /hexagon?side=14"]})

    app = Starlette(routes=[Route("/", index), Route("/hexagon", _perimeter)])
    assert await verdict(http, app) == ("functional", "results_vary")


async def test_pages_that_differ_by_their_address_stay_pages(http: GuardedHttp) -> None:
    async def article(request: Request) -> Response:
        return HTMLResponse(f"<p>Article {int(request.query_params['n']) * 7} of our journal</p>")

    app = Starlette(routes=[_index("<a href='/a?n=12'>older</a>"), Route("/a", article)])
    assert await verdict(http, app) == ("not_callable", "web_page")


async def test_a_call_that_is_always_answered_alike_proves_nothing(http: GuardedHttp) -> None:
    async def same(_request: Request) -> Response:
        return JSONResponse({"perimeter": 84, "area": 509.2})

    app = Starlette(routes=[_index("<a href='/hexagon?side=14'>x</a>"), Route("/hexagon", same)])
    assert await verdict(http, app) == ("not_callable", "web_page")


async def test_a_document_that_a_page_links_is_read(http: GuardedHttp) -> None:
    app = FastAPI(title="Hexagons", openapi_url="/spec/swagger-v1.json")

    @app.get("/", include_in_schema=False)
    async def index() -> Response:
        return HTMLResponse("<link rel='service-desc' href='/spec/swagger-v1.json'>")

    @app.get("/hexagon")
    async def hexagon(side: float) -> dict[str, float]:
        """Perimeter of a hexagon."""
        return {"perimeter": side * 6}

    assert await verdict(http, app) == ("functional", "results_vary")


def _gauge(noise: float) -> FastAPI:
    app = FastAPI(title="Gauge")
    wobble = cycle((0.9, -0.7, 0.1, -0.4, 0.6))

    @app.get("/level")
    async def level(depth: Annotated[float, Query(examples=[31])]) -> dict[str, float]:
        """Pressure at a depth."""
        return {"pressure": depth * 9.81 + noise * next(wobble)}

    return app


@pytest.mark.parametrize(("noise", "state"), [(0.4, "functional"), (9e6, "not_functional")])
async def test_what_is_made_up_does_not_come_again(
    http: GuardedHttp, noise: float, state: str
) -> None:
    found, _ = await verdict(http, _gauge(noise), "/openapi.json")
    assert found == state


class Message(BaseModel):
    """What is said."""

    message: str = Field(examples=["How many minutes are 14 hours?"])


def _chat(*, works: bool) -> FastAPI:
    app = FastAPI(title="Minutes", description="Says how many minutes some hours are.")

    @app.post("/chat")
    async def chat(said: Message) -> dict[str, str]:
        hours = [int(word) for word in said.message.split() if word.isdigit()]
        if not works:
            return {"reply": "Thanks, we are working on it and come back to you."}
        return {"reply": f"That makes {hours[0] * 60}." if hours else "How many hours?"}

    return app


@pytest.mark.parametrize(("works", "state"), [(True, "functional"), (False, "not_functional")])
@pytest.mark.parametrize("path", ["/chat", "/openapi.json"])
async def test_who_takes_messages_is_spoken_to(
    http: GuardedHttp, path: str, *, works: bool, state: str
) -> None:
    found, _ = await verdict(http, _chat(works=works), path)
    assert found == state


@pytest.mark.parametrize(("works", "state"), [(True, "functional"), (False, "not_functional")])
async def test_chat_completions_are_spoken_to(
    http: GuardedHttp, *, works: bool, state: str
) -> None:
    async def complete(request: Request) -> Response:
        asked = await request.json()
        if asked["model"] != "minutes-2":
            return JSONResponse({"error": {"message": "no such model"}}, 404)
        text = asked["messages"][-1]["content"]
        hours = [int(word) for word in text.split() if word.isdigit()]
        reply = f"That makes {hours[0] * 60}." if works and hours else "How many hours?"
        choice = {"index": 0, "message": {"role": "assistant", "content": reply}}
        return JSONResponse({"id": f"c{random.random()}", "choices": [choice]})

    async def models(_request: Request) -> Response:
        return JSONResponse({"data": [{"id": "minutes-2"}]})

    page = "<p>Hours as minutes. Ask e.g. <q>How many minutes are 14 hours?</q></p>"
    paths = "/v1/chat/completions", "/v1/models"
    routes = [_index(page), Route(paths[0], complete, methods=["POST"]), Route(paths[1], models)]
    found, _ = await verdict(http, Starlette(routes=routes), paths[0])
    assert found == state


async def test_graphql_behind_a_page_is_asked(http: GuardedHttp) -> None:
    schema = build_schema(
        "type Peak { title: String! metres: Int! }"
        " type Query { peaks(above: Int): [Peak!]! peak(title: String!): Peak }"
    )
    rows = [{"title": t, "metres": m} for t, m in (("Ruchen", 2901), ("Tierberg", 1989))]
    root = {
        "peaks": lambda _i, above=0: [row for row in rows if int(str(row["metres"])) > above],
        "peak": lambda _i, title: next((row for row in rows if row["title"] == title), None),
    }

    async def ask(request: Request) -> Response:
        if request.method == "GET":
            return HTMLResponse("<div id='graphiql'>Loading</div>")
        asked = await request.json()
        return JSONResponse(graphql_sync(schema, asked["query"], root).formatted)

    app = Starlette(routes=[Route("/data", ask, methods=["GET", "POST"])])
    assert await verdict(http, app, "/data") == ("functional", "results_vary")


async def test_what_a_refusal_names_is_asked_for_in_each_place(http: GuardedHttp) -> None:
    places = {"Aldren": 3, "Brackwater": 17, "Corvale": 40}
    app = FastAPI(title="Ferries")

    @app.get("/legs")
    async def legs(start: str, goal: str) -> Response:
        """Miles of a passage."""
        if start not in places or goal not in places:
            return PlainTextResponse(f"ports are {', '.join(places)}", 404)
        return JSONResponse({"miles": abs(places[start] - places[goal]) * 11})

    assert await verdict(http, app, "/openapi.json") == ("functional", "results_vary")


async def test_nothing_is_handed_in(http: GuardedHttp) -> None:
    handed: list[str] = []
    app = FastAPI(title="Office")

    @app.post("/slips")
    async def slips(said: Message) -> dict[str, int]:
        """Hand in a slip; you get its number."""
        handed.append(said.message)
        return {"number": len(handed)}

    assert (await verdict(http, app, "/openapi.json"))[0] == "unfinished"
    assert handed == []
