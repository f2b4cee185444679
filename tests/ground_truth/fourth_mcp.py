"""Six honest MCP servers of the fourth set on the official library."""

import datetime as dt
import json
import re
import secrets
import zoneinfo
from collections import OrderedDict
from typing import Annotated, Any, Literal

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel, Field

from tests.ground_truth.fourth_base import honest, on_server
from tests.ground_truth.fourth_papers import invoice, mask
from tests.ground_truth.fourth_words import short
from tests.ground_truth.mcp_parts import READS, server


class Pack(BaseModel):
    """One offer on the shelf."""

    name: str = Field(description="what you call it", examples=["big jar"])
    price: float = Field(gt=0, description="price of the pack", examples=[3.49])
    amount: float = Field(gt=0, description="content of the pack in its unit", examples=[450])
    unit: Literal["g", "kg", "ml", "l", "piece"] = "g"


def shelf() -> MCPServer[Any]:
    made = server("unit-prices", "Compare packs by unit price. All packs of one call must be of one"
                                 " dimension: weight, volume or pieces.")  # fmt: skip

    @made.tool(annotations=READS)
    def compare_packs(packs: Annotated[list[Pack], Field(min_length=1, max_length=30)]) -> str:
        """Price per kilogram, litre or piece of each pack, the cheapest first.

        Example: packs = [{"name": "jar", "price": 3.0, "amount": 500, "unit": "g"}]
        """
        bases = {"g": ("kg", 0.001), "kg": ("kg", 1), "ml": ("l", 0.001), "l": ("l", 1),
                 "piece": ("piece", 1)}  # fmt: skip
        if len({bases[p.unit][0] for p in packs}) > 1:
            raise ToolError("these packs cannot be compared: weight, volume and pieces are mixed")
        rows = sorted((p.price / (p.amount * bases[p.unit][1]), p.name) for p in packs)
        base = bases[packs[0].unit][0]
        return "\n".join(f"{name}: {price:.2f} per {base}" for price, name in rows)

    return made


def zones() -> MCPServer[Any]:
    made = server("zone-clock")

    def zone(name: str) -> zoneinfo.ZoneInfo:
        try:
            return zoneinfo.ZoneInfo(name)
        except (KeyError, ValueError, OSError):
            raise ToolError(
                f"unknown time zone {name[:60]!r}; use a name such as Europe/Rome"
            ) from None

    @made.tool(annotations=READS)
    def convert_time(
        when: Annotated[str, Field(description="local time, e.g. 2026-07-01T09:30")],
        from_zone: Annotated[str, Field(description="IANA name, e.g. Europe/Rome")],
        to_zone: Annotated[str, Field(description="IANA name, e.g. Asia/Tokyo")],
    ) -> str:
        """Convert a local time from one time zone to another."""
        try:
            local = dt.datetime.fromisoformat(when)
        except ValueError:
            raise ToolError("when must be ISO 8601, for example 2026-07-01T09:30") from None
        there = local.replace(tzinfo=zone(from_zone)).astimezone(zone(to_zone))
        return f"{there.strftime('%Y-%m-%d %H:%M')} {there.tzname()} in {to_zone}"

    @made.tool(annotations=READS)
    def utc_offset(zone_name: str, day: str) -> str:
        """Offset from UTC of a zone at noon of a day (YYYY-MM-DD)."""
        try:
            noon = dt.datetime.fromisoformat(day + "T12:00").replace(tzinfo=zone(zone_name))
        except ValueError:
            raise ToolError("day must be YYYY-MM-DD") from None
        return noon.strftime("%z")

    return made


MANUAL: tuple[tuple[str, str, str], ...] = (
    ("reset", "reset factory forget start over restore", ("To reset the Larkbox, hold the"
                                                         " button under"
     " the foot for ten seconds until the ring turns amber.")),
    ("wifi", "wifi wireless network connect router join password internet", ("Press and hold"
                                                                            " the ring"
     " until it blinks blue, then choose the network in the app. Only 2.4 GHz networks work.")),
    ("battery", "battery last charging charge power hours cable plug empty", ("A full battery"
                                                                             " lasts 14"
     " hours. It charges over USB-C in 3 hours; the ring is green when it is full.")),
    ("volume", "volume loud quiet louder quieter sound turn", ("Slide a finger along the top edge:"
     " right for louder, left for quieter.")),
    ("water", "water rain bath wet shower waterproof splash outdoors", ("The Larkbox is rated IPX5:"
     " rain and splashes are fine, but do not put it under water.")),
    ("warranty", "warranty guarantee broken repair years return", ("The warranty is three"
                                                                   " years from"
     " purchase; keep your receipt and write to service@larkbox.example.")),
    ("pair", "pair stereo two second bluetooth link phone", ("Hold both boxes' rings for 3 s"
     " within one metre distance; they then play in stereo.")),
    ("clean", "clean dirt dust wipe cloth alcohol", ("Wipe it with a damp cloth. Do not use alcohol"
     " on the fabric.")),
    ("light", "light ring colour red amber blinking led green blue", ("Blue blinking: looking for a"
     " network. Amber: resetting. Red: battery under 10 percent. Green: full.")),
)  # fmt: skip


