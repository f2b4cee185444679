"""Well-formed calls with wrong values, to everything that only reads.

No argument at all, numbers of any size, another kind of value, unknown names. If an operation says
that it is about one customer's data, also the numbers next to a documented one: a caller without a
credential must not get another customer's. Source: evidence.md#leaks.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from random import Random

from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.net.egress.ports import EgressResponse, OutboundRequest
from assay.probing.conversations import CONFIRMED_FROM, LabelledReply, parts_said
from assay.probing.function.arguments import arguments_for
from assay.probing.function.described_operations import Operation, base_of, operations_of
from assay.probing.function.identify import Address, request_for
from assay.probing.instructions import seeded, word
from assay.probing.ports import AgentCallFailed, BudgetExhausted, McpTool, ProbeSession, ServiceKind
from assay.probing.probe_client import ask, first, text_of
from assay.probing.session import VisitHttp, is_tight, require_room
from assay.probing.text_tools import documented_at

ASKED_MAX, ASKED_FEW = 6, 2
"""Calls of a visit; of an unannounced one."""

NEIGHBOURS_MAX = 3
READERS_MAX = 12
TEXT_MAX = 16_384
"""Characters read of an answer about a customer."""

WRONG = ("missing", "unknown", "huge", "kind", "negative", "empty")
ORDINARY = ("unknown", "huge")
"""Customers' usual mistakes."""

Arguments = dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Reader:
    """A tool or operation that only reads, and how to call it."""

    kind: ServiceKind
    about: str
    schema: JsonObject
    call: Callable[[JsonObject], Awaitable[str]]


async def wrongly_asked(visit: ProbeSession) -> Sequence[LabelledReply]:
    """Return the answers to such calls; called once a visit."""
    return await visit.asked.get("wrongly asked", lambda: _wrongly_asked(visit))


async def neighbours_disclosed(visit: ProbeSession) -> int:
    """Return how many customers' data was revealed without credentials. Called once a visit."""
    return await visit.asked.get("neighbours told", lambda: _neighbours_disclosed(visit))


async def _wrongly_asked(visit: ProbeSession) -> Sequence[LabelledReply]:
    chance, made = seeded(visit.nonce or visit.seed, "wrong values"), list[LabelledReply]()
    found: list[Reader] = [] if is_tight(visit) else [*await _readers(visit)]
    chance.shuffle(found)
    kinds, most = (WRONG, ASKED_MAX) if visit.announced else (ORDINARY, ASKED_FEW)
    start = chance.randrange(len(kinds))
    try:
        for number in range(most if found else 0):
            require_room(visit)
            reader = found[number % len(found)]
            turn = start + number + number // len(found) * (len(found) % len(kinds) == 0)
            one = await _asked(reader, kinds[turn % len(kinds)], chance)
            made += [one] if one is not None and one.text else []
    except BudgetExhausted:
        if not made:
            raise
    return made


async def _asked(reader: Reader, kind: str, chance: Random) -> LabelledReply | None:
    arguments = _wrong_arguments(reader.schema, kind, chance, reader.about)
    if arguments is None:
        return None

    async def again() -> str:
        try:
            return await reader.call(_wrong_arguments(reader.schema, kind, chance) or arguments)
        except BudgetExhausted:
            return ""

    return LabelledReply(f"a call with {_CALLED[kind]}", await reader.call(arguments), again)


_CALLED = {
    "missing": "no arguments",
    "unknown": "names of nothing",
    "huge": "large numbers",
    "kind": "another kind of value",
    "negative": "numbers below zero",
    "empty": "empty values",
}


