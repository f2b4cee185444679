"""Proof that paid answers are delivered, by buying answers to different inputs.

One answer may be a template. Two, to inputs of ours, must differ beyond the words of request and
document; if money is left, each is bought once more and must be the same.
Source: ADR 0038.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final
from urllib.parse import urljoin, urlsplit

from assay.common.json import JsonObject, is_object
from assay.net.egress.ports import EgressError, EgressResponse, OutboundRequest
from assay.probing.function.acts import does_act
from assay.probing.function.addresses import fixed_part, values_at
from assay.probing.function.calling import TRIES_MAX, Calls, get
from assay.probing.function.choosing import Takes
from assay.probing.function.demanded import demanded_operation, documents_of
from assay.probing.function.identify import ACCEPTS, Address
from assay.probing.function.openapi import base_of, operations_of, paths_of
from assay.probing.function.request import Operation, request_for
from assay.probing.function.shown import declared_operation, operations_shown
from assay.probing.function.transcript import ASKED_CHARS_MAX, Transcript, random_for
from assay.probing.function.verdicts import judge_bought, judge_http
from assay.probing.ports import BudgetExhausted, ProbeSession
from assay.probing.probe_client import ask, decode
from assay.probing.purchases import PaidCalls, PayingHttp, Purse, Sale

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
