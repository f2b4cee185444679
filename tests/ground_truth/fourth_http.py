"""Eight honest HTTP services of the fourth set: with documents, without, behind index pages."""

import asyncio
import hashlib
import random
import re
import time
import uuid
from typing import Annotated

from fastapi import FastAPI, Query
from pydantic import BaseModel, Field
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from tests.ground_truth.fourth_advice import LAUNDRY, PETS, TRIPS
from tests.ground_truth.fourth_base import honest, limited, on_http
from tests.ground_truth.fourth_http_tongues import signed
from tests.ground_truth.site import App, Site


class Discount(BaseModel):
    """A price cut."""

    price: float
    off_percent: float
    you_pay: float = Field(description="rounded to cents")
    you_save: float


def price_tags(site: Site) -> App:
    app = FastAPI(title="Price tags", version="2.1.0",
                  description="Discounts, chained discounts and the original price.")  # fmt: skip

    @app.get(
        "/discount",
        summary="Price after a discount",
        responses={
            200: {
                "content": {
                    "application/" + "json": {
                        "example": {
                            "price": 80,
                            "off_percent": 15,
                            "you_pay": 68.0,
                            "you_save": 12.0,
                        }
                    }
                }
            }
        },
    )
    def discount(
        price: Annotated[float, Query(gt=0, examples=[80])],
        off: Annotated[float, Query(ge=0, le=100, description="percent", examples=[15])],
    ) -> Discount:
        pays = round(price * (1 - off / 100), 2)
        return Discount(price=price, off_percent=off, you_pay=pays, you_save=round(price - pays, 2))

    @app.get("/original", summary="Price before a discount")
    def original(
        paid: Annotated[float, Query(gt=0, examples=[68])],
        off: Annotated[float, Query(ge=0, lt=100, examples=[15])],
    ) -> dict[str, float]:
        return {"original": round(paid / (1 - off / 100), 2)}

    return signed(app, site)


class Said(BaseModel):
    """A chat message."""

    message: str = Field(max_length=4 * 1000, examples=["How much should my 12 kg dog eat?"])


class Told(BaseModel):
    """The reply."""

    reply: str


def pet_bowl(_site: Site) -> App:
    app = FastAPI(title="Bowl and biscuit", version="0.4.0",
                  description="Chat about how many calories a dog or cat needs a day.")  # fmt: skip

    @app.post("/chat")
    async def chat(said: Said) -> Told:
        await asyncio.sleep(random.uniform(0.5, 2.0))
        return Told(reply=PETS.think(said.message))

    return app


def slug_press(_site: Site) -> App:
    page = """<!doctype html><html lang="en"><title>Slug press</title><h1>Slug press</h1>
<p>Turns titles into slugs for web addresses. Try
<a href="/slug?text=Crème brûlée, at last!">/slug?text=Crème brûlée, at last!</a>
or with another sign between words: <a href="/slug?text=Two words&amp;sep=_">&amp;sep=_</a></p>"""

    def slug(request: Request) -> Response:
        text, sep = request.query_params.get("text", ""), request.query_params.get("sep", "-")
        if not text or len(text) > 500 or sep not in {"-", "_", "."}:
            return PlainTextResponse(
                "text= is needed (500 characters at most); sep is - _ or .", 400
            )
        from unicodedata import normalize  # noqa: PLC0415 - here alone

        plain = normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
        return PlainTextResponse(re.sub(r"[^a-z0-9]+", sep, plain).strip(sep))

    async def index(_request: Request) -> Response:
        return HTMLResponse(page)

    return Starlette(routes=[Route("/", index), Route("/slug", slug)])


