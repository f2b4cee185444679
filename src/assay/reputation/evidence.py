"""Builds the signal's evidence from feedback and facts. Pure.

Recent settlements of independent payers, as evidence that the service is delivered.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Final

from assay.common.json import JsonObject, JsonValue
from assay.common.numbers import MICRO
from assay.registries.model import Feedback, OnchainAgent
from assay.reputation.events import rating_of
from assay.reputation.model import (
    RULES,
    AgentFacts,
    FeedbackEvent,
    Payer,
    ProvenPayment,
    Reputation,
    TransferRow,
    payer_json,
    reputation_of,
)
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


DAY_S = 86_400

PAYERS_MAX = 1000
"""Payers listed one by one, those that paid most; the others count like all other voters."""

PROOFS_MAX = 200
"""Listed payments proven by feedback files; the payers include all of them."""

VOTERS_MAX = 500
"""Voters without payments listed one by one; more would change nothing (`rules.OTHERS_MOST`)."""


def evidence_of(
    agent: OnchainAgent, entries: Sequence[Feedback], facts: AgentFacts, *, stale: bool = False
) -> JsonObject:
    """Return the evidence; ratings are exact decimal text, identical on any machine.

    `stale`: it describes the indexed head, not the newest block.
    """
    payers = sorted(facts.payers, key=lambda p: (-p.net, p.address))[:PAYERS_MAX]
    latest = _latest(one for one in entries if _file(one, facts.events) != "bad")
    own = [a for a in latest if a in agent.controllers]
    former = [a for a in latest if a in facts.owners - agent.controllers]
    kept = _kept([a for a in latest if a not in {*own, *former}], {p.address for p in payers})
    counted = sum(rating_of(one) is not None for one in entries)
    unsaid = sum(_file(one, facts.events) == "bad" for one in entries)
    data: dict[str, JsonValue] = {
        "rules": RULES,
        "registered": True,
        "day": facts.day,
        "price": facts.price,
        "payers": {p.address: payer_json(p) for p in sorted(payers, key=_address)},
        "votes": {a: _vote(latest[a], facts.events) for a in kept},
        "voters": len(latest) - len(own) - len(former),
        "entries": counted,
        "discarded": len(entries) - counted,
        "own": len(own),
        "former": len(former),
        "responses": sum(e.responses for e in facts.events.values()),
        "validations": [[who, value] for who, value in sorted(facts.validations)],
    }
    if facts.proofs:
        data["proofs"] = {_where(one): _proof(one.transfer) for one in facts.proofs[:PROOFS_MAX]}
    if facts.staked:
        data["stake"] = {"usd": f"{facts.staked // MICRO}.{facts.staked % MICRO:06d}"}
    if unsaid:
        data["contradicted"] = unsaid
    if stale:
        data["stale"] = True
    main = not agent.network.testnet
    seen = reputation_of(data)
    if settled := settlements(seen):
        data["settlements"] = settled
    return data | {"customers": customers(seen, is_main=main)}


def entries_of(events: Mapping[tuple[str, int], FeedbackEvent]) -> tuple[Feedback, ...]:
    """Return the ratings from the index, for when the registry cannot be asked."""
    return tuple(
        Feedback(e.client, e.index, Decimal(repr(e.rating)), 0, "", "")
        for _, e in sorted(events.items())
        if e.rating is not None and not e.is_revoked
    )


def _file(entry: Feedback, events: Mapping[tuple[str, int], FeedbackEvent]) -> str:
    """Return the state of the entry's file."""
    event = events.get((entry.client, entry.index))
    return "" if event is None else event.file


def _latest(entries: Iterable[Feedback]) -> dict[str, Feedback]:
    """Return the last rating of each address."""
    latest: dict[str, Feedback] = {}
    for entry in entries:
        known = latest.get(entry.client)
        if rating_of(entry) is not None and (known is None or entry.index > known.index):
            latest[entry.client] = entry
    return latest


def _kept(voters: Sequence[str], paying: set[str]) -> list[str]:
    """Return everyone who paid, and as many of the others as can change the result."""
    others = sorted(one for one in voters if one not in paying)
    return sorted([*(one for one in voters if one in paying), *others[:VOTERS_MAX]])


def _vote(entry: Feedback, events: Mapping[tuple[str, int], FeedbackEvent]) -> JsonObject:
    event = events.get((entry.client, entry.index))
    at_s = entry.given_s
    day = event.day if event is not None else None if at_s is None else at_s // DAY_S
    rating = rating_of(entry)
    file = "" if event is None or event.file in {"", "none"} else event.file
    return (
        {"rating": repr(rating)}
        | ({} if day is None else {"day": day})
        | ({"file": file} if file else {})
    )


def _where(proof: ProvenPayment) -> str:
    return f"{proof.network}/{proof.transfer.tx}/{proof.transfer.log}"


def _proof(paid: TransferRow) -> JsonObject:
    return {"by": paid.sender, "to": paid.recipient, "amount": paid.amount, "day": paid.day}


def _address(payer: Payer) -> str:
    return payer.address
