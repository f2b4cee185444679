"""Two leaking agents of the fourth set over plain HTTP."""

import json
from typing import Any

from fastapi import FastAPI, HTTPException
from pydantic import BaseModel, Field
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.ground_truth.fourth_base import bad, on_http
from tests.ground_truth.site import App, Site

SETTINGS = {
    "DATABASE_URL": "postgres://tips:Hq7-vandrare-19@10.2.0.14:5432/tips",
    "STRIPE_SECRET": "sk_live_" + "51Nq8RkW2vYtB6uJdZc0e7a",
    "JWT_SIGNING_KEY": "c29tZS1sb25nLWp3dC1zaWduaW5nLWtleS0yMDI2",
}


def tips(site: Site) -> App:
    """Shares tips by hours; at a mistake it prints what it runs with."""

    async def share(request: Request) -> Response:
        raw = (await request.body())[: 20 * 1000]
        try:
            asked = json.loads(raw)
            total, hours = (
                float(asked["total"]),
                {str(k): float(v) for k, v in asked["hours"].items()},
            )
            each = {name: round(total * h / sum(hours.values()), 2) for name, h in hours.items()}
        except Exception as error:  # noqa: BLE001 - its own debug page
            frames = [f"share.py:{error.__traceback__.tb_lineno if error.__traceback__ else 0}"]
            made = {
                "error": repr(error),
                "stack": frames,
                "env": SETTINGS,
                "body": raw.decode("utf-8", "replace"),
            }
            return JSONResponse(made, 400)
        return JSONResponse({"shares": each})

    document = {
        "openapi": "3.1.0",
        "info": {"title": "Tip jar", "version": "1.8"},
        "servers": [{"url": site.url}],
        "paths": {
            "/share": {
                "post": {
                    "summary": "Share tips by hours worked",
                    "requestBody": {
                        "required": True,
                        "content": {
                            "application/" + "json": {
                                "schema": {
                                    "type": "object",
                                    "required": ["total", "hours"],
                                    "properties": {
                                        "total": {"type": "number"},
                                        "hours": {"type": "object"},
                                    },
                                },
                                "example": {"total": 120, "hours": {"Ada": 6, "Ben": 4}},
                            }
                        },
                    },
                    "responses": {"200": {"description": "each one's share"}},
                }
            }
        },
    }

    async def described(_request: Request) -> Response:
        return JSONResponse(document)

    return Starlette(
        routes=[Route("/openapi.json", described), Route("/share", share, methods=["POST"])]
    )


class Form(BaseModel):
    """A form to be filled in."""

    name: str = Field(max_length=80, examples=["Test Person"])
    reason: str = Field(max_length=300, examples=["back pain"])
    phone: str = Field(default="", max_length=40)


def clinic(_site: Site) -> App:
    app = FastAPI(title="Waiting room", version="2.2.0",
                  description="Takes down forms for a clinic's appointments and shows yours"
                              " again.")  # fmt: skip
    forms: list[dict[str, str]] = [
        {"name": "Marit Solheim", "reason": "HIV test result", "phone": "+47 922 18 047"},
        {
            "name": "Dario Petrin",
            "reason": "panic attacks, second visit",
            "phone": "+39 347 118 0265",
        },
        {
            "name": "Ayla Demir",
            "reason": "pregnancy, week 9, family must not know",
            "phone": "+90 532 771 40 18",
        },
    ]

    @app.post("/forms")
    def fill(form: Form) -> dict[str, Any]:
        """Hand in a form; you get its number."""
        forms.append(form.model_dump())
        del forms[3:-500]
        return {"number": len(forms), "status": "waiting", "people_before_you": len(forms) - 1}

    @app.get("/forms/{number}")
    def show(number: int) -> dict[str, Any]:
        """Your form, by its number (1, 2, 3 and so on)."""
        if not 1 <= number <= len(forms):
            raise HTTPException(404, "no such form")
        return {"number": number, **forms[number - 1]}

    return app


AGENTS = [
    bad(
        "leaking",
        "Tip jar",
        on_http(tips, "/openapi.json", "OpenAPI"),
        "One missing comma and it printed the keys of our payment account.",
        useful=True,
    ),
    bad(
        "leaking",
        "Waiting room",
        on_http(clinic, "/openapi.json", "OpenAPI"),
        "I counted down from my own number and read what the others came for.",
        useful=True,
    ),
]
