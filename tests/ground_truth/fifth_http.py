"""The fifth set's honest services on FastAPI and Starlette."""

import datetime as dt
import time
import uuid
from decimal import Decimal
from typing import Annotated, Any, Literal

from fastapi import Body, FastAPI, HTTPException, Query
from pydantic import BaseModel, Field
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)
from starlette.routing import Route

from tests.ground_truth.fifth_base import honest
from tests.ground_truth.fifth_sums import change, flock, louder, solar_term, truth_table
from tests.ground_truth.fourth_base import limited, on_http
from tests.ground_truth.site import App, Site
from tests.ground_truth.web_parts import openapi_identity


class Pile(BaseModel):
    """Coins or notes of one kind."""

    count: int
    value: str


def coins(site: Site) -> App:
    """Change, documented by FastAPI."""
    app = FastAPI(title="Small change", version="2.1",
                  description="Pays out an amount with the fewest notes and coins.")  # fmt: skip

    async def pay_out(
        amount: Annotated[Decimal, Query(gt=0, le=100_000, examples=["38.87"])],
        currency: Literal["EUR", "USD", "GBP", "CHF"] = "EUR",
    ) -> list[Pile]:
        cents = int((amount * 100).to_integral_value())
        if currency == "CHF":
            cents = 5 * round(cents / 5)
        return [Pile(count=n, value=f"{c / 100:.2f}") for n, c in change(cents, currency)]

    async def home() -> RedirectResponse:
        return RedirectResponse("/docs")

    app.get("/", include_in_schema=False)(home)
    app.get("/v1/change", summary="Fewest notes and coins for an amount")(pay_out)
    plain = app.openapi
    app.openapi = lambda: openapi_identity(site, plain())
    return app


class Shift(BaseModel):
    """One person's hours."""

    name: str = Field(examples=["Ada"])
    start: dt.datetime = Field(examples=["2026-05-04T08:00"])
    end: dt.datetime = Field(examples=["2026-05-04T16:00"])


class Clash(BaseModel):
    """Two shifts at the same time."""

    first: str
    second: str
    minutes: int


def shifts(_site: Site) -> App:
    """Overlaps among shifts."""
    app = FastAPI(title="Clashing shifts", version="0.8.1", docs_url="/", redoc_url=None)

    async def clashes(
        shifts: Annotated[list[Shift], Body(embed=True, max_length=200)],
    ) -> list[Clash]:
        """Every pair of shifts that overlap, and for how many minutes."""
        found: list[Clash] = []
        for n, one in enumerate(shifts):
            if one.end <= one.start:
                raise HTTPException(422, f"the shift of {one.name} ends before it starts")
            for two in shifts[n + 1 :]:
                both = min(one.end, two.end) - max(one.start, two.start)
                if both > dt.timedelta(0):
                    minutes = int(both.total_seconds() // 60)
                    found.append(Clash(first=one.name, second=two.name, minutes=minutes))
        return found

    app.post("/clashes")(clashes)
    return app


def decibels(_site: Site) -> App:
    """No document at all, only a page in plain words."""

    async def together(request: Request) -> Response:
        try:
            levels = [float(v) for v in request.query_params.getlist("db")]
        except ValueError:
            levels = []
        if not levels or max(levels) > 400:
            return PlainTextResponse("400: give db once or more, each in decibels\n", 400)
        return PlainTextResponse(f"{louder(levels)} dB\n")

    async def home(_request: Request) -> Response:
        return PlainTextResponse(
            "LOUDER TOGETHER\n\nHow loud are several machines at once? Levels do not add like "
            "numbers.\n\n  GET /sum?db=60&db=60     -> 63.0 dB\n  GET /sum?db=85&db=70&db=72\n"
        )

    return Starlette(routes=[Route("/", home), Route("/sum", together)])


PFAND = {"einweg": 25, "mehrweg_bier": 8, "mehrweg_wasser": 15, "kasten": 150}


class Leergut(BaseModel):
    """Was zurückgegeben wird."""

    einweg: int = Field(0, ge=0, description="Dosen und Einwegflaschen", examples=[6])
    mehrweg_bier: int = Field(0, ge=0, description="Bierflaschen", examples=[20])
    mehrweg_wasser: int = Field(0, ge=0, description="Wasserflaschen (PET, Glas)")
    kasten: int = Field(0, ge=0, description="leere Kästen", examples=[1])


def deposit(site: Site) -> App:
    """German deposits on bottles."""
    app = FastAPI(title="Pfandbon", version="1.0", root_path_in_servers=False,
                  description="Rechnet aus, wie viel Pfand es für Leergut gibt.")  # fmt: skip

    async def bon(leergut: Leergut) -> dict[str, str]:
        cents = sum(PFAND[sort] * many for sort, many in leergut.model_dump().items())
        return {"pfand": f"{cents // 100},{cents % 100:02d} €"}

    async def rates() -> dict[str, str]:
        return {sort: f"0,{cents:02d}" if cents < 100 else "1,50" for sort, cents in PFAND.items()}

    app.post("/bon", summary="Pfand für eine Rückgabe")(bon)
    app.get("/saetze", summary="Pfandbeträge je Stück")(rates)
    plain = app.openapi
    app.openapi = lambda: openapi_identity(site, plain())
    return app


def terms(site: Site) -> App:
    """Chinese solar terms, with a document written by hand."""
    day = {"name": "date", "in": "query", "required": True, "description": "公历日期 YYYY-MM-DD",
           "schema": {"type": "string", "format": "date"}, "example": "2026-06-21"}  # fmt: skip
    texts = {name: {"type": "string"} for name in ("date", "jieqi")}
    found = {"schema": {"type": "object", "properties": texts}}
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "廿四节气", "version": "1",
                 "description": "查询某一天属于哪个节气\uff08北京时间\uff09\u3002"},
        "servers": [{"url": site.url}],
        "paths": {"/jieqi": {"get": {
            "operationId": "jieqi", "summary": "查节气", "parameters": [day],
            "responses": {"200": {"description": "节气", "content": {"application/json": found}}},
        }}},
    }  # fmt: skip

    async def find(request: Request) -> Response:
        try:
            asked = dt.date.fromisoformat(request.query_params.get("date", ""))
        except ValueError:
            return JSONResponse({"error": "日期格式应为 YYYY-MM-DD"}, 400)
        return JSONResponse({"date": asked.isoformat(), "jieqi": solar_term(asked)})

    async def openapi(_request: Request) -> Response:
        return JSONResponse(openapi_identity(site, document))

    async def home(_request: Request) -> Response:
        return HTMLResponse(
            "<title>廿四节气</title><p>节气查询 API\uff0c文档见 <a href='/openapi.json'>OpenAPI</a>"
        )

    routes = [Route("/jieqi", find), Route("/openapi.json", openapi), Route("/", home)]
    return Starlette(routes=routes)


