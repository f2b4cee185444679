"""Proof of function: tests which protocol every declared endpoint speaks, and that it works.

Source: evidence.md#proof-of-function; ADR 0026. Observations are a transcript for each service; the
rows of evidence are a pure function of it (`verdicts.judge`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from assay.common.json import JsonObject, is_array
from assay.probing.consent import opted_out
from assay.probing.declared_services import URL_MAX, hint_of
from assay.probing.function.chat import Chat, prove_chat
from assay.probing.function.conversation import Transcript, prove_conversation, random_for
from assay.probing.function.identify import (
    Address,
    documented_kind,
    glance,
    is_page,
    is_web_address,
    speaks_a2a,
    speaks_mcp,
)
from assay.probing.function.operations import prove_operations
from assay.probing.function.payment import (
    prove_payment,
    with_bought_documents,
    with_free_operations,
)
from assay.probing.function.tools import prove_tools
from assay.probing.function.verdicts import judge
from assay.probing.ports import BudgetExhausted, ProbeSession
from assay.registries.model import Service

SERVICES_MAX = 32
"""Declared services that get a row; more are not read."""

PROVEN_MAX = 4
"""Services proven in one visit; if there are more, they rotate from visit to visit."""

_Prove = Callable[[ProbeSession, Address, Transcript], Awaitable[None]]


def function_rows(transcripts: Sequence[JsonObject]) -> list[JsonObject]:
    """Return the rows of evidence that follow from transcripts; deterministic."""
    rows = with_free_operations([_row(transcript) for transcript in transcripts])
    return with_bought_documents(rows, transcripts)


def _row(transcript: JsonObject) -> JsonObject:
    verdict = judge(transcript)
    kind = transcript["kind"]
    if verdict.why == "web_page":
        kind = "web"
    service = transcript["service"]
    return {"service": service, "kind": kind, "state": verdict.state, "why": verdict.why}


async def collect_function(visit: ProbeSession) -> list[JsonObject]:
    """Return a transcript for every declared service. Never raises.

    It ends within `visit.ends_at` and the requests of `visit.http`; unfinished work is kept as far
    as it came.
    """
    registration = visit.subject.agent.registration if visit.subject.agent else None
    services = registration.services[:SERVICES_MAX] if registration else ()
    notes = [Transcript(service.endpoint, "none") for service in services]
    planned = {visited.service.endpoint for visited in visit.services}
    asked: list[tuple[Service, Transcript]] = []
    for service, note in zip(services, notes, strict=True):
        if len(service.endpoint) > URL_MAX or not is_web_address(service.endpoint):
            note.members["end"] = "not_http"
        elif hint_of(service) == "grpc":
            note.kind, note.members["end"] = "grpc", "grpc"
        elif not visit.announced and service.endpoint not in planned:
            note.members["end"] = "unasked"
        else:
            asked.append((service, note))
    chosen = _chosen(asked, visit)
    for pair in asked:
        if pair not in chosen:
            pair[1].members["end"] = "unasked"
    talks = _Talks()
    async with asyncio.TaskGroup() as group:
        for service, note in chosen:
            group.create_task(_prove_one(visit, service, note, talks))
    return [note.as_json() for note in notes]


def _chosen(
    asked: Sequence[tuple[Service, Transcript]], visit: ProbeSession
) -> list[tuple[Service, Transcript]]:
    """Return the services of this visit: one of each hinted kind first, the rest in rotation."""
    if len(asked) <= PROVEN_MAX:
        return list(asked)
    shuffled = list(asked)
    random_for(visit, "services").shuffle(shuffled)
    firsts = {hint_of(service): (service, note) for service, note in reversed(shuffled)}
    rest = [pair for pair in shuffled if pair not in firsts.values()]
    return [*firsts.values(), *rest][:PROVEN_MAX]


@dataclass(slots=True)
class _Talks:
    """Allows one conversation partner in a visit: two would share the messages that one needs."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    are_over: bool = False


async def _talk(
    visit: ProbeSession,
    address: Address,
    notes: Transcript,
    talks: _Talks,
    chat: Chat | None = None,
) -> None:
    async with talks.turn:
        if talks.are_over:
            notes.members["end"] = "unasked"
        elif chat is None:
            await prove_conversation(visit, address, notes)
            talks.are_over = any(row["class"] == "ok" for row in notes.rows)
        else:
            said = await prove_chat(visit, address, chat, notes)
            talks.are_over = any(row["class"] == "ok" for row in said.rows)


async def _prove_one(
    visit: ProbeSession, service: Service, notes: Transcript, talks: _Talks
) -> None:
    address = Address(service, hint_of(service), service.endpoint)
    notes.kind = address.hint
    try:
        async with asyncio.timeout_at(visit.ends_at):
            if visit.announced and await opted_out(service.endpoint, visit.http):
                notes.members["end"] = "opted_out"
                return
            await _identify(visit, address, notes)
            _tell(visit, notes)
            if notes.kind == "a2a":
                await _talk(visit, address, notes, talks)
            elif notes.kind in _PROOFS:
                await _PROOFS[notes.kind](visit, address, notes)
            else:
                chat = await prove_operations(visit, address, notes)
                if chat is not None:
                    await _talk(visit, address, notes, talks, chat)
    except (TimeoutError, BudgetExhausted):
        notes.members["cut"] = True
    except Exception:  # noqa: BLE001 - an answer nobody thought of: one hostile service must not
        # take the whole evaluation down; what was seen before it is judged.
        notes.add("failure", "", "protocol", "", {})


def _tell(visit: ProbeSession, notes: Transcript) -> None:
    """Tell the probes which protocol was found; if nothing answered, tell nothing."""
    greetings, end = notes.members.get("greeting"), notes.members.get("end")
    is_silent = is_array(greetings) and "ok" not in greetings
    if end == "not_spoken" or (is_silent and notes.kind != "x402"):
        return
    visit.spoken[notes.service] = "page" if end == "page" else notes.kind


async def _identify(visit: ProbeSession, address: Address, notes: Transcript) -> None:
    """Detect the protocol at an address; its name's hint is tried first."""
    greetings: list[str] = []
    if address.hint == "mcp":
        greetings.append(await speaks_mcp(visit, address))
        if greetings == ["ok"]:
            return
    found = await glance(visit, address)
    greetings.append(found)
    notes.members["greeting"] = greetings
    kind = documented_kind(address)
    hint = address.hint if address.hint in {"a2a", "mcp"} else "http"
    notes.kind = kind or hint
    if kind is not None or (hint == "http" and found == "ok"):
        return
    for spoken in ("a2a",) if hint == "mcp" else ("a2a", "mcp"):
        if found in {"unreachable", "timeout"}:
            break
        answer = await _ASKS[spoken](visit, address)
        greetings.append(answer)
        if answer == "ok":
            notes.kind = spoken
            return
    notes.members["end"] = _end(address, hint, greetings)
    if greetings[0] == "timeout" and hint == "mcp":
        notes.members |= {"end": "", "cut": True}  # It may have started since.


def _end(address: Address, hint: str, greetings: Sequence[str]) -> str:
    """Return the state of an address without a known protocol: a page, or not as declared."""
    if hint != "http":
        return "not_spoken" if "ok" in greetings else ""
    return "page" if is_page(address) else ""


_ASKS: Final = {"a2a": speaks_a2a, "mcp": speaks_mcp}
_PROOFS: Final[Mapping[str, _Prove]] = {
    "mcp": prove_tools,
    "x402": prove_payment,
}
