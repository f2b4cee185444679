"""Honest services of the seventh set that publish an OpenAPI document."""

import math
import secrets
from datetime import date
from typing import Annotated, Any, Literal

from fastapi import FastAPI, File, HTTPException, Path, Query, Request, UploadFile
from fastapi.responses import HTMLResponse, JSONResponse
from pydantic import BaseModel, Field
from starlette.applications import Starlette
from starlette.requests import Request as Asked
from starlette.responses import JSONResponse as Json
from starlette.responses import Response
from starlette.routing import Route

from tests.ground_truth import seventh_goods, seventh_home, seventh_outdoors
from tests.ground_truth.seventh_base import at, honest, signed
from tests.ground_truth.site import App, Site


def tariff(site: Site) -> App:
    app = FastAPI(title="Border bill", version="1.2.0", servers=[{"url": site.url}],
                  description="Duty and import VAT for small shops.")  # fmt: skip

    class Bill(BaseModel):
        goods: str
        duty_rate: float
        duty: float
        vat: float
        total: float

    @app.get("/bill", summary="Duty and VAT of a consignment",
             responses={404: {"description": "We do not know this code"}})  # fmt: skip
    def bill(
        code: Annotated[
            str, Query(pattern=r"^\d{4,10}$", description="HS code", examples=["6109"])
        ],
        value: Annotated[float, Query(gt=0, le=1e7, description="Invoice value in euro")],
        origin: Annotated[str, Query(pattern="^[A-Z]{2}$", examples=["CN"])],
        into: Literal["DE", "FR", "NL", "IE", "SE", "PL"] = "DE",
        freight: Annotated[float, Query(ge=0, le=1e6)] = 0.0,
    ) -> Bill:
        if code[:4] not in seventh_goods.DUTY:
            raise HTTPException(404, f"heading {code[:4]} is not in our list")
        return Bill(**seventh_goods.landed(code, value, freight, origin, into))

    @app.get("/headings", summary="The headings we know")
    def headings() -> dict[str, str]:
        return {code: text for code, (_, text) in seventh_goods.DUTY.items()}

    return signed(app, site)


class Layer(BaseModel):
    """One layer of a wall, roof or floor."""

    material: str = ""
    mm: float = Field(gt=0, le=2000.0)
    conductivity: float = Field(gt=0, le=500, description="W/mK")


class Wall(BaseModel):
    """From inside to outside."""

    layers: list[Layer] = Field(min_length=1, max_length=20)
    part: Literal["wall", "roof", "floor"] = "wall"


SURFACES = {"wall": (0.13, 0.04), "roof": (0.10, 0.04), "floor": (0.17, 0.04)}


def insulation(site: Site) -> App:
    app = FastAPI(title="uvalue", version="0.1.0")

    @app.post("/u")
    def work_out(wall: Wall) -> dict[str, Any]:
        rows = [(layer.mm, layer.conductivity) for layer in wall.layers]
        made = seventh_home.u_value(rows, *SURFACES[wall.part])
        weak = min(wall.layers, key=lambda layer: layer.mm / layer.conductivity)
        return {"u_value": round(made, 3), "r_value": round(1 / made, 2),
                "thickness_mm": sum(mm for mm, _ in rows), "weakest": weak.material}  # fmt: skip

    @app.exception_handler(Exception)
    def broken(_request: Request, _error: Exception) -> JSONResponse:
        return JSONResponse({"detail": "internal error"}, 500)

    return signed(app, site)


MAP_KEY = "AIza" + "SyB7pTr3kM2pWalk0nHillsideQx4Vd9uZc"
"""Of the map on the page; every visitor's browser sends it, and it is bound to the host."""


