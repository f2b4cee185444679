"""The sixth set's honest services that publish an OpenAPI document."""

import datetime as dt
from decimal import Decimal
from typing import Annotated, Any, Literal

from fastapi import FastAPI, HTTPException, Path, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from tests.ground_truth.fourth_base import limited
from tests.ground_truth.site import App, Site
from tests.ground_truth.sixth_base import honest, plain_web
from tests.ground_truth.sixth_sums import MUSEUMS, ZONES, highlights, opening, quote, repayment
from tests.ground_truth.web_parts import openapi_identity


class Parcel(BaseModel):
    """What is to be sent."""

    length_cm: float = Field(gt=0, le=200, examples=[40])
    width_cm: float = Field(gt=0, le=200, examples=[30])
    height_cm: float = Field(gt=0, le=200, examples=[25])
    weight_kg: float = Field(gt=0, le=60, examples=[3.4])
    zone: Literal["local", "country", "islands"] = "country"
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"length_cm": 40, "width_cm": 30, "height_cm": 25, "weight_kg": 3.4,
                 "zone": "islands"}
            ]
        }
    )  # fmt: skip


class Quote(BaseModel):
    """What it costs."""

    charged_kg: float
    price: Decimal
    currency: Literal["EUR"] = "EUR"


def carrier(_site: Site) -> App:
    """Prices of a parcel service."""
    app = FastAPI(title="Heron Parcels", version="3.4.0", description="Prices of our parcels: the "
                  "greater of weight and volume (cm³ / 6000) is charged.")  # fmt: skip

    async def price(parcel: Parcel) -> Quote:
        """Prices one parcel."""
        size = parcel.length_cm, parcel.width_cm, parcel.height_cm
        charged, cost = quote(size, parcel.weight_kg, parcel.zone)
        return Quote(charged_kg=charged, price=cost)

    async def zones() -> dict[str, dict[str, Decimal]]:
        """Base price and price per kilogram of each zone."""
        return {zone: {"base": base, "per_kg": each} for zone, (base, each) in ZONES.items()}

    app.post("/v2/quotes", summary="Price of a parcel", tags=["prices"])(price)
    app.get("/v2/zones", summary="Zones", tags=["prices"])(zones)
    return app


def lender(site: Site) -> App:
    """A loan calculator, as FastAPI makes it."""
    app = FastAPI(title="Loan sums")

    async def monthly(principal: float, rate: float, years: int) -> dict[str, float]:
        if principal <= 0 or years <= 0 or rate < 0 or years > 60:
            raise HTTPException(400, "principal and years must be positive")
        each = repayment(principal, rate, years * 12)
        return {"monthly": each, "total": round(each * years * 12, 2)}

    async def schedule(
        principal: float, rate: float, years: int, first: dt.date
    ) -> list[dict[str, Any]]:
        if not 0 < years <= 40 or principal <= 0 or rate < 0:
            raise HTTPException(400, "1 to 40 years, please")
        each, left = repayment(principal, rate, years * 12), principal
        rows: list[dict[str, Any]] = []
        for number in range(years * 12):
            interest = round(left * rate / 1200, 2)
            left = round(left + interest - each, 2)
            month = first.month - 1 + number
            due = f"{first.year + month // 12}-{month % 12 + 1:02d}"
            rows.append({"due": due, "interest": interest, "left": max(left, 0)})
        return rows

    app.get("/monthly")(monthly)
    app.get("/schedule")(schedule)
    plain = app.openapi
    app.openapi = lambda: openapi_identity(site, plain())
    return limited(app, 60, 10.0, ("/openapi.json", "/docs"))


def museums_document(site: Site) -> dict[str, Any]:
    """By hand, in Italian."""
    key = {"name": "id", "in": "path", "required": True, "description": "Sigla del museo",
           "schema": {"type": "string", "enum": list(MUSEUMS)}, "example": "vetro"}  # fmt: skip
    day = {"name": "data", "in": "query", "required": True, "description": "Giorno della visita",
           "schema": {"type": "string", "format": "date"}, "example": "2026-04-12"}  # fmt: skip
    answer = {
        "type": "object", "required": ["museo", "data", "aperto"],
        "properties": {
            "museo": {"type": "string"}, "data": {"type": "string", "format": "date"},
            "giorno": {"type": "string"}, "aperto": {"type": "boolean"},
            "orario": {"type": "string", "nullable": True},
        },
    }  # fmt: skip
    wrong: dict[str, Any] = {"description": "Richiesta errata", "content": {"application/json": {}}}
    return {
        "openapi": "3.0.3",
        "info": {"title": "Orari dei musei", "version": "1.2.0",
                 "description": "Giorni e orari di apertura di quattro piccoli musei."},
        "servers": [{"url": f"{site.url}/api"}],
        "paths": {
            "/musei": {"get": {
                "operationId": "elenco", "summary": "Tutti i musei",
                "responses": {"200": {"description": "Elenco"}},
            }},
            "/musei/{id}/orario": {"get": {
                "operationId": "orario", "summary": "Se un museo è aperto in un giorno",
                "parameters": [key, day],
                "responses": {
                    "200": {"description": "Orario",
                            "content": {"application/json": {"schema": answer}}},
                    "400": wrong, "404": wrong,
                },
            }},
        },
    }  # fmt: skip


