"""Honest sellers of the seventh set: some on x402's middleware, some with a till of their own."""

import base64
import json
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import FastAPI, Query
from fastapi.responses import HTMLResponse, PlainTextResponse, Response
from pydantic import BaseModel, Field
from x402.schemas import PaymentPayload, PaymentRequirements

from tests.ground_truth import seventh_goods, seventh_home, seventh_outdoors, seventh_play
from tests.ground_truth.seventh_base import at, honest, parsed, query, signed
from tests.ground_truth.site import App, Scope, Site, header, read, send_json
from tests.ground_truth.sixth_till import NETWORK, Till, charged

USDC = "0x036CbD53842c5426634e7929541eC2318f3dCF7e"


class Job(BaseModel):
    """What has to be sawn, in millimetres."""

    board: int = Field(gt=0, le=20_000)
    pieces: list[Annotated[int, Field(gt=0)]] = Field(min_length=1, max_length=200)
    kerf: int = Field(default=3, ge=0, le=20)


def sawmill(site: Site) -> App:
    app = FastAPI(title="Cut list", version="1.0.0",
                  description="Cutting plans, paid by x402. /example is free.")  # fmt: skip

    def plan(job: Job) -> dict[str, Any]:
        boards = seventh_home.cut_list(job.board, job.pieces, job.kerf)
        used = sum(job.pieces) / (job.board * len(boards))
        return {"boards": len(boards), "cuts": boards, "used_percent": round(100 * used, 1)}

    @app.post("/cuts", responses={402: {"description": "A cent, by x402"}})
    def cuts(job: Job) -> dict[str, Any]:
        if max(job.pieces) > job.board:
            return {"error": "a piece is longer than the board"}
        return plan(job)

    @app.get("/example")
    def example() -> dict[str, Any]:
        return plan(Job(board=2400, pieces=[1200, 1200, 800, 800, 700]))

    prices = {"POST /cuts": ("$0.01", "A cutting plan")}
    return charged(signed(app, site), site.wallet, prices)


Sell = Callable[[Any], dict[str, Any]]


class Stall:
    """A till written by hand: asks in the header and in the body, and takes a signed transfer."""

    def __init__(self, site: Site, path: str, cents: int, work: Sell, about: str) -> None:
        self.site, self.path, self.work, self.about = site, path, work, about
        self.till, self.amount = Till(), str(cents * 10_000)

    @property
    def wanted(self) -> dict[str, Any]:
        return {"scheme": "exact", "network": NETWORK, "amount": self.amount, "asset": USDC,
                "payTo": self.site.wallet, "maxTimeoutSeconds": 120,
                "extra": {"name": "USDC", "version": "2"}}  # fmt: skip

    async def ask(self, send: Any, why: str = "payment needed") -> None:
        resource = {"url": self.site.url + self.path, "description": self.about,
                    "mimeType": "application/json"}  # fmt: skip
        body = {"x402Version": 2, "error": why, "resource": resource, "accepts": [self.wanted]}
        packed = base64.b64encode(json.dumps(body).encode()).decode()
        await send_json(send, body, 402, {"payment-required": packed})

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if scope["path"] != self.path:
            about = {"about": self.about, "paid": self.path, "price_usd": int(self.amount) / 1e6}
            found = scope["path"] == "/"
            return await send_json(
                send, about if found else {"error": "nope"}, 200 if found else 404
            )
        body = await read(receive)
        signature = header(scope, "payment-signature")
        if not signature:
            return await self.ask(send)
        try:
            paid = PaymentPayload.model_validate_json(base64.b64decode(signature))
        except ValueError:
            return await self.ask(send, "unreadable payment")
        due = PaymentRequirements.model_validate(self.wanted)
        checked = await self.till.verify(paid, due)
        if not checked.is_valid:
            return await self.ask(send, str(checked.invalid_reason))
        try:
            made = self.work(parsed(body) if body else query(scope))
        except (ValueError, LookupError, TypeError, ArithmeticError):
            return await send_json(send, {"error": "not understood, nothing was charged"}, 422)
        settled = (await self.till.settle(paid, due)).model_dump_json(by_alias=True)
        receipt = base64.b64encode(settled.encode()).decode()
        return await send_json(send, made, headers={"payment-response": receipt})


def golf(given: Any) -> dict[str, Any]:
    rows = [(float(r["score"]), float(r["rating"]), int(r["slope"])) for r in given["rounds"]]
    if not 3 <= len(rows) <= 100:
        raise ValueError
    index, differentials = seventh_play.handicap(rows)
    return {"index": index, "differentials": differentials}


class Round(BaseModel):
    """One round of golf."""

    score: int = Field(ge=50, le=180, examples=[88])
    rating: float = Field(ge=60, le=80, examples=[71.2])
    slope: int = Field(ge=55, le=155, examples=[128])


class Card(BaseModel):
    """The rounds that count, the oldest first."""

    rounds: list[Round] = Field(min_length=3, max_length=100)