class Logic(BaseModel):
    """A formula."""

    formula: str = Field(max_length=200, examples=["(p -> q) & p", "not a or b"])


def logic(_site: Site) -> App:
    """Truth tables, forty calls a minute."""
    app = FastAPI(
        title="Truth tables",
        version="3.0.0",
        description="Evaluates formulas of propositional logic in up to five variables. "
        "Signs: ! & ^ | -> <-> or the words not, and, xor, or, implies, iff.",
    )

    async def table(logic: Logic) -> dict[str, Any]:
        try:
            return truth_table(logic.formula)
        except (ValueError, RecursionError) as wrong:
            raise HTTPException(400, str(wrong)) from wrong

    app.post("/table", summary="For which values a formula is true")(table)
    return limited(app, 40, 60.0, free=("/openapi.json", "/docs"))


def chat(_site: Site) -> App:
    """A model's interface in front of a very small model."""

    async def complete(request: Request) -> Response:
        try:
            body = await request.json()
            asked = [m["content"] for m in body["messages"] if m["role"] == "user"][-1]
        except (ValueError, KeyError, TypeError, IndexError):
            return JSONResponse({"error": {"message": "messages: at least one of a user",
                                           "type": "invalid_request_error"}}, 400)  # fmt: skip
        said = flock(str(asked))
        return JSONResponse({
            "id": f"chatcmpl-{uuid.uuid4().hex[:16]}", "object": "chat.completion",
            "created": int(time.time()), "model": "venery-1",
            "choices": [{"index": 0, "finish_reason": "stop",
                         "message": {"role": "assistant", "content": said}}],
            "usage": {"prompt_tokens": len(str(asked)) // 4, "completion_tokens": len(said) // 4,
                      "total_tokens": (len(str(asked)) + len(said)) // 4},
        })  # fmt: skip

    async def models(_request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [{"id": "venery-1", "object": "model"}]})

    async def home(_request: Request) -> Response:
        return JSONResponse(
            {
                "about": "Tells what a group of animals is called.",
                "ask": "POST /v1/chat/completions, model venery-1",
                "try": ["What is a group of owls called?", "a flock of crows"],
            }
        )

    return Starlette(routes=[
        Route("/v1/chat/completions", complete, methods=["POST"]),
        Route("/v1/models", models), Route("/", home),
    ])  # fmt: skip


AGENTS = (
    honest("http", "Small change", on_http(coins), "openapi"),
    honest("http", "Clashing shifts", on_http(shifts)),
    honest("http", "Louder together", on_http(decibels)),
    honest("http", "Pfandbon", on_http(deposit, "/openapi.json", "OpenAPI"), "openapi"),
    honest("http", "廿四节气", on_http(terms)),
    honest("http", "Truth tables", on_http(logic, "/openapi.json", "api")),
    honest("http", "Parliament of owls", on_http(chat)),
)
