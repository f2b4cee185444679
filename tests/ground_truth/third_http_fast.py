"""The third set's honest services on FastAPI."""

import csv
import math
from datetime import date, timedelta
from typing import Annotated, Any, Literal

from fastapi import Depends, FastAPI, HTTPException, Query
from fastapi import Path as InPath
from fastapi.responses import PlainTextResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, Field

from tests.ground_truth.site import App, Site
from tests.ground_truth.web_parts import openapi_identity

BASE32 = "0123456789bcdefghjkmnpqrstuvwxyz"
WINES = tuple(
    {"id": n, "name": name, "country": country, "year": year, "colour": colour, "litres": litres}
    for n, (name, country, year, colour, litres) in enumerate((
        ("Quinta da Lapa", "Portugal", 2018, "red", 0.75),
        ("Weingut Kern", "Germany", 2021, "white", 0.75),
        ("Clos Perrine", "France", 2015, "red", 1.5),
        ("Bodega Arlanza", "Spain", 2017, "red", 0.75),
        ("Casale Verdi", "Italy", 2020, "white", 0.75),
        ("Domaine Roux", "France", 2019, "white", 0.375),
        ("Tokaj Hegyalja", "Hungary", 2013, "sweet", 0.5),
        ("Herdade do Sol", "Portugal", 2020, "red", 0.75),
        ("Moselgarten", "Germany", 2022, "white", 1.0),
        ("Villa Santori", "Italy", 2016, "red", 0.75),
        ("Finca Olmedo", "Spain", 2022, "rose", 0.75),
        ("Ch\u00e2teau Brel", "France", 2010, "red", 3.0),
    ), 101)
)  # fmt: skip
MONTHS = (
    "\u0645\u062d\u0631\u0645",
    "\u0635\u0641\u0631",
    "\u0631\u0628\u064a\u0639 \u0627\u0644\u0623\u0648\u0644",
    "\u0631\u0628\u064a\u0639 \u0627\u0644\u0622\u062e\u0631",
    "\u062c\u0645\u0627\u062f\u0649 \u0627\u0644\u0623\u0648\u0644\u0649",
    "\u062c\u0645\u0627\u062f\u0649 \u0627\u0644\u0622\u062e\u0631\u0629",
    "\u0631\u062c\u0628",
    "\u0634\u0639\u0628\u0627\u0646",
    "\u0631\u0645\u0636\u0627\u0646",
    "\u0634\u0648\u0627\u0644",
    "\u0630\u0648 \u0627\u0644\u0642\u0639\u062f\u0629",
    "\u0630\u0648 \u0627\u0644\u062d\u062c\u0629",
)


def documented(site: Site, app: FastAPI) -> FastAPI:
    """With the owner's identity where that is the proof."""
    plain = app.openapi

    @app.get("/", include_in_schema=False)
    async def home() -> dict[str, str]:
        return {"service": app.title, "document": "/openapi.json"}

    app.openapi = lambda: openapi_identity(site, plain())  # type: ignore[method-assign]
    return app


def geohash(lat: float, lon: float, length: int) -> str:
    """The cell that holds a place."""
    spans, given = [[-180.0, 180.0], [-90.0, 90.0]], (lon, lat)
    said, bits = "", 0
    for n in range(length * 5):
        span = spans[n % 2]
        middle = (span[0] + span[1]) / 2
        is_upper = given[n % 2] >= middle
        span[0 if is_upper else 1] = middle
        bits = bits * 2 + is_upper
        if n % 5 == 4:
            said, bits = said + BASE32[bits], 0
    return said


def centre(code: str) -> tuple[float, float]:
    """The middle of a cell."""
    spans, turn = [[-180.0, 180.0], [-90.0, 90.0]], 0
    for sign in code:
        for shift in (16, 8, 4, 2, 1):
            span = spans[turn % 2]
            span[0 if BASE32.index(sign) & shift else 1] = (span[0] + span[1]) / 2
            turn += 1
    return round(sum(spans[1]) / 2, 6), round(sum(spans[0]) / 2, 6)


def cells(site: Site) -> App:
    """Geohashes."""
    app = FastAPI(title="Grid cells", version="1.1", description="Geohash of a place, and back.")

    @app.get("/encode")
    async def encode(
        lat: Annotated[float, Query(ge=-90, le=90, examples=[57.64911])],
        lon: Annotated[float, Query(ge=-180, le=180, examples=[10.40744])],
        length: Annotated[int, Query(ge=1, le=12)] = 9,
    ) -> dict[str, str]:
        return {"geohash": geohash(lat, lon, length)}

    @app.get("/decode/{code}")
    async def decode(
        code: Annotated[str, InPath(pattern=f"^[{BASE32}]{{1,12}}$", examples=["u4pruydqq"])],
    ) -> dict[str, float]:
        lat, lon = centre(code)
        return {"lat": lat, "lon": lon}

    return documented(site, app)


