"""Honest agents of the seventh set that speak other languages than English."""

import re
from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any
from urllib.parse import parse_qs

from a2a.types import AgentProvider
from fastapi import FastAPI, HTTPException
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel, Field

from tests.ground_truth import seventh_goods, seventh_home
from tests.ground_truth.fifth_base import Outcome
from tests.ground_truth.seventh_a2a import Clerk, Talker, on_library, skill
from tests.ground_truth.seventh_base import at, honest, query, send_text, signed
from tests.ground_truth.seventh_mcp import hosted
from tests.ground_truth.site import App, Scope, Site

STARTS = {name: first.year for name, first in seventh_goods.ERAS}
LENGTHS = {"平成": 31, "昭和": 64, "大正": 15, "明治": 45}


def wareki(text: str, _earlier: list[str]) -> Outcome:
    era = re.search(r"(令和|平成|昭和|大正|明治)\s*(元|\d{1,2})\s*年", text)
    if era:
        year = 1 if era[2] == "元" else int(era[2])
        if not 1 <= year <= LENGTHS.get(era[1], 99):
            return Outcome(f"{era[1]}{era[2]}年は存在しません。")
        return Outcome(f"{era[1]}{era[2]}年は西暦{STARTS[era[1]] + year - 1}年です。")
    found = re.search(r"(\d{4})\s*[年/-]\s*(?:(\d{1,2})\s*[月/-]\s*(\d{1,2}))?", text)
    if not found:
        return Outcome("和暦か西暦の年をお書きください(例:「令和8年」「1989年1月7日」)。")
    try:
        day = date(int(found[1]), int(found[2] or 12), int(found[3] or 31))
        made = seventh_goods.in_era(day)
        if not found[2] and (early := seventh_goods.in_era(day.replace(month=1, day=1))) != made:
            made = f"{early}、途中から{made}"
        return Outcome(f"西暦{found[0].strip('/-')}は{made}です。")
    except ValueError as error:
        return Outcome("その日付はありません。" if "month" in str(error) or "day" in str(error)
                       else f"{error}。")  # fmt: skip


def prazo() -> MCPServer:
    server = MCPServer("prazos", version="1.2.0",
                       instructions="Dias úteis com os feriados nacionais do Brasil.")  # fmt: skip

    @server.tool(title="Somar dias úteis")
    def somar_dias_uteis(
        inicio: Annotated[date, Field(description="data inicial, AAAA-MM-DD")],
        dias: Annotated[int, Field(ge=0, le=500, description="quantos dias úteis")],
    ) -> str:
        """Data que fica tantos dias úteis depois do início."""
        semana = ("segunda", "terça", "quarta", "quinta", "sexta", "sábado", "domingo")
        fim = seventh_goods.business_day(inicio, dias)
        return f"{fim.strftime('%d/%m/%Y')}, {semana[fim.weekday()]}"

    @server.tool(title="É feriado?")
    def feriado(dia: date) -> str:
        """Diz se o dia é feriado nacional ou ponto facultativo dos bancos."""
        if not 1900 <= dia.year <= 2199:
            raise ToolError("só sei dos anos 1900 a 2199")
        return "sim" if seventh_goods.holiday_br(dia) else "não"

    return server


class Wohnung(BaseModel):
    """Fläche in Quadratmetern und abgelesene Einheiten."""

    flaeche: float = Field(gt=0)
    einheiten: float = Field(ge=0)


class Abrechnung(BaseModel):
    """Kosten des Hauses und seine Wohnungen."""

    gesamtkosten: float = Field(gt=0, le=1e6)
    grundanteil: float = Field(default=30, ge=30, le=50, description="in Prozent")
    wohnungen: dict[str, Wohnung] = Field(min_length=1, max_length=100)


def heizkosten(site: Site) -> App:
    app = FastAPI(title="Heizkosten-Verteiler", version="1.0.3",
                  description="Verteilt Heizkosten nach Fläche und Verbrauch.")  # fmt: skip

    @app.post("/verteilen", summary="Kosten auf die Wohnungen verteilen")
    def verteilen(daten: Abrechnung) -> dict[str, Any]:
        rows = {name: (w.flaeche, w.einheiten) for name, w in daten.wohnungen.items()}
        if not sum(units for _, units in rows.values()):
            raise HTTPException(422, "Es wurde nichts verbraucht, so lässt sich nichts verteilen.")
        anteile = seventh_home.heating(daten.gesamtkosten, daten.grundanteil / 100, rows)
        return {"anteile": anteile, "summe": round(sum(anteile.values()), 2)}

    return signed(app, site)


MESES = ("enero", "febrero", "marzo", "abril", "mayo", "junio", "julio", "agosto", "septiembre",
         "octubre", "noviembre", "diciembre")  # fmt: skip


