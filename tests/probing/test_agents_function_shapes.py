"""Proof of function of services that only show how they are called: addresses and command lines.

Each shape has its hollow twins: they say the same of themselves, and do no work.
"""

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from assay.net.egress.client import GuardedHttp
from tests.probing import test_agents_function as function
from tests.probing.test_agents_function import chances
from tests.support.fakes.http_shapes import HOLLOW, SHAPES, Handler, Shape

pytestmark = pytest.mark.slow


async def state_of(
    http: GuardedHttp, shape: Shape, handler: Handler | None = None, nonce: str = "one"
) -> str:
    app = shape.app(handler)
    return (await function.state_of(http, lambda _: app, "api", shape.declared, nonce))[1]


@pytest.mark.parametrize("nonce", ["one", "two"])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
async def test_a_service_is_proven_by_the_call_that_it_shows(
    http: GuardedHttp, shape: Shape, nonce: str
) -> None:
    assert await state_of(http, shape, nonce=nonce) == "functional"


@pytest.mark.parametrize("hollow", HOLLOW.values(), ids=HOLLOW.keys())
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
async def test_its_hollow_twin_is_not(http: GuardedHttp, shape: Shape, hollow: Handler) -> None:
    right = "not_callable" if isinstance(shape.says, str) else "not_functional"
    nonces = chances(made_up=hollow is HOLLOW["makes up"])
    assert right in [await state_of(http, shape, hollow, nonce=nonce) for nonce in nonces]


@pytest.mark.parametrize("nonce", ["one", "two", "three"])
@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("numbers in the declared path", b"/cf/355/113"),
        ("a linked list", b"db=61&db=64&db=70"),
        ("curl with a form", b"ring=48&cog=17"),
        ("curl with nested JSON", b'"rows": [3, 18, 7, 11], "options": {"factor": 6}'),
    ],
)
async def test_an_answer_prepared_for_what_is_shown_proves_nothing(
    http: GuardedHttp, name: str, shown: bytes, nonce: str
) -> None:
    async def prepared(request: Request) -> Response:
        asked = f"{request.url.path}?{request.url.query}".encode() + await request.body()
        return JSONResponse({"terms": [3, 7, 16] if shown in asked else [1, 2]})

    assert await state_of(http, SHAPES[name], prepared, nonce) != "functional"
