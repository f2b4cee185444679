"""The sixth set's sellers: tiles, references of creditors, crosswords."""

from typing import Annotated

from fastapi import FastAPI, HTTPException, Query
from fastapi.responses import HTMLResponse
from pydantic import BaseModel

from tests.ground_truth.site import Build, Built, Site
from tests.ground_truth.sixth_base import honest
from tests.ground_truth.sixth_sums import creditor_reference, crossword, holds, tiling
from tests.ground_truth.sixth_till import charged


class Tiles(BaseModel):
    """How many tiles a floor takes."""

    tiles: int
    uncut: int
    cut: int
    with_spare: int
    area_m2: float


def floors(site: Site) -> FastAPI:
    """Tiles for a floor; the sample room is free."""
    app = FastAPI(title="Floor plan for tilers", version="1.3.0",
                  description="Counts whole and cut tiles of a rectangular floor.")  # fmt: skip

    async def plan(
        room_x: Annotated[int, Query(ge=30, le=900, description="cm", examples=[320])],
        room_y: Annotated[int, Query(ge=30, le=900, description="cm", examples=[240])],
        tile: Annotated[int, Query(ge=5, le=120, description="Side in cm", examples=[30])] = 30,
        joint: Annotated[int, Query(ge=0, le=20, description="mm", examples=[3])] = 3,
    ) -> Tiles:
        """Costs 0.02 USDC."""
        return Tiles.model_validate(tiling((room_x, room_y), tile, joint))

    async def sample(
        tile: Annotated[int, Query(ge=5, le=120, description="Side in cm", examples=[20])] = 30,
    ) -> Tiles:
        """The plan of a room of 300 by 200 cm, free of charge."""
        return Tiles.model_validate(tiling((300, 200), tile, 3))

    paid = {402: {"description": "Payment is asked for in PAYMENT-REQUIRED"}}
    app.get("/plan", summary="Tiles for your floor", responses={**paid})(plan)
    app.get("/sample", summary="Tiles for our sample room")(sample)
    return charged(app, site.wallet, {"GET /plan": ("$0.02", "Tiles for a rectangular floor")})


def references(site: Site) -> FastAPI:
    """Makes references for a fee, checks them for nothing."""
    app = FastAPI(title="RF references", version="2.2.0",
                  description="Structured creditor references by ISO 11649.")  # fmt: skip

    async def make(
        base: Annotated[str, Query(min_length=1, max_length=40, examples=["2026-114"],
                                   description="Invoice number: letters and digits")],
    ) -> dict[str, str]:  # fmt: skip
        """Costs 0.01 USDC."""
        try:
            return {"base": base, "reference": creditor_reference(base)}
        except ValueError as wrong:
            raise HTTPException(422, str(wrong)) from wrong

    async def check(
        reference: Annotated[str, Query(max_length=60, examples=["RF18 5390 0754 7034"])],
    ) -> dict[str, str | bool]:
        """Whether the check digits hold. Free."""
        return {"reference": reference, "valid": holds(reference)}

    app.get("/make", summary="A reference for an invoice")(make)
    app.get("/check", summary="Whether a reference holds")(check)
    return charged(app, site.wallet, {"GET /make": ("$0.01", "An RF reference")})


def solver(site: Site) -> FastAPI:
    """Words for crosswords."""
    app = FastAPI(openapi_url=None)

    async def home() -> HTMLResponse:
        return HTMLResponse(
            "<title>Seven across</title><h1>Seven across</h1><p>Finds words for your crossword. "
            f"A cent of USDC each, over x402.</p><pre>curl '{site.url}/fill?pattern=c..ud'</pre>"
            "<p>How many words there are you learn for nothing.</p>"
            f"<pre>curl '{site.url}/count?pattern=c..ud'</pre>"
        )

    async def fill(pattern: str) -> dict[str, list[str]]:
        try:
            return {"words": crossword(pattern)}
        except ValueError as wrong:
            raise HTTPException(400, str(wrong)) from wrong

    async def count(pattern: str) -> dict[str, int]:
        return {"count": len((await fill(pattern))["words"])}

    app.get("/")(home)
    app.get("/count")(count)
    app.get("/fill")(fill)
    return charged(app, site.wallet, {"GET /fill": ("$0.01", "Words that fit a pattern")})


def sold(make: object, *services: tuple[str, str]) -> Build:
    """A seller, with the places it names in its file."""

    def build(site: Site) -> Built:
        rows = [(name, site.url + path) for name, path in services]
        return Built(rows, make(site), {"x402Support": True})  # type: ignore[operator]

    return build


AGENTS = (
    honest("x402", "Floor plan for tilers",
           sold(floors, ("openapi", "/openapi.json"), ("x402", "/plan")),
           "Counts the tiles of a floor; a sample room is free.", read=True,
           inputs={"room_x": [320, 450], "room_y": [240, 310], "tile": [30, 20], "joint": [3]}),
    honest("x402", "RF references", sold(references, ("web", "/openapi.json")),
           "Creditor references by ISO 11649.", read=True,
           inputs={"base": ["2026-114", "K7781"], "reference": ["RF18 5390 0754 7034"]}),
    honest("x402", "Seven across", sold(solver, ("web", "/"), ("x402", "/fill")),
           "Words for crosswords.", proof="payee"),
)  # fmt: skip