def hash_office(site: Site) -> App:
    names = ("md5", "sha1", "sha256", "sha512")
    document = {
        "openapi": "3.0.3",
        "info": {"title": "Hash office", "version": "1"},
        "servers": [{"url": site.url}],
        "paths": {
            "/hash/{algorithm}": {
                "get": {
                    "operationId": "hashText",
                    "summary": "Digest of a text (UTF-8), in hexadecimal",
                    "parameters": [
                        {
                            "name": "algorithm",
                            "in": "path",
                            "required": True,
                            "schema": {"type": "string", "enum": list(names)},
                            "example": "sha256",
                        },
                        {
                            "name": "text",
                            "in": "query",
                            "required": True,
                            "schema": {"type": "string"},
                            "example": "hello",
                        },
                    ],
                    "responses": {
                        "200": {
                            "description": "the digest",
                            "content": {
                                "application/" + "json": {
                                    "schema": {
                                        "type": "object",
                                        "properties": {
                                            "algorithm": {"type": "string"},
                                            "hex": {"type": "string"},
                                        },
                                    }
                                }
                            },
                        },
                        "404": {"description": "no such algorithm"},
                    },
                }
            }
        },
    }

    async def index(_request: Request) -> Response:
        return HTMLResponse('<html><head><link rel="service-desc" href="/docs/openapi.json"></head>'
                            '<body><h1>Hash office</h1><a href="/docs/openapi.json">API</a></body>'
                            "</html>")  # fmt: skip

    async def described(_request: Request) -> Response:
        return JSONResponse(document)

    async def digest(request: Request) -> Response:
        name, text = request.path_params["algorithm"], request.query_params.get("text")
        if name not in names:
            return JSONResponse({"error": f"choose one of {', '.join(names)}"}, 404)
        if text is None:
            return JSONResponse({"error": "the query parameter text is missing"}, 400)
        return JSONResponse(
            {"algorithm": name, "hex": hashlib.new(name, text.encode()).hexdigest()}
        )

    return Starlette(routes=[Route("/", index), Route("/docs/openapi.json", described),
                             Route("/hash/{algorithm}", digest)])  # fmt: skip


def footprint(_site: Site) -> App:
    """Speaks as the well-known chat interface does."""
    page = ("<h1>Trip footprint</h1><p>POST /v1/chat/completions with model trip-1 and messages."
            " Ask how much CO2 a journey makes, e.g. <i>300 km by train</i>.</p>")  # fmt: skip

    async def index(_request: Request) -> Response:
        return HTMLResponse(page)

    async def models(_request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [{"id": "trip-1", "object": "model"}]})

    async def complete(request: Request) -> Response:
        try:
            asked = await request.json()
            rows = [m["content"] for m in asked["messages"] if m["role"] == "user"]
            said = TRIPS.think(str(rows[-1]))
        except (ValueError, KeyError, TypeError, IndexError, RecursionError):
            wrong = {
                "message": "messages with a user's content are needed",
                "type": "invalid_request",
            }
            return JSONResponse({"error": wrong}, 400)
        await asyncio.sleep(random.uniform(1, 3))
        choice = {"index": 0, "finish_reason": "stop",
                  "message": {"role": "assistant", "content": said}}  # fmt: skip
        return JSONResponse({
            "id": f"chatcmpl-{uuid.uuid4().hex[:12]}", "object": "chat.completion",
            "created": int(time.time()), "model": "trip-1", "choices": [choice],
            "usage": {"prompt_tokens": len(str(rows)) // 4, "completion_tokens": len(said) // 4},
        })  # fmt: skip

    return Starlette(
        routes=[
            Route("/", index),
            Route("/v1/models", models),
            Route("/v1/chat/completions", complete, methods=["POST"]),
        ]
    )


class Question(BaseModel):
    """A question in your own words."""

    question: str = Field(min_length=1, max_length=1000, examples=["How do I wash a wool jumper?"])


def laundry(_site: Site) -> App:
    app = FastAPI(title="Laundry line", version="1.0.0", description="Care of fabrics.")

    @app.post("/ask")
    async def ask(asked: Question) -> dict[str, str]:
        """How to wash, dry and iron a fabric, or take out a stain."""
        await asyncio.sleep(random.uniform(2, 5))
        return {"answer": LAUNDRY.think(asked.question)}

    return limited(app, 30, 60, ["/openapi.json"])


AGENTS = [
    honest("http", "Price tags", on_http(price_tags, "/openapi.json", "api"), "openapi"),
    honest("http", "Bowl and biscuit", on_http(pet_bowl, "/chat", "chat")),
    honest("http", "Slug press", on_http(slug_press)),
    honest("http", "Hash office", on_http(hash_office, "/", "REST API")),
    honest("http", "Trip footprint", on_http(footprint, "/v1/chat/completions", "chat")),
    honest("http", "Laundry line", on_http(laundry, "/", "assistant")),
]