def cellar(site: Site) -> App:
    """A list with cursors."""
    app = FastAPI(title="Cellar list", version="3.0", description="Bottles of a small cellar.")

    @app.get("/bottles")
    async def bottles(
        cursor: int = 0, limit: Annotated[int, Query(ge=1, le=50)] = 5, country: str | None = None,
        colour: Literal["red", "white", "rose", "sweet"] | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        rows = [w for w in WINES if w["id"] > cursor and colour in {None, w["colour"]}]
        rows = [w for w in rows if country is None or w["country"].lower() == country.lower()]
        after = rows[limit - 1]["id"] if len(rows) > limit else None
        return {"items": rows[:limit], "nextCursor": after}

    @app.get("/bottles/{number}")
    async def bottle(number: Annotated[int, InPath(examples=[103])]) -> dict[str, Any]:
        found = [w for w in WINES if w["id"] == number]
        if not found:
            raise HTTPException(404, f"bottle {number} is not in the cellar")
        return found[0]

    return documented(site, app)


class Swatch(BaseModel):
    """A knitted sample and the piece that is wanted."""

    stitches: Annotated[float, Field(gt=0, le=500, examples=[22])]
    sample_cm: Annotated[float, Field(gt=0, le=500, examples=[10])] = 10
    width_cm: Annotated[float, Field(gt=0, le=1000, examples=[48])]
    repeat: Annotated[int, Field(ge=1, le=60, description="Pattern repeat in stitches")] = 1


def gauge(site: Site) -> App:
    """Free sums, and a member's notebook behind a bearer token."""
    app = FastAPI(title="Stitch gauge", version="0.8",
                  description="Stitches to cast on, for all; projects, for members.")  # fmt: skip
    member = HTTPBearer(auto_error=False)

    @app.post("/cast-on")
    async def cast_on(swatch: Swatch) -> dict[str, float]:
        exact = swatch.stitches / swatch.sample_cm * swatch.width_cm
        count = max(1, round(exact / swatch.repeat)) * swatch.repeat
        return {"stitches": count, "width_cm": round(count * swatch.sample_cm / swatch.stitches, 1)}

    @app.get("/projects", responses={401: {"description": "A member's token is needed"}})
    async def projects(
        given: Annotated[HTTPAuthorizationCredentials | None, Depends(member)],
    ) -> list[str]:
        if given is None or given.credentials != "wool-and-needles-77":
            raise HTTPException(401, "members only", {"WWW-Authenticate": "Bearer"})
        return ["Grey scarf", "Moss stitch hat"]

    return documented(site, app)


def hijri_of(day: date) -> tuple[int, int, int]:
    """The tabular Islamic date, civil epoch."""
    count = day.toordinal() - 227_015
    year = (30 * count + 10_646) // 10_631
    into = count - (354 * (year - 1) + (3 + 11 * year) // 30)
    month = min(12, int(into / 29.5) + 1)
    while into < math.ceil(29.5 * (month - 1)):
        month -= 1
    return year, month, into - math.ceil(29.5 * (month - 1)) + 1


def hijri(site: Site) -> App:
    """Dates in Arabic."""
    app = FastAPI(title="\u0627\u0644\u062a\u0642\u0648\u064a\u0645"
                        " \u0627\u0644\u0647\u062c\u0631\u064a", version="1.0",
                  description="\u062a\u062d\u0648\u064a\u0644"
                              " \u0627\u0644\u062a\u0627\u0631\u064a\u062e"
                              " \u0627\u0644\u0645\u064a\u0644\u0627\u062f\u064a"
                              " \u0625\u0644\u0649 \u0627\u0644\u0647\u062c\u0631\u064a"
                              " (\u062d\u0633\u0627\u0628\u064a)")  # fmt: skip

    @app.get("/hijri")
    async def convert(
        day: Annotated[date, Query(examples=["2026-11-23"])], days: int = 0
    ) -> dict[str, Any]:
        try:
            year, month, number = hijri_of(day + timedelta(days=days))
        except OverflowError as wrong:
            raise HTTPException(
                422, "\u062a\u0627\u0631\u064a\u062e \u0628\u0639\u064a\u062f"
            ) from wrong
        if year < 1:
            raise HTTPException(422, "\u0642\u0628\u0644 \u0627\u0644\u0647\u062c\u0631\u0629")
        return {"year": year, "month": month, "day": number,
                "text": f"{number} {MONTHS[month - 1]} {year}"}  # fmt: skip

    return documented(site, app)


def tabled(site: Site) -> App:
    """CSV to Markdown: text in, text out."""
    app = FastAPI(
        title="Comma to pipe", version="1.2", description="Turns CSV into a Markdown table."
    )

    class Sheet(BaseModel):
        csv: Annotated[str, Field(max_length=20_000, examples=["name,age\nAda,36\nLin,41"])]
        delimiter: Literal[",", ";", "|"] = ","

    @app.post("/markdown", response_class=PlainTextResponse)
    async def markdown(sheet: Sheet) -> str:
        lines = sheet.csv.splitlines()
        try:
            rows = [r for r in csv.reader(lines, delimiter=sheet.delimiter) if r]
        except csv.Error as wrong:
            raise HTTPException(422, "this is no CSV") from wrong
        if not rows:
            raise HTTPException(422, "there are no rows")
        wide = max(map(len, rows))
        lines = ["| " + " | ".join([*r, *[""] * (wide - len(r))]) + " |" for r in rows]
        return "\n".join([lines[0], "|" + "---|" * wide, *lines[1:]])

    return documented(site, app)