def riego(text: str, earlier: list[str]) -> Outcome:
    todo = " ".join([*earlier, text]).lower()
    crop = next((c for c in seventh_home.WATER if c in todo), "")
    month = next((n for n, m in enumerate(MESES, 1) if m in todo), 0)
    area = re.search(r"(\d+(?:[.,]\d+)?)\s*(?:m2|m²|metros)", todo)
    missing = [
        name for name, known in
        (("el cultivo", crop), ("el mes", month), ("los metros cuadrados", area)) if not known
    ]  # fmt: skip
    if not crop and len(missing) == 3:
        return Outcome(f"Riego por goteo, solo de: {', '.join(seventh_home.WATER)}. ¿Qué "
                       "cultivo, qué mes, cuántos m2?", state="input-required")  # fmt: skip
    if missing or area is None:
        return Outcome(f"Falta: {', '.join(missing)}.", state="input-required")
    flow = re.search(r"(\d+(?:[.,]\d+)?)\s*(?:l/h|litros por hora)", todo)
    metres, hourly = (float(n[1].replace(",", ".")) if n else 120.0 for n in (area, flow))
    if hourly <= 0:
        return Outcome("Con ese caudal no se riega nada.", state="rejected")
    litres, minutes = seventh_home.irrigation(crop, metres, month, hourly)
    made = (
        f"{crop.capitalize()}, {MESES[month - 1]}: {litres:.0f} litros al día, "
        f"{minutes:.0f} minutos con {hourly:g} l/h."
    )
    return Outcome(made, {"litros": round(litres, 1), "minutos": round(minutes, 1)})


VED = """Vedkalkyl
GET /rakna?mangd=3&matt=travat&ved=björk
mått: stjälpt, travat, fast (kubikmeter)
ved: {}
"""


def ved_rows(asked: Mapping[str, list[str]]) -> str:
    amount = float(asked["mangd"][0].replace(",", "."))
    if not 0 < amount < 10_000:
        raise ValueError
    made = seventh_home.firewood(amount, asked["matt"][0].lower(), asked["ved"][0].lower())
    energy = made.pop("kwh")
    rows = [f"{name}: {value:.2f} m3".replace(".", ",") for name, value in made.items()]
    return "\n".join([*rows, f"energi: {energy:.0f} kWh", ""])


def vedkalkyl(_site: Site) -> App:
    async def app(scope: Scope, _receive: Any, send: Any) -> None:
        if scope["path"] == "/":
            return await send_text(send, VED.format(", ".join(seventh_home.WOOD)))
        if scope["path"] != "/rakna":
            return await send_text(send, "Finns inte.\n", 404)
        try:
            return await send_text(send, ved_rows(parse_qs(query(scope))))
        except (KeyError, ValueError):
            return await send_text(send, "Förstår inte, se / för hjälp.\n", 400)

    return app


AGENTS = (
    honest(
        "a2a", "和暦さん",
        on_library(
            "和暦と西暦を変換します。それ以外のことはできません。",
            [skill("wareki", "和暦変換", "明治から令和までの年を西暦に、西暦を和暦に。",
                   "暦", "令和8年は西暦何年ですか", "1989年1月7日は和暦で何年?")],
            lambda: Talker(wareki), versions=("1.0", "0.3"), path="/",
        ),
        "和暦と西暦の変換だけをする小さなエージェントです。",
        inputs={"messages": ["令和8年は西暦何年ですか", "昭和57年は西暦何年ですか"]}, read=True,
    ),
    honest("mcp", "Prazos", hosted(prazo, json_response=True),
           "Soma dias úteis e conhece os feriados nacionais do Brasil, até os que mudam com a "
           "Páscoa.", inputs={"inicio": ["2026-04-01", "2026-12-21"], "dias": [3, 10],
                                       "dia": ["2026-04-21", "2026-04-22"]}, read=True),
    honest("http", "Heizkosten-Verteiler", at(heizkosten, ("openapi", "/openapi.json")),
           "Verteilt die Heizkosten eines Hauses nach Fläche und Verbrauch, auf den Cent genau.",
           proof="openapi"),
    honest(
        "a2a", "Riego por goteo",
        on_library(
            "Calcula cuántos litros y minutos de riego necesita el huerto.",
            [skill("riego", "Calcular riego", "Dime cultivo, mes y superficie; si quieres, el "
                   "caudal en l/h.", "huerto agua", "Tomate en julio, 20 m2, 120 l/h")],
            lambda: Clerk(riego),
            more={"provider": AgentProvider(organization="Cooperativa La Acequia",
                                            url="https://acequia.example")},
        ),
        "Riego por goteo para huertos pequeños. Si falta un dato, pregunta.",
        inputs={"messages": ["Tomate en julio, 20 m2, 120 l/h",
                             "Lechuga en abril, 12 m2, 90 l/h"]}, read=True,
    ),
    honest("http", "Vedkalkyl", at(vedkalkyl, ("web", "/")),
           "räknar om ved mellan stjälpt, travat och fast mått, och till kWh"),
)  # fmt: skip
