"""Extends the proof of one address to neighbouring ones, where that is justified.

A card with a usual name speaks for the addresses in its folder that it sends callers to. A payee
speaks for the documentation of the paid address. Neither does if an agent of another owner has
proven control there: a shared host belongs to no single agent. Source: ADR 0027.
"""

from collections.abc import Sequence
from typing import Final

from assay.common.errors import Unavailable
from assay.common.json import JsonValue
from assay.control.ports import ControlStore
from assay.control.scope import ControlScope, scope_key
from assay.control.statements import only_key
from assay.control.statements_in_documents import lists_path
from assay.registries.subject import Subject

CARD_NAMES: Final = frozenset({"agent-card.json", "agent-card", "agent.json", "card.json", "card"})
"""Names of a folder's card; a card with another name speaks only for itself."""

OTHERS_MAX: Final = 8
"""Agents of one site that are examined; a site with more counts as shared."""


def is_beside(one: ControlScope, other: ControlScope) -> bool:
    """Return whether both are direct children of one folder of one origin."""
    if one.origin != other.origin or one.is_exact or other.is_exact:
        return False
    return one.segments[:-1] == other.segments[:-1]


def is_folders_card(scope: ControlScope) -> bool:
    """Return whether an address is that of its folder's card."""
    return bool(scope.segments) and scope.segments[-1].lower() in CARD_NAMES


def is_documentation(at: ControlScope, document: JsonValue, paid: ControlScope) -> bool:
    """Return whether an OpenAPI document describes a paid address.

    It is in the same folder, or in one above and lists the address.
    """
    if is_beside(at, paid):
        return True
    if at.is_exact or not ControlScope(at.origin, at.host, at.port, at.segments[:-1]).covers(paid):
        return False
    return lists_path(document, "/" + "/".join(paid.segments))


class Neighbours:
    """Finds other agents that the store knows on a site."""

    def __init__(self, subject: Subject, store: ControlStore | None) -> None:
        self._subject = subject
        self._store = store

    async def share(self, scope: ControlScope) -> bool:
        """Return whether another owner's agent has proven control of anything on this origin."""
        starts = tuple(scope_key(scope.origin, "", word) for word in ("at", "only"))
        try:
            return any(
                key.startswith(starts)
                for keys in await self._keys(await self._on(scope))
                for key in keys
            )
        except Unavailable:
            return True

    async def hold(self, scope: ControlScope) -> bool:
        """Return whether one has proven control of exactly this address."""
        if self._store is None:
            return False
        try:
            agents = await self._store.holders((scope.key, only_key(scope)), self._subject.key)
            return bool(await self._keys(agents))
        except Unavailable:
            return True

    async def _on(self, scope: ControlScope) -> Sequence[str]:
        return () if self._store is None else await self._store.proven_on(scope.site)

    async def _keys(self, agents: Sequence[str]) -> Sequence[frozenset[str]]:
        """Return what each of them with another owner has proven. Raises `Unavailable`."""
        others = [one for one in agents if one != self._subject.key]
        if len(others) > OTHERS_MAX:
            raise Unavailable("more agents than are looked at")
        owner = self._subject.agent.owner if self._subject.agent else ""
        pasts = [await self._store.past(one) for one in others] if self._store else []
        return [past.keys for past in pasts if past.owner != owner]
