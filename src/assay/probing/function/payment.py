"""Proof of a service that sells: a payable demand, and evidence that the sale is worth it.

Proof that paid answers are delivered, by buying answers to different inputs.

One answer may be a template. Two, to inputs of ours, must differ beyond the words of request and
document; if money is left, each is bought once more and must be the same.
Source: ADR 0038.

The evidence is one of three: operations that the service's documentation offers free, payers
independent of the agent that settled with its wallet, and purchases from it, if the operator pays
for them. Source: evidence.md#paid-services; ADR 0026; ADR 0038.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Final
from urllib.parse import urljoin, urlsplit

from assay.common.json import JsonObject, JsonValue, is_object
from assay.control.scope import scope_of
from assay.control.statements_in_documents import lists_path
from assay.net.egress.ports import EgressError, EgressResponse, OutboundRequest
from assay.probing.declared_services import hint_of
from assay.probing.function.acts import does_act
from assay.probing.function.calling import TRIES_MAX, Calls, get
from assay.probing.function.choosing import Takes
from assay.probing.function.conversation import ASKED_CHARS_MAX, Transcript, random_for
from assay.probing.function.described_operations import (
    base_of,
    declared_operation,
    demanded_operation,
    documents_of,
    operations_of,
    operations_shown,
    paths_of,
)
from assay.probing.function.examples import fixed_part, values_at
from assay.probing.function.identify import ACCEPTS, Address, Operation, find_openapi, request_for
from assay.probing.function.operations import prove_documented
from assay.probing.function.verdicts import judge, judge_bought, judge_http
from assay.probing.paid_calls import PaidCalls, PayingHttp, Purse, Sale
from assay.probing.ports import BudgetExhausted, ProbeSession
from assay.probing.probe_client import PaymentDemand, ask, consistent, decode, read, unpaid

KEEP_S: Final = 3.0
"""Part of a visit's time reserved for storing what was bought."""

DRAWS: Final = 8
"""Attempts to draw arguments that the owner does not show."""


async def buy(
    visit: ProbeSession, address: Address, notes: Transcript, *, documented: bool
) -> None:
    """Buy, in a visit that looks like a customer's; record what was bought, now or recently."""
    agent, sales = visit.subject.agent, visit.sales
    if sales is None or agent is None or agent.wallet is None or address.reply is None:
        return
    sale = Sale(
        visit.subject.key,
        address.service.endpoint,
        agent.wallet.lower(),
        agent.owner.lower(),
        address.reply,
    )
    if not visit.announced:
        await _shop(sales, sale, visit, address, documented=documented)
    known = await sales.known(sale)
    if known is not None:
        notes.members["bought"] = known


async def _shop(
    sales: PaidCalls, sale: Sale, visit: ProbeSession, address: Address, *, documented: bool
) -> None:
    base, operations = await _sold(visit, address)
    purse = await sales.open(sale) if operations else None
    if purse is None:
        return
    http = PayingHttp(visit.http, purse, address.url)
    notes = Transcript(address.service.endpoint, "http")
    notes.members["documented"] = documented
    if documented:
        notes.members["document"] = address.document_url[:ASKED_CHARS_MAX]
    ends_at = None if visit.ends_at is None else visit.ends_at - KEEP_S
    try:
        async with asyncio.timeout_at(ends_at):
            calls = _calls(replace(visit, http=http), address, notes)
            for operation in operations:
                await _vary(calls, base, operation, purse)
                if judge_http(notes.as_json()).why == "results_vary" or not purse.calls_left:
                    break
    except (TimeoutError, BudgetExhausted):
        notes.members["cut"] = True
    finally:
        notes.members["paid"] = http.paid
        bought = notes.as_json()
        if http.paid:
            is_proven = judge_bought(bought).state == "functional"
            await sales.keep(purse, bought, is_proven=is_proven)


def _calls(visit: ProbeSession, address: Address, notes: Transcript) -> Calls:
    """Return the calls in the address's document; the words of it and of the 402 are known."""
    calls = Calls(visit, notes, random_for(visit, f"{address.service.endpoint} bought"))
    document = address.document or {}
    demands = [] if address.reply is None else documents_of(address.reply)
    notes.know([document.get("info"), list(paths_of(document)), *demands])
    components = document.get("components")
    calls.root = components.get("schemas") if is_object(components) else document.get("definitions")
    return calls


