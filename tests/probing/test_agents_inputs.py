"""What an HTTP service is asked so that its answers can differ."""

import zlib
from collections.abc import Callable

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from assay.common.json import JsonObject
from assay.net.egress.client import GuardedHttp
from tests.probing.test_agents_function import state_of

Handler = Callable[[str], Response]


def api(answer: Handler, **argument: object) -> Callable[[str], ASGIApp]:
    """A documented operation with one argument of text."""
    given: JsonObject = {
        "name": "of",
        "in": "query",
        "required": True,
        "schema": {"type": "string"},
    }
    paths = {"/fee": {"get": {"summary": "What it costs.", "parameters": [{**given, **argument}]}}}

    def make(_base: str) -> ASGIApp:
        def asked(request: Request) -> Response:
            return answer(request.query_params.get("of", ""))

        def paper(_request: Request) -> Response:
            return JSONResponse({"openapi": "3.1.0", "info": {"title": "Post"}, "paths": paths})

        return Starlette(routes=[Route("/fee", asked), Route("/openapi.json", paper)])

    return make


def by_city(text: str) -> Response:
    """The number of parcels changes nothing; no two cities cost alike."""
    city = text.rpartition(" ")[2]
    return JSONResponse({"fee": f"{zlib.crc32(city.encode())} cents"})


def by_name(text: str) -> Response:
    prices = {"stamp": 110, "box": 250, "tube": 330}
    if text not in prices:
        return JSONResponse({"error": "no such thing", "things": sorted(prices)}, 404)
    return JSONResponse({"fee": f"{prices[text]} cents"})


@pytest.mark.parametrize("nonce", ["a", "b", "c", "d", "e"])
async def test_what_is_asked_next_differs_from_what_was_answered_alike(
    http: GuardedHttp, nonce: str
) -> None:
    app = api(by_city, example="Fee for 3 parcels from Lima to Oslo")
    assert await state_of(http, app, "API", "/openapi.json", nonce) == ("http", "functional")


@pytest.mark.parametrize("nonce", ["a", "b", "c"])
async def test_a_refusal_that_says_what_it_knows_is_asked_for_that(
    http: GuardedHttp, nonce: str
) -> None:
    assert await state_of(http, api(by_name), "API", "/openapi.json", nonce) == (
        "http",
        "functional",
    )


async def test_one_answer_to_whatever_is_listed_is_none(http: GuardedHttp) -> None:
    def listing(text: str) -> Response:
        if text not in {"stamp", "box"}:
            return JSONResponse({"things": ["stamp", "box"]}, 404)
        return JSONResponse({"fee": "ask us"})

    kind, state = await state_of(http, api(listing), "API", "/openapi.json")
    assert (kind, state != "functional") == ("http", True)


@pytest.mark.parametrize("nonce", ["a", "b", "c", "d"])
async def test_a_shown_call_is_varied_twice_and_not_once(http: GuardedHttp, nonce: str) -> None:
    def make(_base: str) -> ASGIApp:
        def asked(request: Request) -> Response:
            eggs = request.query_params.get("eggs", "")
            if not eggs.isdigit():
                return JSONResponse({"error": "how many"}, 400)
            return JSONResponse({"flour": f"{int(eggs) * 61} g"})

        return Starlette(routes=[Route("/dough", asked)])

    assert await state_of(http, make, "API", "/dough?eggs=4", nonce) == ("http", "functional")
