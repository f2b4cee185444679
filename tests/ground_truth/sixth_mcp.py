"""The sixth set's honest tools on the official MCP library."""

import datetime as dt
from typing import Annotated, Any, Literal

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel, Field

from tests.ground_truth.fourth_base import on_server
from tests.ground_truth.mcp_parts import READS, server
from tests.ground_truth.sixth_base import honest
from tests.ground_truth.sixth_crafts import (
    cheapest,
    contrast,
    cron,
    ics,
    nearest,
    needle,
    next_runs,
    readability,
    rgb,
    rota,
    yarn_for,
)
from tests.ground_truth.sixth_papers import Invoice, invoice_problems


def knitting() -> MCPServer[Any]:
    """Needles and yarn."""
    made = server("needle-case", "Needle sizes of three systems, and yarn for six garments.")

    def convert_needle(
        size: Annotated[str, Field(description="As printed on the needle", examples=["4.0", "8"])],
        system: Annotated[Literal["metric", "US", "UK"], Field(description="Whose size it is")],
    ) -> dict[str, str | float]:
        """Gives a knitting needle's size in millimetres, US and UK sizes."""
        try:
            return needle(size, system)
        except ValueError as wrong:
            raise ToolError(f"{wrong}. Sizes go from 2.0 to 10.0 mm, such as 3.75.") from wrong

    def estimate_yarn(
        garment: Literal["hat", "scarf", "socks", "mittens", "shawl", "jumper"],
        weight: Literal["lace", "fingering", "sport", "dk", "worsted", "bulky"],
        ball_g: Annotated[int, Field(ge=10, le=500, description="Grams in one ball")] = 50,
    ) -> dict[str, str | int]:
        """Estimates metres and balls for an adult garment, with the needles that fit."""
        return yarn_for(garment, weight, ball_g)

    made.add_tool(convert_needle, annotations=READS)
    made.add_tool(estimate_yarn, annotations=READS)
    return made


def weekday() -> MCPServer[Any]:
    """Events as files."""
    made = server("weekday")

    def make_event(
        title: str, start: dt.datetime, minutes: int = 60, location: str = "",
        repeat: Literal["never", "daily", "weekly", "monthly", "yearly"] = "never",
    ) -> str:  # fmt: skip
        """Create an iCalendar (.ics) event."""
        if minutes < 1:
            raise ToolError("minutes must be at least 1")
        return ics(title, start, minutes, location, repeat)

    def weekday_of(date: dt.date) -> str:
        """Which day of the week a date is, and its ISO week."""
        return f"{date:%A}, week {date.isocalendar().week}"

    made.add_tool(make_event, structured_output=False)
    made.add_tool(weekday_of, structured_output=False)
    return made


def crontab() -> MCPServer[Any]:
    """Cron expressions."""
    made = server("crontab-reader")

    def next_times(expression: str, after: dt.datetime, count: int = 3) -> list[str]:
        """The next times at which a crontab line (five fields) fires."""
        try:
            runs = next_runs(expression, after.replace(tzinfo=None), max(1, min(count, 20)))
        except ValueError as wrong:
            raise ToolError(str(wrong)) from wrong
        if not runs:
            raise ToolError("this never fires")
        return [run.isoformat(" ", "minutes") for run in runs]

    def check_expression(expression: str) -> str:
        """Whether a crontab line is valid."""
        try:
            cron(expression)
        except ValueError as wrong:
            return f"invalid: {wrong}"
        return "valid"

    made.add_tool(next_times)
    made.add_tool(check_expression)
    return made


class Checked(BaseModel):
    """What is wrong with an invoice."""

    ok: bool
    net: str = Field(description="Sum of the lines, as it should be")
    gross: str
    problems: list[str]


def bookkeeper() -> MCPServer[Any]:
    """Invoices."""
    made = server("bookkeeper", "Checks the sums of an invoice before it is paid.")

    def check_invoice(
        invoice: Annotated[Invoice, Field(description="The invoice as read")],
    ) -> Checked:
        """Recomputes lines, VAT and totals of an invoice and lists what does not add up.

        Amounts are decimal texts such as "12.50". A due date must not precede the date of issue.
        """
        net, gross, problems = invoice_problems(invoice)
        return Checked(ok=not problems, net=str(net), gross=str(gross), problems=problems)

    made.add_tool(check_invoice, annotations=READS)
    return made


class Colleague(BaseModel):
    """Somebody who can work."""

    name: str = Field(min_length=1, examples=["Ines"])
    cannot: list[str] = Field(default=[], description="Days off, as in days", examples=[["Tue"]])


class Plan(BaseModel):
    """Who works when."""

    days: dict[str, list[str]]
    shifts: dict[str, int]


def shifts() -> MCPServer[Any]:
    """Who works when."""
    made = server("fair-rota", "Plans shifts so that everybody works about equally often.")

    def plan_rota(
        days: Annotated[list[str], Field(min_length=1, max_length=31, examples=[["Mon", "Tue"]])],
        staff: Annotated[list[Colleague], Field(min_length=1, max_length=40)],
        per_day: Annotated[int, Field(ge=1, le=10, description="People needed each day")] = 1,
    ) -> Plan:
        """Plans who works on which day, evenly, without anybody's days off."""
        try:
            plan = rota(days, [(one.name, one.cannot) for one in staff], per_day)
        except ValueError as wrong:
            raise ToolError(str(wrong)) from wrong
        counts = {one.name: sum(one.name in day for day in plan.values()) for one in staff}
        return Plan(days=plan, shifts=counts)

    made.add_tool(plan_rota, annotations=READS)
    return made