def museums(site: Site) -> App:
    """Se i musei sono aperti."""

    async def document(_request: Request) -> JSONResponse:
        return JSONResponse(museums_document(site))

    async def listed(_request: Request) -> JSONResponse:
        return JSONResponse([{"id": k, "nome": n, "luogo": p} for k, (n, p, _) in MUSEUMS.items()])

    async def hours(request: Request) -> JSONResponse:
        key = request.path_params["key"]
        if key not in MUSEUMS:
            return JSONResponse({"errore": f"museo sconosciuto: {key[:40]}"}, 404)
        try:
            day = dt.date.fromisoformat(request.query_params.get("data", ""))
        except ValueError:
            return JSONResponse({"errore": "data: serve un giorno come 2026-04-12"}, 400)
        return JSONResponse(opening(key, day))

    return Starlette(routes=[
        Route("/openapi.json", document), Route("/api/musei", listed),
        Route("/api/musei/{key}/orario", hours),
    ])  # fmt: skip


class Reparatie(BaseModel):
    """Een fiets in de werkplaats."""

    bonnummer: str
    fiets: str
    stand: Literal["binnengekomen", "in behandeling", "wacht op onderdeel", "klaar", "opgehaald"]
    klaar_op: dt.date | None = None
    bedrag: Decimal | None = None


BIKES = {
    row.bonnummer: row
    for row in (
        Reparatie(bonnummer="RS-1042", fiets="bakfiets, rood", stand="wacht op onderdeel",
                  klaar_op=dt.date(2026, 4, 9)),
        Reparatie(bonnummer="RS-1043", fiets="omafiets", stand="klaar", bedrag=Decimal("64.50")),
        Reparatie(bonnummer="RS-1051", fiets="racefiets, carbon", stand="in behandeling"),
        Reparatie(bonnummer="RS-1057", fiets="vouwfiets", stand="opgehaald",
                  bedrag=Decimal("29.50")),
        Reparatie(bonnummer="RS-1060", fiets="kinderfiets 16 inch", stand="binnengekomen"),
    )
}  # fmt: skip


def workshop(_site: Site) -> App:
    """Hoe ver een reparatie is."""
    app = FastAPI(title="Fietsenmaker De Spaak", version="1.0.3",
                  description="Hoe ver uw reparatie is, op bonnummer.")  # fmt: skip

    async def repair(
        bonnummer: Annotated[str, Path(pattern=r"^RS-\d{4}$", description="Staat op de bon",
                                       examples=["RS-1043"])],
    ) -> Reparatie:  # fmt: skip
        if bonnummer not in BIKES:
            raise HTTPException(404, f"Bon {bonnummer} kennen wij niet.")
        return BIKES[bonnummer]

    async def tariff(
        werk: Annotated[
            Literal["band", "rem", "ketting", "beurt"], Query(description="Soort werk")
        ],
    ) -> dict[str, str]:
        prices = {"band": "17.50", "rem": "22.00", "ketting": "39.00", "beurt": "75.00"}
        return {"werk": werk, "prijs": prices[werk]}

    known: dict[int | str, dict[str, Any]] = {404: {"description": "Onbekende bon"}}
    app.get("/reparaties/{bonnummer}", summary="Stand van een reparatie", responses=known)(repair)
    app.get("/tarief", summary="Vaste prijs van een soort werk")(tariff)
    return app


class Review(BaseModel):
    """A text of a customer."""

    review: str = Field(min_length=10, max_length=2500, description="One review in English",
                        examples=["The fan is quiet but the cable is flimsy."])  # fmt: skip


class Highlights(BaseModel):
    """What was liked and what was not."""

    pros: list[str]
    cons: list[str]
    mood: Literal["positive", "mixed", "negative", "neutral"]


def reviews(_site: Site) -> App:
    """Liked and disliked."""
    app = FastAPI(title="Liked, disliked", version="0.8.1",
                  description="Pulls praise and complaints out of product reviews.",
                  openapi_url="/v1/openapi.json", docs_url=None, redoc_url=None)  # fmt: skip

    async def pull_out(text: Review) -> Highlights:
        """The clauses that praise, the clauses that complain, and the mood of the whole."""
        return Highlights.model_validate(highlights(text.review))

    app.post("/v1/highlights", summary="Praise and complaints of a review")(pull_out)
    return app


AGENTS = (
    honest("http", "Heron Parcels", plain_web(carrier, "/openapi.json", "openapi"),
           "Parcel prices by size, weight and zone.", read=True,
           inputs={"length_cm": [40, 60], "width_cm": [30, 40], "height_cm": [25, 35],
                   "weight_kg": [3.4, 12], "zone": ["local", "islands"]}),
    honest("http", "Loan sums", plain_web(lender), "Loan repayments.", proof="openapi"),
    honest("http", "Orari dei musei", plain_web(museums, "/openapi.json", "OpenAPI"),
           "Orari di apertura di quattro musei.", read=True,
           inputs={"id": ["vetro", "mare"], "data": ["2026-04-12", "2026-05-01"]}),
    honest("http", "De Spaak", plain_web(workshop), "Hoe ver uw fietsreparatie is.", read=True,
           inputs={"bonnummer": ["RS-1042", "RS-1043", "RS-1051"], "werk": ["band", "rem"]}),
    honest("http", "Liked, disliked", plain_web(reviews, "/v1/openapi.json", "web"),
           "Praise and complaints in reviews.", read=True,
           inputs={"review": ["The fan is quiet but the cable is flimsy.",
                              "Delicious bread, although the waiter was rude.",
                              "The chair is sturdy and the seat is not hard."]}),
)  # fmt: skip