async def _sold(visit: ProbeSession, address: Address) -> tuple[str, Sequence[Operation]]:
    """Return the operations with arguments at the declared address, and their base path.

    They come from the document; without one from the 402, the address itself, or the home page of
    its site.
    """
    base = urljoin(address.url, "/").rstrip("/")
    path = urlsplit(address.url).path
    document = address.document or {}
    if paths_of(document):
        base = base_of(document, address)
        listed = [o for o in operations_of(document) if o.places]
        start = urlsplit(base).path.rstrip("/")
        own = [o for o in listed if values_at(start + o.path, path) is not None]
        return base, own or [o for o in listed if fixed_part(start + o.path) == path.rstrip("/")]
    said = None if address.reply is None else demanded_operation(address.reply, address.url)
    declared = declared_operation(address.url)
    if said is None and declared is not None and not does_act(path, "", says_it_reads=True):
        said = declared[0]
    if said is not None:
        return base, [said]
    home = await ask(visit, OutboundRequest("GET", f"{base}/", ACCEPTS))
    pages = [one.body for one in (address.reply, home) if isinstance(one, EgressResponse)]
    shown = [o for body in pages for o in operations_shown(body, address.url)]
    start = fixed_part(address.url)
    return base, [o for o in shown if f"{o.path}/".startswith(f"{start}/")]


async def _vary(calls: Calls, base: str, operation: Operation, purse: Purse) -> None:
    """Buy answers to different inputs, then the same once more, as long as money is left."""
    send = partial(_call, calls, base, operation)
    takes = Takes(operation.path, {**operation.schema, "$defs": calls.root}, operation.about)
    for _ in range(TRIES_MAX):
        arguments = _own(calls, takes, operation)
        if arguments is None or not purse.calls_left or calls.closed(takes.name):
            break
        await send(arguments)
        if judge_http(calls.notes.as_json()).why == "results_vary":
            break
    for row in _answered(calls, takes):
        arguments = decode(str(row["asked"]).removeprefix(f"{takes.name} ").encode())
        if not purse.calls_left or judge_http(calls.notes.as_json()).why != "results_vary":
            return
        if is_object(arguments):
            await send(arguments)


def _own(calls: Calls, takes: Takes, operation: Operation) -> JsonObject | None:
    """Return arguments that the owner does not show, if any are known: not prepared for."""
    arguments = calls.new_arguments(takes)
    for _ in range(DRAWS):
        if arguments is None or not operation.is_shown(arguments):
            break
        arguments = calls.new_arguments(takes)
    return arguments


def _answered(calls: Calls, takes: Takes) -> list[JsonObject]:
    """Return the first answer, and the first different one."""
    rows = [r for r in calls.notes.rows if r.get("tool") == takes.name[:200] and r.get("valid")]
    others = [row for row in rows[1:] if row["answer"] != rows[0]["answer"]]
    return [*rows[:1], *others[:1]]


async def _call(calls: Calls, base: str, operation: Operation, arguments: JsonObject) -> None:
    request = request_for(operation, base, arguments)
    role = "shown" if operation.is_shown(arguments) else "call"
    with suppress(EgressError):
        await get(calls, role, operation.path, request, arguments, operation.answer)


AMOUNT_MAX: Final = 100 * 10**6
"""Largest plausible price of one call, in base units of assets of six decimals: 100 USD."""

STEADY_TIMES: Final = 2
"""Factor by which the next price may rise: prices that follow load or a market move by less."""

ADVERTISED_TIMES: Final = 10
"""Factor by which the demand may exceed the advertised price."""

_ASSETS: Final = frozenset(
    # USDC as its issuer lists it: Base, Base Sepolia, Ethereum, Polygon, Arbitrum, OP, Avalanche,
    # Solana, Solana devnet.
    {
        "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913",
        "0x036cbd53842c5426634e7929541ec2318f3dcf7e",
        "0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48",
        "0x3c499c542cef5e3811e1192ce70d8cc03d5c3359",
        "0xaf88d065e77c8cc2239327c5edb3a432268e5831",
        "0x0b2c639c533813f4aa9d7837caf62653d097ff85",
        "0xb97ef9ef8734c71904d8002f8b6bc66dd9c48a6e",
        "epjfwdd5aufqssqem2qn1xzybapc8g4weggkzwytdt1v",
        "4zmmc9srt5ri5x14gagxhahii3gnpaeeryyjmp7ncdu",
    }
)


async def prove_payment(visit: ProbeSession, address: Address, notes: Transcript) -> None:
    """Judge the 402 that was seen, and the next one; ask what is free, and else perhaps buy."""
    found = None if address.reply is None else read(address.reply)
    agent = visit.subject.agent
    if found is None or agent is None:
        return
    payees = {offer.pay_to for offer in found.offers}
    wallet = None if agent.wallet is None else agent.wallet.lower()
    notes.members |= {
        "valid": found.is_valid and consistent(found),
        "known_asset": any(offer.asset in _ASSETS for offer in found.offers),
        "sane": _is_sane(found),
        "payee": bool(payees) and payees <= {c.lower() for c in agent.controllers},
        "wallet": payees == {wallet},
    }
    if not all(notes.members[name] for name in _NEEDED):
        return
    notes.members["steady"] = await _is_steady(visit, address.url, found)
    paid = address.url
    documented = await find_openapi(visit, address)
    document = address.document if documented else None
    notes.members["as_advertised"] = is_as_advertised(found, document, urlsplit(paid).path)
    same = _origin(address.document_url) == _origin(paid)
    is_own = same and document is not None and lists_path(document, urlsplit(paid).path)
    if is_own and not _has_free_service(visit, paid):
        await prove_documented(visit, address, notes)
    if all(notes.members[name] for name in _TO_BE_BOUGHT) and not _is_proven(notes):
        await buy(visit, address, notes, documented=documented)