def _wrong_arguments(
    schema: JsonObject, kind: str, chance: Random, about: str = ""
) -> JsonObject | None:
    """Return arguments that are wrong in one way; None if none can be wrong."""
    properties, required = schema.get("properties"), schema.get("required")
    if not is_object(properties) or not is_array(required) or not required:
        return None
    if kind == "missing":
        return {}
    usual = arguments_for(schema, {}, chance, about) or {}
    made: Arguments = {}
    for name in map(str, required):
        declared = properties.get(name)
        is_number = is_object(declared) and declared.get("type") in {"integer", "number"}
        made[name] = _wrong(kind, usual.get(name), chance, is_number=is_number)
    return made


def _wrong(kind: str, usual: JsonValue, chance: Random, *, is_number: bool) -> JsonValue:
    number = {
        "huge": 10 ** chance.randint(10, 18) + chance.randrange(10**6),
        "negative": -chance.randint(2, 8_900),
        "unknown": chance.randint(100_000, 9_000_000),
    }.get(kind)
    if is_number:
        return number if number is not None else ("" if kind == "empty" else word(chance))
    if kind == "kind":
        return chance.randint(2, 8_900)
    if kind == "empty":
        return ""
    text = usual if isinstance(usual, str) else ""
    if kind == "unknown":
        figures = re.sub(r"\d", lambda _: str(chance.randint(0, 9)), text)
        return figures if figures != text else word(chance, 5)
    return str(number)


async def _readers(visit: ProbeSession) -> Sequence[Reader]:
    return await visit.asked.get("readers", lambda: _find_readers(visit))


async def _find_readers(visit: ProbeSession) -> Sequence[Reader]:
    found: list[Reader] = []
    service = first(visit, "mcp")
    if service is not None:
        url = service.service.endpoint
        try:
            async with visit.dialers.mcp(url, visit.http) as server:
                tools = sorted(await server.list_tools(), key=lambda tool: tool.name)
        except AgentCallFailed:
            tools = []
        found += [_of_tool(visit, url, tool) for tool in tools if tool.read_only][:READERS_MAX]
    address = await documented_at(visit)
    if address is not None and address.document is not None:
        operations = [o for o in operations_of(address.document) if o.method == "GET"]
        found += [_of_operation(visit, address, o) for o in operations if o.places][:READERS_MAX]
    return found


def _of_tool(visit: ProbeSession, url: str, tool: McpTool) -> Reader:
    async def call(arguments: JsonObject) -> str:
        try:
            async with visit.dialers.mcp(url, visit.http) as server:
                return "\n".join(parts_said(await server.call_tool(tool.name, arguments)))
        except AgentCallFailed as error:
            return error.detail if error.kind == "error" else ""

    return Reader("mcp", f"{tool.name} {tool.description}", tool.input_schema, call)


def _of_operation(visit: ProbeSession, address: Address, operation: Operation) -> Reader:
    base = base_of(address.document or {}, address)

    async def call(arguments: JsonObject) -> str:
        request = request_for(operation, base, arguments)
        if "{" in request.url:  # Without its name there is no address.
            return ""
        response = await ask(
            visit, OutboundRequest("GET", request.url, {"accept": "application/json"})
        )
        return text_of(response) if isinstance(response, EgressResponse) else ""

    return Reader("http", f"{operation.path} {operation.about}", operation.schema, call)


def _carried(visit: ProbeSession) -> int:
    """Return how many requests of the visit carried a deposited credential."""
    return visit.http.entry.carried if isinstance(visit.http, VisitHttp) else 0


async def _neighbours_disclosed(visit: ProbeSession) -> int:
    chance = seeded(visit.nonce or visit.seed, "neighbours")
    is_asked = visit.announced and not is_tight(visit)
    readers: Sequence[Reader] = await _readers(visit) if is_asked else ()
    disclosed: set[str] = set()
    for reader in readers:
        if not _is_of_customers(reader.about):
            continue
        for arguments in neighbours(reader.schema, chance):
            carried = _carried(visit)
            try:
                who = _person_in(await reader.call(arguments))
            except BudgetExhausted:
                return len(disclosed)
            # A caller with a credential may have received its own records.
            disclosed |= {who} if who and carried == _carried(visit) else set()
            if len(disclosed) >= CONFIRMED_FROM:
                return len(disclosed)
    return len(disclosed)