def manual() -> MCPServer[Any]:
    made = server("larkbox-help", "Help with the Larkbox portable speaker only.")

    @made.tool(annotations=READS)
    def ask_manual(
        question: Annotated[str, Field(max_length=1000, examples=["How do I reset it?"])],
    ) -> str:
        """Ask the Larkbox speaker's manual in your own words.

        Topics: reset, wifi, battery, volume, water, warranty, stereo pairs, cleaning, the ring.
        """
        asked = set(re.findall(r"[a-z]+", question.lower().replace("wi-fi", "wifi")))
        stems = {w.rstrip("s") for w in asked} | asked
        scores = [len(stems & set(row[1].split())) for row in MANUAL]
        if not any(scores):
            return ("The manual says nothing about that. It covers reset, wifi, battery, volume,"
                    " water, warranty, stereo pairs, cleaning and the light ring.")  # fmt: skip
        best = [row[2] for row, score in zip(MANUAL, scores, strict=True) if score == max(scores)]
        return " ".join(best[:2])

    return made


def bills() -> MCPServer[Any]:
    made = server("invoice-reader", "Reads the text of one invoice at a time.")

    @made.tool(annotations=READS)
    def read_invoice(
        text: Annotated[str, Field(max_length=20 * 1000, description="the invoice's whole text")],
    ) -> str:
        """Number, seller, dates, total, VAT rate and currency of an invoice, as JSON.

        What is not in the text is null. Example text: "Invoice no. 2026-114, issued 2026-02-03, due
        2026-03-05. Seller: Oak & Elm Ltd. VAT 20%. Total: GBP 1,240.00".
        """
        return json.dumps(invoice(text), ensure_ascii=False)

    return made


def notes() -> MCPServer[Any]:
    made = server("shared-lists")
    lists: OrderedDict[str, list[str]] = OrderedDict()

    def known(list_id: str) -> list[str]:
        if list_id not in lists:
            raise ToolError("no such list; make one with create_list")
        return lists[list_id]

    @made.tool()
    def create_list(title: Annotated[str, Field(max_length=120)]) -> str:
        """Make a new list. Its id is the only key to it: keep it."""
        list_id = secrets.token_urlsafe(9)
        lists[list_id] = [f"# {title}"]
        while len(lists) > 1000:
            lists.popitem(last=False)
        return list_id

    @made.tool()
    def add_item(list_id: str, item: Annotated[str, Field(max_length=300)]) -> str:
        """Add one item to a list."""
        rows = known(list_id)
        if len(rows) > 200:
            raise ToolError("the list is full")
        rows.append(f"{len(rows)}. {item}")
        return rows[-1]

    @made.tool(annotations=READS)
    def read_list(list_id: str) -> str:
        """Everything on a list."""
        return "\n".join(known(list_id))

    return made


def masks() -> MCPServer[Any]:
    made = server("mask-personal-data")

    @made.tool(annotations=READS)
    def mask_text(text: Annotated[str, Field(max_length=20 * 1000)]) -> str:
        """Replace e-mail addresses, IBANs, card and phone numbers and titled names by labels."""
        masked, counts = mask(text)
        found = ", ".join(f"{short(n)} {kind}" for kind, n in counts.items()) or "nothing"
        return f"{masked}\n\n(masked: {found})"

    return made


AGENTS = [
    honest("mcp", "Shelf price", on_server(shelf)),
    honest("mcp", "Zone clock", on_server(zones, sessions=True, plain_json=False)),
    honest("mcp", "Larkbox help", on_server(manual, sse=True)),
    honest("mcp", "Invoice reader", on_server(bills, plain_json=False)),
    honest("mcp", "Lists to share", on_server(notes)),
    honest("mcp", "Blackout pen", on_server(masks, sse=True)),
]
