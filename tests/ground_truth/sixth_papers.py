"""Invoices and packing lists of the sixth set."""

import datetime as dt
import math
from collections.abc import Sequence
from decimal import Decimal

from pydantic import BaseModel, Field

CENT = Decimal("0.01")


class Line(BaseModel):
    """One line of an invoice."""

    item: str
    quantity: Decimal = Field(gt=0, examples=[4])
    unit_price: Decimal = Field(examples=["18.50"])
    amount: Decimal = Field(examples=["74.00"])


class Invoice(BaseModel):
    """An invoice with one rate of VAT."""

    number: str = Field(examples=["2026-114"])
    issued: dt.date
    due: dt.date
    vat_percent: Decimal = Field(ge=0, le=50, examples=[20])
    lines: list[Line] = Field(min_length=1)
    net: Decimal
    vat: Decimal
    gross: Decimal


def invoice_problems(bill: Invoice) -> tuple[Decimal, Decimal, list[str]]:
    """Net and gross as they should be, and what differs from that."""
    found: list[str] = []
    net = Decimal(0)
    for number, line in enumerate(bill.lines, 1):
        right = (line.quantity * line.unit_price).quantize(CENT)
        net += right
        if right != line.amount:
            found.append(f"line {number} ({line.item}): {line.amount} should be {right}")
    vat = (net * bill.vat_percent / 100).quantize(CENT)
    for name, given, right in (("net", bill.net, net), ("vat", bill.vat, vat),
                               ("gross", bill.gross, net + vat)):  # fmt: skip
        if given != right:
            found.append(f"{name}: {given} should be {right}")
    if bill.due < bill.issued:
        found.append(f"due {bill.due} precedes the day of issue, {bill.issued}")
    return net, net + vat, found


GEAR: dict[str, tuple[int, str, int]] = {
    "socks": (0, "any", 1), "shirt": (0, "any", 2), "warm layer": (0, "cold", 3),
    "gloves": (0, "cold", 0), "rain jacket": (3, "wet", 0), "sun hat": (0, "hot", 0),
    "water bottle": (0, "any", 0), "boots": (5, "hiking", 0), "map": (0, "hiking", 0),
    "tent": (9, "camping", 0), "sleeping bag": (6, "camping", 0), "stove": (4, "camping", 0),
    "gas canister": (0, "camping", 3), "dry bag": (2, "paddling", 0),
    "buoyancy aid": (4, "paddling", 0), "harness": (5, "climbing", 0), "helmet": (3, "climbing", 0),
    "rope": (7, "climbing", 0), "repair kit": (2, "cycling", 0), "cycle helmet": (3, "cycling", 0),
}  # fmt: skip
"""Price a day where we hire it out, when it is needed, and for how many days one lasts."""


def packed(days: int, climate: str, activities: Sequence[str]) -> list[str]:
    wanted = {"any", climate, *activities}
    rows: list[str] = []
    for item, (price, when, lasts) in GEAR.items():
        if when not in wanted:
            continue
        count = math.ceil(days / lasts) if lasts else 1
        hire = f" (hire: {price * days} euros)" if price else ""
        rows.append(f"{count} x {item}{hire}")
    return rows