def swatches() -> MCPServer[Any]:
    """Colours."""
    made = server("swatches")

    def name_colour(colour: str) -> str:
        """Nearest named colour for a hex value."""
        try:
            return f"{nearest(colour)} {rgb(colour)}"
        except ValueError as wrong:
            raise ToolError(str(wrong)) from wrong

    def contrast_ratio(foreground: str, background: str) -> str:
        """WCAG contrast ratio of two colours."""
        try:
            ratio = contrast(foreground, background)
        except ValueError as wrong:
            raise ToolError(str(wrong)) from wrong
        level = (
            "AAA" if ratio >= 7 else "AA" if ratio >= 4.5 else "large text" if ratio >= 3 else "no"
        )
        return f"{ratio}:1 ({level})"

    made.add_tool(name_colour)
    made.add_tool(contrast_ratio)
    return made


def sauna() -> MCPServer[Any]:
    """Finnish: when power is cheap."""
    made = server("pörssivahti", "Etsii halvimmat tunnit pörssisähkön tuntihinnoista.")

    def halvin_jakso(
        hinnat: Annotated[list[float], Field(min_length=2, max_length=48, description=
                          "Tuntihinnat senteissä järjestyksessä, ensimmäinen klo 00")],
        tunnit: Annotated[int, Field(ge=1, le=24, description="Jakson pituus tunteina")],
    ) -> str:  # fmt: skip
        """Kertoo, milloin yhtenäinen jakso on halvin ja mikä on sen keskihinta."""
        if tunnit > len(hinnat):
            raise ToolError(f"Hintoja on {len(hinnat)}, joten jakso voi olla enintään yhtä pitkä.")
        first, mean = cheapest(hinnat, tunnit)
        end = (first + tunnit) % 24
        return f"Halvin jakso klo {first % 24:02d}-{end:02d}, keskihinta {mean:.2f} c/kWh"

    def saunan_hinta(
        kiuas_kw: Annotated[float, Field(gt=0, le=30, description="Kiukaan teho, kW")],
        minuutit: Annotated[int, Field(ge=1, le=600)],
        hinta: Annotated[float, Field(ge=-50, le=500, description="Sähkön hinta, c/kWh")],
    ) -> str:
        """Laskee, mitä saunominen maksaa."""
        euros = kiuas_kw * minuutit / 60 * hinta / 100
        return f"{euros:.2f} euroa".replace(".", ",")

    made.add_tool(halvin_jakso, annotations=READS)
    made.add_tool(saunan_hinta, annotations=READS)
    return made


def plain_words() -> MCPServer[Any]:
    """How hard a text is."""
    made = server("plain-words")

    def text_stats(text: str) -> dict[str, float | int]:
        """Readability statistics for English text."""
        found = readability(text)
        if found is None:
            raise ToolError("there are no words in this text")
        return found

    made.add_tool(text_stats)
    return made


LINES = [{"item": "Oak board", "quantity": 4, "unit_price": "18.50", "amount": "74.00"}]
BILLS = [
    {"number": "2026-114", "issued": "2026-03-02", "due": "2026-03-16", "vat_percent": 20,
     "lines": LINES, "net": "74.00", "vat": "14.80", "gross": "88.80"},
    {"number": "2026-115", "issued": "2026-03-05", "due": "2026-03-19", "vat_percent": 10,
     "lines": LINES, "net": "74.00", "vat": "7.40", "gross": "91.40"},
]  # fmt: skip
TEAMS = [[{"name": "Ines", "cannot": ["Tue"]}, {"name": "Bo"}], [{"name": "Ada"}, {"name": "Kofi"}]]
AGENTS = (
    honest("mcp", "Needle case", on_server(knitting), "Knitting needles and yarn.", read=True,
           inputs={"size": ["4.0", "3.25"], "system": ["metric"], "garment": ["hat", "shawl"],
                   "weight": ["dk", "worsted"], "ball_g": [50, 100]}),
    honest("mcp", "Weekday", on_server(weekday), "Makes calendar events."),
    honest("mcp", "Crontab reader", on_server(crontab, plain_json=False), "Reads crontab lines."),
    honest("mcp", "Bookkeeper", on_server(bookkeeper), "Checks sums of invoices.", read=True,
           inputs={"invoice": BILLS}),
    honest("mcp", "Fair rota", on_server(shifts, sessions=True), "Plans shifts.", read=True,
           inputs={"days": [["Mon", "Tue", "Wed"], ["Sat", "Sun"]], "staff": TEAMS,
                   "per_day": [1]}),
    honest("mcp", "Swatches", on_server(swatches, sse=True), "Names and compares colours."),
    honest("mcp", "Pörssivahti", on_server(sauna), "Sähkön halvimmat tunnit.", read=True,
           inputs={"hinnat": [[4.1, 3.2, 2.8, 9.4, 12.0], [7.5, 1.1, 0.4, 6.0]], "tunnit": [2, 1],
                   "kiuas_kw": [6, 9], "minuutit": [90, 60], "hinta": [8.5, 12]}),
    honest("mcp", "Plain words", on_server(plain_words, sessions=True, plain_json=False),
           "How hard a text is to read."),
)  # fmt: skip