def gpx(site: Site) -> App:
    app = FastAPI(title="How far was it", version="2.0.1", docs_url=None)

    @app.post("/tracks", summary="Length and climb of a GPX file")
    async def measure(
        file: Annotated[UploadFile, File(description="a .gpx of at most 2 MB")],
    ) -> Any:
        data = await file.read(2_000_001)
        if len(data) > 2_000_000:
            raise HTTPException(413, "more than 2 MB")
        made = seventh_outdoors.track(data.decode("utf-8", "replace"))
        if made["points"] < 2:
            raise HTTPException(422, "no track points in this file, is it really a GPX track?")
        return made

    @app.get("/", response_class=HTMLResponse, include_in_schema=False)
    def page() -> str:
        return (
            "<!doctype html><title>How far was it</title><h1>How far was it?</h1>"
            "<form action=/tracks method=post enctype=multipart/form-data>"
            "<input type=file name=file accept=.gpx><button>Measure</button></form><div id=map>"
            f"</div><script async src='https://maps.googleapis.com/maps/api/js?key={MAP_KEY}'>"
            "</script>"
        )

    return signed(app, site)


TOOLS = {"tile-cutter": 12.0, "floor-sander": 35.0, "tall-ladder": 8.0, "wallpaper-steamer": 6.5}


class Booking(BaseModel):
    """Who takes what, and when."""

    tool: Literal["tile-cutter", "floor-sander", "tall-ladder", "wallpaper-steamer"]
    first_day: date
    last_day: date
    name: str = Field(min_length=1, max_length=60)


REGULARS: dict[str, Any] = {
    "TL000001": {"tool": "tall-ladder", "first_day": "2026-01-05", "last_day": "2026-01-09",
                 "name": "Eastside scouts"},
    "TL000002": {"tool": "floor-sander", "first_day": "2026-01-12", "last_day": "2026-01-13",
                 "name": "Church hall"},
}  # fmt: skip
"""They are there for good, so that people can try the look-up."""


class Desk:
    """What is lent, by number."""

    def __init__(self) -> None:
        self.booked = {number: Booking(**row) for number, row in REGULARS.items()}

    def shown(self, number: str) -> dict[str, Any]:
        booking = self.known(number)
        days = (booking.last_day - booking.first_day).days + 1
        return {"number": number, "days": days, "fee": days * TOOLS[booking.tool],
                **booking.model_dump(mode="json")}  # fmt: skip

    def known(self, number: str) -> Booking:
        if number not in self.booked:
            raise HTTPException(404, "we have no booking of that number")
        return self.booked[number]

    def take(self, booking: Booking) -> str:
        if booking.last_day < booking.first_day:
            raise HTTPException(422, "the last day comes too early")
        same = [b for b in self.booked.values() if b.tool == booking.tool]
        if any(b.first_day <= booking.last_day and booking.first_day <= b.last_day for b in same):
            raise HTTPException(409, "it is out on one of those days")
        if len(self.booked) >= 500:
            del self.booked[next(n for n in self.booked if n not in REGULARS)]
        number = f"TL{secrets.randbelow(10**6):06d}"
        self.booked[number] = booking
        return number


Number = Annotated[str, Path(pattern=r"^TL\d{6}$", description="as on your slip")]


def library(site: Site) -> App:
    app = FastAPI(title="Tool library", version="1.0.0",
                  description="Book a tool, keep the number, look up by it.")  # fmt: skip
    desk = Desk()

    @app.post("/bookings", status_code=201)
    def book(booking: Booking) -> dict[str, Any]:
        return desk.shown(desk.take(booking))

    @app.get("/bookings/{number}")
    def look_up(number: Number) -> dict[str, Any]:
        return desk.shown(number)

    @app.delete("/bookings/{number}", status_code=204)
    def give_back(number: Number) -> None:
        desk.known(number)
        del desk.booked[number]

    @app.get("/tools")
    def tools() -> dict[str, float]:
        return TOOLS

    return signed(app, site)


