"""Sellers by x402: what a visit asks of them, and what it makes of it."""

import itertools
from collections.abc import Callable
from zlib import crc32

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from assay.net.egress.client import GuardedHttp
from assay.registries.model import Service
from tests.probing.test_agents_function import proven
from tests.support.fakes import working_agents as agents
from tests.support.fakes.trust import WALLET


def stall(
    *,
    free: bool = False,
    paid_first: int = 0,
    amounts: tuple[int, ...] = (50_000,),
    method: str = "GET",
) -> Callable[[str], ASGIApp]:
    """Sells `/v1/deep`; one documented operation may be free, behind others that are paid."""
    looks = itertools.chain(amounts, itertools.repeat(amounts[-1]))

    def make(base: str) -> ASGIApp:
        def demand(_request: Request) -> Response:
            offer = {
                "scheme": "exact", "network": "base", "maxAmountRequired": str(next(looks)),
                "asset": "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913", "payTo": WALLET,
                "resource": f"{base}/v1/deep", "maxTimeoutSeconds": 60,
            }  # fmt: skip
            return JSONResponse({"x402Version": 1, "error": "pay", "accepts": [offer]}, 402)

        def height(request: Request) -> Response:
            said = crc32(request.query_params.get("city", "").lower().encode()) % 4000
            return JSONResponse({"height": f"{said} m"})

        def paper(_request: Request) -> Response:
            city = {"name": "city", "in": "query", "required": True, "schema": {"type": "string"},
                    "example": "Oslo"}  # fmt: skip
            read = {"summary": "Height above the sea of a city.", "parameters": [city]}
            paths = {f"/v1/a{n}": {"get": read} for n in range(paid_first)}
            listed = {**paths, "/v1/deep": {"get": read}, "/v1/height": {"get": read}}
            return JSONResponse({"openapi": "3.1.0", "info": {"title": "Hill"}, "paths": listed})

        routes = [Route("/v1/deep", demand, methods=[method]), Route("/v1/a{n}", demand)]
        if free:
            routes = [Route("/v1/height", height), Route("/openapi.json", paper), *routes]
        return Starlette(routes=routes)

    return make


async def found(http: GuardedHttp, app: Callable[[str], ASGIApp]) -> tuple[str, str, str]:
    async with agents.serving(app) as base:
        [row] = await proven(http, Service("x402", f"{base}/v1/deep"))
    return row


async def test_a_seller_without_anything_free_is_closed_to_us(http: GuardedHttp) -> None:
    assert await found(http, stall()) == ("x402", "closed", "payment_needed")


async def test_what_is_sold_by_post_alone_is_heard_too(http: GuardedHttp) -> None:
    assert await found(http, stall(method="POST")) == ("x402", "closed", "payment_needed")


@pytest.mark.parametrize("paid", [0, 5])
async def test_a_free_operation_of_the_document_that_lists_the_paid_one_proves_it(
    http: GuardedHttp, paid: int
) -> None:
    app = stall(free=True, paid_first=paid)
    assert await found(http, app) == ("x402", "functional", "free_operations")


async def test_a_price_that_grows_by_the_look_is_no_price(http: GuardedHttp) -> None:
    app = stall(free=True, amounts=(2_000, 20_000, 200_000))
    assert await found(http, app) == ("x402", "not_functional", "price_moves")
