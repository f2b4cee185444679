"""Proof that an HTTP service works: documented read-only operations, for different inputs.

Without documentation the declared address itself is called, with its own parameters varied.
Source: evidence.md#operations.
"""

from functools import partial
from urllib.parse import urljoin, urlsplit

from assay.common.json import JsonObject, is_array, is_object
from assay.net.egress.ports import EgressResponse, OutboundRequest
from assay.probing.function.addresses import fixed_part
from assay.probing.function.calling import NOT_FOUND, AskableService, Calls, get, varies
from assay.probing.function.chat import Chat, documented_chat
from assay.probing.function.chat_found import bare_chat
from assay.probing.function.choosing import Takes
from assay.probing.function.graphql import prove_graphql
from assay.probing.function.identify import ACCEPTS, Address, find_openapi, is_page
from assay.probing.function.openapi import base_of, operations_of, paths_of
from assay.probing.function.published import published_inputs
from assay.probing.function.request import Operation, request_for
from assay.probing.function.rpc import prove_rpc
from assay.probing.function.shown import declared_operation, demanding, operations_shown
from assay.probing.function.transcript import Transcript, random_for
from assay.probing.function.verdicts import judge
from assay.probing.ports import BudgetExhausted, ProbeSession
from assay.probing.probe_client import ask, decode, unknown_url

PLAIN_MAX = 4
"""Operations without arguments that are called; two of them must be open."""


async def prove_operations(visit: ProbeSession, address: Address, notes: Transcript) -> Chat | None:
    """Ask until function is proven or the visit's time or requests end.

    Return the conversation, if that is all that is left to ask.
    """
    try:
        documented = await find_openapi(visit, address)
        notes.members["documented"] = documented
        if documented:
            await prove_documented(visit, address, notes)
        else:
            await _prove_bare(visit, address, notes)
        if judge(notes.as_json()).state != "functional":
            return (
                documented_chat(visit, address) if documented else await bare_chat(visit, address)
            )
    except BudgetExhausted:
        notes.members["cut"] = True
    return None


async def prove_documented(visit: ProbeSession, address: Address, notes: Transcript) -> None:
    """Do the same for the operations of the address's document. Raises `BudgetExhausted`."""
    notes.members["documented"] = True
    calls = Calls(visit, notes, random_for(visit, address.service.endpoint))
    document = address.document or {}
    notes.know([document.get("info"), list(paths_of(document))])
    components = document.get("components")
    calls.root = components.get("schemas") if is_object(components) else document.get("definitions")
    notes.members["security"] = bool(document.get("security"))
    calls.published = await published_inputs(visit, address.url)
    base = base_of(document, address)
    operations = operations_of(document, calls.published)
    for operation in [o for o in operations if not o.places][:PLAIN_MAX]:
        await _call(calls, base, operation, {})
        if len(notes.rows) - calls.closed() >= 2:  # noqa: PLR2004 - to be compared
            break
    if visit.announced:
        await _ask_unknown(calls, address.service.endpoint)
    for operation in [o for o in operations if o.places and not o.is_talk]:
        schema: JsonObject = {**operation.schema, "$defs": calls.root}
        send = partial(_call, calls, base, operation)
        if await varies(
            calls, AskableService(Takes(operation.path, schema, operation.about), send)
        ):
            return


async def _ask_unknown(calls: Calls, base: str) -> None:
    """Call an impossible address: an operation with the same answer proves nothing."""
    url = unknown_url(calls.visit, base)
    await get(calls, "unknown_path", "unknown", OutboundRequest("GET", url, ACCEPTS), {})


async def _prove_bare(visit: ProbeSession, address: Address, notes: Transcript) -> None:
    """Prove an undocumented address: as declared, varied, then as its site shows."""
    calls = Calls(visit, notes, random_for(visit, address.service.endpoint))
    if _may_be_graphql(address) and await prove_graphql(calls, address):
        return
    if not await prove_rpc(calls, address):
        await _prove_plain(calls, address)
    if is_page(address) and judge(notes.as_json()).state != "functional":
        notes.members["end"] = "page"


async def _prove_plain(calls: Calls, address: Address) -> None:
    """Call an address as it is declared, with other values, and as its site shows."""
    declared = None if is_page(address) else declared_operation(address.url)
    base = urljoin(address.url, "/").rstrip("/")
    if declared is not None:
        await _call(calls, base, *declared)
    elif not is_page(address):
        await get(calls, "call", "declared", OutboundRequest("GET", address.url, ACCEPTS), {})
    if calls.visit.announced:
        await _ask_unknown(calls, address.url)
    calls.refuses_pages = True
    operation = declared[0] if declared else demanding(address.url, _demanded(address.reply))
    if operation is not None and not is_page(address):
        await _vary(calls, base, operation)
    if judge(calls.notes.as_json()).why != "results_vary":
        await prove_shown(calls, address)


async def _vary(calls: Calls, base: str, operation: Operation) -> bool:
    send = partial(_call, calls, base, operation)
    return await varies(
        calls, AskableService(Takes(operation.path, operation.schema, operation.about), send)
    )


async def prove_shown(calls: Calls, address: Address) -> None:
    """Make the calls shown at the declared address or, about it, at its site's home page.

    A page for people does not count as an answer.
    """
    path = urlsplit(address.url).path.rstrip("/")
    start = fixed_part(address.url)
    shown = [] if address.reply is None else operations_shown(address.reply.body, address.url)
    if not shown and path:
        home = await ask(calls.visit, OutboundRequest("GET", urljoin(address.url, "/"), ACCEPTS))
        body = home.body if isinstance(home, EgressResponse) else b""
        shown = [
            o for o in operations_shown(body, urljoin(address.url, "/"))
            if f"{o.path}/".startswith(f"{start}/")
        ]  # fmt: skip
    calls.refuses_pages = True
    base = urljoin(address.url, "/").rstrip("/")
    for operation in shown:
        if await _vary(calls, base, operation):
            return


def _may_be_graphql(address: Address) -> bool:
    """Return whether its name, its path or its answer to a plain request suggests queries."""
    said = address.reply.body[:4000].decode("utf-8", "replace") if address.reply else ""
    places = (address.service.name, urlsplit(address.url).path, said)
    words = ("graphql", "graphiql") if is_page(address) else ("graph", "query", "gql")
    return any(word in place.casefold() for place in places for word in words)


def _demanded(reply: EgressResponse | None) -> list[str]:
    """Return query parameters that a refusal names as missing, in FastAPI's words."""
    document = decode(reply.body) if reply is not None and reply.status in NOT_FOUND else None
    rows = document.get("detail") if is_object(document) else None
    places = [row.get("loc") for row in rows if is_object(row)] if is_array(rows) else []
    return [
        str(place[1])
        for place in places
        if is_array(place) and len(place) == 2 and place[0] == "query"  # noqa: PLR2004 - a pair
    ]


async def _call(calls: Calls, base: str, operation: Operation, arguments: JsonObject) -> None:
    request = request_for(operation, base, arguments)
    role = "shown" if operation.is_shown(arguments) else "call"
    await get(calls, role, operation.path, request, arguments, operation.answer)