def _is_proven(notes: Transcript) -> bool:
    """Return whether its free operations proved it: then nothing is bought."""
    return judge(notes.as_json()).state == "functional"


_NEEDED: Final = ("valid", "known_asset", "sane", "payee")
_TO_BE_BOUGHT: Final = ("wallet", "steady", "as_advertised")


async def _is_steady(visit: ProbeSession, url: str, found: PaymentDemand) -> bool:
    """Return whether the next unpaid call has the same payees, and at most twice the price.

    A call without a demand, or without an answer, says nothing of the price.
    """
    again = read(await unpaid(visit, url, {"cache-control": "no-cache"}))
    if again is None or not again.offers:
        return True
    same = {o.pay_to for o in again.offers} == {o.pay_to for o in found.offers}
    return same and _dearest(again) <= STEADY_TIMES * _dearest(found)


def is_as_advertised(found: PaymentDemand, document: JsonValue, path: str) -> bool:
    """Return whether a call costs at most `ADVERTISED_TIMES` the price in the API's document.

    The price is that of the paid operation, or the highest if it has none; True without any.
    """
    paths = document.get("paths") if is_object(document) else None
    items: JsonObject = paths if is_object(paths) else {}
    own, listed = _prices(items.get(path)), [p for item in items.values() for p in _prices(item)]
    prices = own or listed
    return not prices or _dearest(found) <= ADVERTISED_TIMES * max(prices) * 10**6


def _prices(item: JsonValue) -> list[Decimal]:
    """Return prices in USD of a path's operations, from `x-payment-info`.

    Source: draft-payment-discovery-00, and common usage: a text, an object with an amount, or the
    top of a range.
    """
    prices: list[Decimal] = []
    for operation in item.values() if is_object(item) else ():
        said = operation.get("x-payment-info") if is_object(operation) else None
        price_document: JsonObject = said if is_object(said) else {}
        price = price_document.get("price")
        for text in (
            price.get("amount") if is_object(price) else price,
            price_document.get("maxPrice"),
        ):
            with suppress(InvalidOperation):
                found = Decimal(str(text).strip().removeprefix("$"))
                prices += [found] if found.is_finite() and found > 0 else []
    return prices


def _dearest(found: PaymentDemand) -> int:
    return max(int(offer.amount) for offer in found.offers)


def _has_free_service(visit: ProbeSession, url: str) -> bool:
    """Return whether a possibly free service is declared on the same host: it has its own proof."""
    agent = visit.subject.agent
    listed = agent.registration.services if agent and agent.registration else ()
    return any(hint_of(one) == "http" and _origin(one.endpoint) == _origin(url) for one in listed)


def with_settlements(transcripts: Sequence[JsonObject], fact: JsonObject) -> list[JsonObject]:
    """Add settlements to the transcripts of services that sell to the wallet.

    `fact` is `{"clusters", "days", "usdNet", "unread", "needs"}`: the independent payers, and the
    required numbers; `unread` if chains could not be read.
    """
    return [
        {**one, "settled": fact} if one.get("wallet") is True and one.get("kind") == "x402" else one
        for one in transcripts
    ]


def with_free_operations(rows: Sequence[JsonObject]) -> list[JsonObject]:
    """Return the rows; a service that only sells works if a free one of the same host does.

    Control of that one is required separately.
    """
    free = {
        _origin(str(row["service"]))
        for row in rows
        if row["kind"] == "http" and row["state"] == "functional"
    }
    return [
        {**row, "state": "functional", "why": "free_operations"}
        if row["why"] == "payment_needed" and _origin(str(row["service"])) in free
        else row
        for row in rows
    ]


def with_bought_documents(
    rows: Sequence[JsonObject], transcripts: Sequence[JsonObject]
) -> list[JsonObject]:
    """Return the rows; a document declared as a service works if its operations were bought.

    Asked directly, its operations demand payment. A wrong answer of it stays wrong.
    """
    bought = [one.get("bought") for one in transcripts if one.get("kind") == "x402"]
    listed = {
        str(one["document"])
        for one in bought
        if is_object(one) and "document" in one and judge_bought(one).state == "functional"
    }
    return [
        {**row, "state": "functional", "why": "paid_operations"}
        if row["kind"] == "http" and row["state"] in _UNASKED and row["service"] in listed
        else row
        for row in rows
    ]


_UNASKED: Final = frozenset({"refuses", "closed", "unfinished"})


def _origin(url: str) -> str:
    """Return the origin; the URL itself if it has none."""
    scope = scope_of(url)
    return url if scope is None else scope.origin


def _is_sane(found: PaymentDemand) -> bool:
    """Return whether every price is above zero and below the worth of a call."""
    return all(0 < int(offer.amount) <= AMOUNT_MAX for offer in found.offers)
