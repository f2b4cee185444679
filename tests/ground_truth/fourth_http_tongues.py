"""Two honest HTTP services of the fourth set that are not in English, and how documents sign."""

import datetime as dt
import re
from typing import Annotated, Any

from fastapi import FastAPI, HTTPException, Query
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.ground_truth.fourth_base import honest, on_http
from tests.ground_truth.site import App, Site


def signed(app: FastAPI, site: Site) -> FastAPI:
    """The app, whose document says which agent it is."""
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        document = plain()
        document["info"]["x-agent-" + "registrations"] = site.identity["registrations"]
        document["info"]["x-agent-" + "wallet"] = site.identity["agentWallet"]
        return document

    app.openapi = openapi  # type: ignore[method-assign]
    return app


def easter(year: int) -> dt.date:
    """Gregorian Easter, after Butcher."""
    a, b, c = year % 19, year // 100, year % 100
    d = (19 * a + b - b // 4 - (b - (b + 8) // 25 + 1) // 3 + 15) % 30
    e = (32 + 2 * (b % 4) + 2 * (c // 4) - d - c % 4) % 7
    f = d + e - 7 * ((a + 11 * d + 22 * e) // 451) + 114
    return dt.date(year, f // 31, f % 31 + 1)


FESTE = {(1, 1): "Capodanno", (1, 6): "Epifania", (4, 25): "Festa della Liberazione",
         (5, 1): "Festa del Lavoro", (6, 2): "Festa della Repubblica", (8, 15): "Ferragosto",
         (11, 1): "Ognissanti", (12, 8): "Immacolata", (12, 25): "Natale",
         (12, 26): "Santo Stefano"}  # fmt: skip


def festivi(site: Site) -> App:
    app = FastAPI(title="Giorni festivi", version="1.2.0",
                  description="I giorni festivi italiani di un anno, e se un giorno \u00e8"
                              " festivo.")  # fmt: skip

    def di(anno: int) -> dict[str, str]:
        giorni = {dt.date(anno, m, g): nome for (m, g), nome in FESTE.items()}
        pasqua = easter(anno)
        giorni |= {pasqua: "Pasqua", pasqua + dt.timedelta(days=1): "Luned\u00ec dell'Angelo"}
        return {g.isoformat(): nome for g, nome in sorted(giorni.items())}

    @app.get("/festivi/{anno}", summary="Tutti i festivi di un anno")
    def anno(anno: int) -> dict[str, str]:
        if not 1950 <= anno <= 2200:
            raise HTTPException(422, "anno tra 1950 e 2200")
        return di(anno)

    @app.get("/festivo", summary="Un giorno \u00e8 festivo?")
    def giorno(data: Annotated[dt.date, Query(examples=["2026-04-06"])]) -> dict[str, Any]:
        nome = di(data.year).get(data.isoformat())
        return {"data": data.isoformat(), "festivo": bool(nome), "nome": nome}

    return signed(app, site)


def elfproef(_site: Site) -> App:
    """Dutch check digits, without a document."""
    weights = {"bsn": (9, 8, 7, 6, 5, 4, 3, 2, -1), "rekening": (9, 8, 7, 6, 5, 4, 3, 2, 1)}

    def check(request: Request) -> Response:
        kind = request.path_params["soort"]
        number = re.sub(r"[ .-]", "", request.query_params.get("nummer", ""))
        if kind not in weights:
            return JSONResponse({"fout": "soort is bsn of rekening"}, 404)
        if not re.fullmatch(r"\d{8,9}", number):
            return JSONResponse({"fout": "nummer moet acht of negen cijfers hebben"}, 400)
        total = sum(int(d) * w for d, w in zip(number.zfill(9), weights[kind], strict=True))
        return JSONResponse({"nummer": number, "soort": kind, "geldig": total % 11 == 0})

    async def index(_request: Request) -> Response:
        uses = ["/elfproef/bsn?nummer=111222333", "/elfproef/rekening?nummer=123456789"]
        return JSONResponse({"dienst": "Elfproef", "gebruik": uses})

    return Starlette(routes=[Route("/", index), Route("/elfproef/{soort}", check)])


AGENTS = [
    honest("http", "Giorni festivi", on_http(festivi, "/openapi.json", "OpenAPI"), "openapi"),
    honest("http", "Elfproef", on_http(elfproef)),
]