class Clubhouse(Stall):
    """Beside the till stands what is free, and the document that lists both."""

    def __init__(self, site: Site) -> None:
        super().__init__(site, "/index", 2, golf, "Handicap index by the World Handicap System")
        self.free = FastAPI(title="Clubhouse handicap", version="1.6.0")

        @self.free.get("/differential", summary="Score differential of one round, free")
        def differential(given: Annotated[Round, Query()]) -> dict[str, float]:
            made = 113 / given.slope * (given.score - given.rating)
            return {"differential": round(made, 1)}

        @self.free.post("/index", summary="Handicap index of all rounds, 2 cents over x402",
                        responses={402: {"description": "Pay by x402"}})  # fmt: skip
        def index(card: Card) -> dict[str, Any]:
            return golf(card.model_dump())

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        own = scope["path"] in {"/", self.path}
        await (super().__call__ if own else self.free)(scope, receive, send)


def voyage(given: Any) -> dict[str, Any]:
    pairs = dict(part.split("=", 1) for part in str(given).split("&"))
    start, end = (tuple(float(n) for n in pairs[k].split(",")) for k in ("from", "to"))
    if len(start) != 2 or len(end) != 2 or max(abs(start[0]), abs(end[0])) > 90:
        raise ValueError
    one, two = (start[0], start[1]), (end[0], end[1])
    legs = [seventh_outdoors.between(one, two, n / 4) for n in range(1, 4)]
    far = seventh_outdoors.apart_km(one, two)
    return {"km": round(far, 1), "nautical_miles": round(far / 1.852, 1),
            "course": round(seventh_outdoors.bearing(one, two), 1), "waypoints": legs}  # fmt: skip


def chartroom(site: Site) -> App:
    return Stall(site, "/great-circle", 1, voyage, "Great circle from=lat,lon to=lat,lon")


class Regatta(BaseModel):
    """The order at the finish of each race."""

    races: list[list[str]] = Field(
        min_length=1, max_length=50, examples=[[["Ada", "Bo", "Cy"], ["Bo", "Ada", "Cy"]]]
    )
    discards: int = Field(default=0, ge=0, le=10)


def regatta(site: Site) -> App:
    app = FastAPI(title="Low point", version="3.0.0")

    @app.post("/standings")
    def standings(given: Regatta) -> list[dict[str, Any]]:
        """Standings of a series by the low point system."""
        rows = seventh_play.series(given.races, given.discards)
        return [{"rank": n, "boat": boat, "points": points, "races": scores}
                for n, (boat, points, scores) in enumerate(rows, 1)]  # fmt: skip

    @app.get("/penalty", summary="Points of a boat that gave up, free")
    def penalty(starters: Annotated[int, Query(ge=2, le=200, examples=[12])]) -> dict[str, int]:
        return {"points": starters + 1}

    @app.get("/", response_class=HTMLResponse, include_in_schema=False)
    def home() -> str:
        return ("<!doctype html><title>Low point</title><h1>Regatta scoring</h1><p>Half a cent a "
                "series, over x402: POST /standings.</p>")  # fmt: skip

    return charged(signed(app, site), site.wallet, {"POST /standings": ("$0.005", "Standings")})


def barcode(site: Site) -> App:
    app = FastAPI(openapi_url=None)
    digits = Query(pattern=r"^\d{12,13}$")

    @app.get("/check", response_class=PlainTextResponse)
    def check(code: Annotated[str, digits]) -> str:
        last = seventh_goods.check_digit(code)
        good = len(code) == 12 or code[12] == str(last)
        return f"{code[:12]}{last}\n" if good else f"wrong, the last figure should be {last}\n"

    @app.get("/ean13.svg")
    def svg(code: Annotated[str, digits], height: Annotated[int, Query(ge=20, le=400)] = 80) -> Any:
        full = code[:12] + str(seventh_goods.check_digit(code))
        rects = "".join(
            f'<rect x="{x}" width="1" height="{height}"/>'
            for x, bar in enumerate(seventh_goods.bars(full), 11) if bar == "1"
        )  # fmt: skip
        text = f'<text x="58" y="{height + 9}" font-size="9" text-anchor="middle">{full}</text>'
        size = f'viewBox="0 0 117 {height + 12}"'
        return Response(f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{rects}{text}</svg>',
                        media_type="image/svg+xml")  # fmt: skip

    return charged(app, site.wallet, {"GET /ean13.svg": ("$0.002", "An EAN-13 as SVG")})


AGENTS = (
    honest("x402", "Cut list", at(sawmill, ("openapi", "/openapi.json"), ("x402", "/cuts")),
           "Cutting plans for planks and battens with the width of the saw. 1 cent each.",
           proof="openapi"),
    honest("x402", "Clubhouse handicap",
           at(Clubhouse, ("openapi", "/openapi.json"), ("x402", "/index")),
           "Your golf handicap index from your rounds. Two cents.", read=True,
           inputs={"score": [88, 95], "rating": [71.2, 69.8], "slope": [128, 117]}),
    honest("x402", "great-circle", at(chartroom, ("x402", "/great-circle")),
           "distance, course, waypoints. 0.01 usdc", proof="payee"),
    honest("x402", "Low point", at(regatta, ("openapi", "/openapi.json"), ("x402", "/standings")),
           "Scores a sailing series with discards. Written for our Wednesday races.", read=True,
           inputs={"starters": [8, 23]}),
    honest("x402", "ean13 svg", at(barcode, ("web", "/check"), ("x402", "/ean13.svg")),
           "EAN barcodes as SVG, the check digit is free", proof="payee"),
)  # fmt: skip