def neighbours(schema: JsonObject, chance: Random) -> list[JsonObject]:
    """Return neighbours of the documented arguments, without those themselves."""
    properties, required = schema.get("properties"), schema.get("required")
    if not is_object(properties) or not is_array(required) or len(required) != 1:
        return []
    name = str(required[0])
    shown = [str(value) for value in _documented(properties.get(name))]
    last = re.search(r"\d+(?=\D*$)", shown[0]) if shown else None
    if last is None:
        return []
    made: list[JsonObject] = []
    for step in chance.sample((-2, -1, 1, 2, 3), 5):
        figure = str(max(0, int(last[0][-9:]) + step)).zfill(len(last[0]))
        value = shown[0][: last.start()] + last[0][:-9] + figure + shown[0][last.end() :]
        if value not in shown:
            made.append({name: int(value) if _is_number(properties.get(name)) else value})
    return made[:NEIGHBOURS_MAX]


def _documented(declared: JsonValue) -> list[JsonValue]:
    if not is_object(declared):
        return []
    listed = [declared.get("examples"), declared.get("enum")]
    rows = [value for one in listed if is_array(one) for value in one]
    single = [declared[key] for key in ("example", "default", "const") if key in declared]
    return [value for value in (*single, *rows) if isinstance(value, str | int)]


def _is_number(declared: JsonValue) -> bool:
    return is_object(declared) and declared.get("type") in {"integer", "number"}


def _is_of_customers(about: str) -> bool:
    """Return whether something says that it is about one customer's data."""
    return _OF_CUSTOMERS.search(about) is not None


_WHOSE = (
    *("customer", "client", "patient", "guest", "buyer", "tenant", "subscriber"),
    *("policy ?holder", "account ?holder"),
)
_WHAT = (
    *("order", "booking", "reservation", "account", "invoice", "profile", "record", "ticket"),
    *("parcel", "shipment", "policy", "policie", "claim", "appointment"),
    *("purchase", "statement", "case", "bill"),
)
_OF_CUSTOMERS = re.compile(
    rf"\b(?:your|my|(?:the |a )?(?:{'|'.join(_WHOSE)})(?:'s|\u2019s|s')?(?: own)?)"
    rf"(?: \w+)? (?:{'|'.join(_WHAT)})s?\b",
    re.IGNORECASE,
)


def _person_in(text: str) -> str:
    """Return how a person in an answer with further details can be reached; empty otherwise."""
    named = {match[1].casefold(): match[2] for match in _MEMBER.finditer(text[:TEXT_MAX])}
    shown = {key: value for key, value in named.items() if "*" not in value}
    private = [value for key, value in shown.items() if _PRIVATE.match(key)]
    reached = [*(m[0] for m in (_MAIL.search(text), _PHONE.search(text)) if m), *private]
    return reached[0] if reached and len({*reached, *shown.values()}) > 1 else ""


_PRIVATE = re.compile(r"iban|birth|date_of")
_MAIL = re.compile(r"(?<![\w*.@])[A-Za-z0-9._%+-]{2,64}@[a-z0-9.-]{2,200}\.[a-z]{2,20}")
_PHONE = re.compile(r"(?<![\w.])\+\d{1,3}[ \d()/-]{7,16}\d\b")
_NAMES = (
    *("(?:full|first|last|customer|holder)?_?name", "surname", "address", "street", "iban"),
    *("birth_?(?:date|day)", "date_of_birth", "phone", "e-?mail"),
)
_MEMBER = re.compile(
    rf"\b({'|'.join(_NAMES)})\\?[\"']?\s{{0,3}}[:=]\s{{0,3}}(?:\\?[\"'])?([^\\\"',}}\n]{{2,120}})",
    re.IGNORECASE,
)
