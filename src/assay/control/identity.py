"""Derives consequences of proven control, and finds copies: one member of the evidence.

Open critical findings and bad reputation follow every proven control for 90 days. A new agent whose
texts are near-identical to those of an agent with an open critical finding, or that appears on the
same site, waits for one unannounced visit. Source: ADR 0027.
"""

import asyncio
import hashlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from assay.common.errors import Unavailable
from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.control.ports import (
    ControlledEndpoint,
    ControlStore,
    LookUpUnavailable,
    OpenFinding,
    Past,
    ServiceReader,
    TxtRecords,
)
from assay.control.proofs import ControlDependencies, find_control
from assay.control.scope import scope_key
from assay.control.similarity import ALIKE, bands, likeness, name_skeleton, signature
from assay.control.statements import ServiceControl, only_key
from assay.net.egress.ports import EgressClient
from assay.registries.model import Subject

IMITATED_RUNG: Final = 3
"""Names of agents on this rung or above are protected."""

REPUTATION: Final = "reputation"
"""Marks a bad reputation among open findings."""

ASK_PART: Final = 0.75
"""Part of the time that requests to hosts may take; the rest is for the store."""

TEXTS_MAX: Final = 400
"""Texts of cards and tools that are compared."""


@dataclass(frozen=True, slots=True)
class Control:
    """Collects two members of the evidence, `control` and `identity`."""

    store: ControlStore
    txt: TxtRecords | None = None

    async def collect(
        self,
        subject: Subject,
        endpoints: Sequence[ControlledEndpoint],
        http: EgressClient,
        services: ServiceReader,
        left_s: float = 5.0,
    ) -> dict[str, JsonValue]:
        """Return `{"control": rows, "identity": object}`; never raises for external faults.

        Work that does not fit into `left_s` seconds is reported as `unfinished`.
        """
        if subject.agent is None:
            return {}
        needs = ControlDependencies(http, services, self.txt, self.store)
        found = await find_control(subject, endpoints, needs, left_s * ASK_PART)
        rows: list[JsonValue] = [one.row(subject) for one in found]
        try:
            async with asyncio.timeout(left_s * (1 - ASK_PART)):
                seen = await self._identity(subject, endpoints, found, services)
        except (Unavailable, TimeoutError):
            return {"control": rows}
        return {"control": rows, "identity": seen}

    async def _identity(
        self,
        subject: Subject,
        endpoints: Sequence[ControlledEndpoint],
        found: Sequence[ServiceControl],
        services: ServiceReader,
    ) -> JsonObject:
        past = await self.store.past(subject.key)
        proven = proven_keys(subject, found)
        keys = sorted(proven)
        at = [key for key in keys if not key.startswith("address ")]
        following = await self.store.following(_looked_up(keys, found), subject.key)
        name = (
            subject.agent.registration.name if subject.agent and subject.agent.registration else ""
        )
        texts = signature(await _texts(endpoints, services), [name])
        moved = _is_transferred(subject, past, at)
        seen: dict[str, JsonValue] = {
            "keys": {key: proven[key] for key in keys},
            "disputed": sorted(one.proven.key for one in found if one.proven and one.rivals),
            "sites": sorted({o.scope.site for o in found if o.proven and o.scope and not o.rivals}),
            "group": sibling_key(subject, at),
            "owner": subject.agent.owner if subject.agent else "",
            "transferred": moved or None,
            "heldDays": 0 if moved else past.owned_days,
            "name": name_skeleton(name) or None,
            "signature": texts or None,
            **_followed(subject, following, past),
            "clone": await self._clone(subject, texts, past, set(keys)),
            "imitates": await self._imitated(subject, name, past, set(keys)),
        }
        return {name: value for name, value in seen.items() if value is not None and value != []}

    async def _clone(
        self, subject: Subject, texts: str, past: Past, keys: set[str]
    ) -> JsonObject | None:
        """Return the agent with an open critical finding of which this new agent is a copy."""
        for other in await self.store.alike(bands(texts), subject.key) if texts else ():
            share = likeness(texts, other.signature)
            if share >= ALIKE and _is_newer(subject, past, other.agent, other.first_us):
                if await self._shares(keys, other.agent):
                    continue  # Its findings follow anyway.
                return {"agent": other.agent, "likeness": round(share, 2)}
        return None

    async def _imitated(
        self, subject: Subject, name: str, past: Past, keys: set[str]
    ) -> JsonObject | None:
        """Return the older agent whose name looks like this one's."""
        shown = name_skeleton(name)
        for other in await self.store.of_name(shown, subject.key) if shown else ():
            if not _is_newer(subject, past, other.agent, other.first_us):
                continue
            if await self._shares(keys, other.agent):
                continue
            return {"agent": other.agent, "scored": other.rung >= IMITATED_RUNG}
        return None

    async def _shares(self, keys: set[str], agent: str) -> bool:
        return bool(keys & (await self.store.past(agent)).keys)