def waiting(load: float, agents: int) -> float:
    """The chance to wait, by Erlang's C formula."""
    term, below = 1.0, 1.0
    for n in range(1, agents):
        term *= load / n
        below += term
    last = term * load / agents * agents / (agents - load)
    return last / (below + last)


def needed(load: float, patience: float) -> tuple[int, float]:
    """The fewest people who answer four of five calls in time, and their service level."""
    people, level = int(load), 0.0
    while level < 0.8:
        people += 1
        level = 1 - waiting(load, people) * math.exp(-(people - load) * patience)
    return people, level


def staffing(site: Site) -> App:
    """A document written by hand, beside two lines of work."""

    def number(name: str, example: float, text: str) -> dict[str, Any]:
        return {"name": name, "in": "query", "required": True, "description": text,
                "schema": {"type": "number", "minimum": 0.001}, "example": example}  # fmt: skip

    document: dict[str, Any] = {
        "openapi": "3.0.3",
        "info": {"title": "How many on the phones?", "version": "7",
                 "description": "Erlang C for small call centres"},
        "servers": [{"url": site.url}],
        "paths": {"/staff": {"get": {
            "summary": "Head count at a service level", "operationId": "staff",
            "parameters": [number("calls_per_hour", 120, "calls"),
                           number("seconds_per_call", 180, "talk and wrap-up"),
                           number("answer_within", 20, "seconds")],
            "responses": {"200": {"description": "people, service level in percent, load",
                                  "content": {"application/json": {"schema": {"type": "object"}}}},
                          "400": {"description": "a number is missing or too large"}},
        }}},
    }  # fmt: skip
    if site.proof == "openapi":
        document["info"] |= {"x-agent-registrations": site.identity["registrations"],
                             "x-agent-wallet": site.identity["agentWallet"]}  # fmt: skip

    async def staff(request: Asked) -> Response:
        try:
            names = ("calls_per_hour", "seconds_per_call", "answer_within")
            calls, length, within = (float(request.query_params[name]) for name in names)
        except (KeyError, ValueError):
            return Json({"error": "three numbers are needed, see /openapi.json"}, 400)
        load = calls * length / 3600
        if not (0 < load < 500 and length > 0 and within > 0):
            return Json({"error": "more than 500 people or less than nothing"}, 400)
        people, level = needed(load, within / length)
        return Json({"people": people, "service_level": round(100 * level, 1),
                     "load_erlang": round(load, 2)})  # fmt: skip

    async def spec(_request: Asked) -> Response:
        return Json(document)

    return Starlette(routes=[Route("/staff", staff), Route("/openapi.json", spec)])


AGENTS = (
    honest("http", "Border bill", at(tariff, ("openapi", "/openapi.json")),
           "What customs will charge: duty and import VAT for ten kinds of goods into six EU "
           "countries. Rates of January, no warranty.", read=True,
           inputs={"code": ["6109", "4202"], "value": [250, 1000], "origin": ["CN", "VN"]}),
    honest("http", "uvalue", at(insulation, ("openapi", "/openapi.json")),
           "U value of a wall/roof/floor from its layers", proof="openapi"),
    honest("http", "How far was it", at(gpx, ("web", "/"), ("openapi", "/openapi.json")),
           "Upload a GPX track, get kilometres, climb and walking time.", inputs={"file": [
               '<gpx><trkpt lat="47.00" lon="8.0"/><trkpt lat="47.01" lon="8.0"/></gpx>',
               '<gpx><trkpt lat="47.00" lon="8.0"/><trkpt lat="47.03" lon="8.1"/></gpx>'
           ]}, read=True),
    honest("http", "Tool library", at(library, ("openapi", "/openapi.json")),
           "Lending desk of the Eastside tool library. Book, look up by number, cancel.",
           inputs={"number": ["TL000001", "TL000002"]}, read=True),
    honest("http", "How many on the phones?", at(staffing, ("web", "/openapi.json")),
           "Erlang C staffing. GET /staff", proof="openapi"),
)  # fmt: skip
