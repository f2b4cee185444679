"""Recent settlements of independent payers, as evidence that the service is delivered. Pure."""

from dataclasses import replace
from typing import Final

from assay.common.json import JsonObject
from assay.reputation.model import Payer, Reputation
from assay.reputation.rules import customers

WITHIN_DAYS: Final = 30
"""Earlier payments say nothing about the current service."""


def settlements(seen: Reputation) -> JsonObject:
    """Return `clusters`, `days`, `usdNet` of charges within `WITHIN_DAYS`; empty without charges.

    Payers count as customers do (`rules.customers`), and only if they were charged, by an x402
    authorisation or by MPP: a wallet's other income says nothing about what is sold. `unread` is
    the number of payers whose sources of funds are not read yet.
    """
    charged = tuple(
        lately
        for payer in seen.payers
        if payer.is_charge and not payer.is_own and (lately := _lately(payer, seen.day)).spent
    )
    if not charged:
        return {}
    found = customers(replace(seen, payers=charged), is_main=True)
    unread = sum(payer.is_pending for payer in charged)
    counted: JsonObject = {name: found[name] for name in ("clusters", "days", "usdNet")}
    return {**counted, "unread": unread} if unread else counted


def _lately(payer: Payer, today: int) -> Payer:
    spent = {day: amount for day, amount in payer.spent.items() if day > today - WITHIN_DAYS}
    return replace(payer, spent=spent, resold={})