def proven_keys(subject: Subject, found: Sequence[ServiceControl]) -> dict[str, str]:
    """Return the addresses and wallets this agent provably controls, each with its proof.

    A token can be sent to anyone: an owner counts only while a wallet is registered, which a
    transfer removes and the new owner sets.
    """
    own = (one.proven for one in found if one.proven and not one.is_lent)
    keys = {proven.key: str(proven.proof) for proven in own}
    agent = subject.agent
    if agent is not None and agent.wallet is not None:
        keys |= {f"address {address}": "registry" for address in agent.controllers}
    return keys


def sibling_key(subject: Subject, at: Sequence[str]) -> str | None:
    """Return the key that siblings share; None without proven control.

    It is equal for agents of one owner whose services are under the same proven addresses. They
    share one visit and one reputation.
    """
    if subject.agent is None or not at:
        return None
    text = "\n".join((subject.agent.owner, *sorted(at)))
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]


def _is_transferred(subject: Subject, past: Past, at: Sequence[str]) -> bool:
    """Return whether the token changed owner and not all services kept their control."""
    if subject.agent is None or past.owner is None or past.owner == subject.agent.owner:
        return False
    return not at or not set(at) <= past.keys


def _looked_up(keys: Sequence[str], found: Sequence[ServiceControl]) -> list[str]:
    """Return the keys under which findings may follow this agent.

    A finding at a path follows everything at or below that path, never what is beside or above it.
    A disputed proof is not looked up, because it belongs to neither party.
    """
    wanted = {key for key in keys if key.startswith("address ")}
    for one in found:
        if one.proven is None or one.scope is None or one.rivals:
            continue
        origin, segments = one.scope.origin, one.scope.segments
        paths = ("/".join(segments[:at]) for at in range(min(len(segments), 16) + 1))
        wanted |= {scope_key(origin, path) for path in paths}
        wanted |= {one.scope.key, only_key(one.scope), one.scope.site}
    return sorted(wanted)


def _followed(
    subject: Subject, following: Sequence[OpenFinding], past: Past
) -> dict[str, JsonValue]:
    inherited: list[JsonValue] = []
    bad: list[JsonValue] = []
    beside: list[JsonValue] = []
    for one in following:
        row: JsonObject = {"agent": one.agent, "check": one.check, "by": one.key.partition(" ")[0]}
        if one.key.startswith("site "):
            if one.check != REPUTATION and _is_newer(subject, past, one.agent, one.opened_us):
                beside.append(row)
        else:
            (bad if one.check == REPUTATION else inherited).append(row)
    whose = {str(r["agent"]) for r in (*inherited, *bad) if is_object(r)}
    beside = [row for row in beside if is_object(row) and row["agent"] not in whose]
    return {"inherited": inherited, "badReputation": bad, "sameSite": beside}


def _is_newer(subject: Subject, past: Past, other: str, since_us: int) -> bool:
    """Return whether this agent appeared after the other: seen later, and without a lower id."""
    if past.first_us is not None and past.first_us <= since_us:
        return False
    registry, _, number = other.rpartition("/")
    if registry == subject.network.caip2 and number.isdigit() and subject.agent_id.isdigit():
        return int(subject.agent_id) > int(number)
    return True


async def _texts(endpoints: Sequence[ControlledEndpoint], services: ServiceReader) -> list[str]:
    """Return the self-descriptions of cards and tools."""
    texts: list[str] = []
    for endpoint in endpoints:
        with suppress(LookUpUnavailable):
            if endpoint.kind == "a2a":
                card = await services.card(endpoint.url)
                texts += _card_texts(card.document) if card else []
            elif endpoint.kind == "mcp":
                tools = await services.tools(endpoint.url)
                texts += [f"{tool.name} {tool.description}" for tool in tools]
    return texts[:TEXTS_MAX]


def _card_texts(card: JsonObject) -> list[str]:
    skills = card.get("skills")
    rows = [card, *(s for s in (skills if is_array(skills) else ()) if is_object(s))]
    texts: list[str] = []
    for row in rows[:TEXTS_MAX]:
        examples = row.get("examples")
        said = [row.get("description"), *(examples if is_array(examples) else ())]
        if row is not card:
            said.append(row.get("name"))
        texts += [text for text in said if isinstance(text, str)]
    return texts
