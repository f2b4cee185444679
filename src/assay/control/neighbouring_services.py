"""What a proof of one address says of those beside it, and where it says nothing.

A card by the usual name of one speaks for the addresses in its folder that it sends callers to. A
payee speaks for the documentation of the paid address. Neither does where an agent of another owner
has proven control there: a host that is shared is nobody's. Source: ADR 0027.
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
"""Names of the one card of a folder; a card by another name speaks for itself alone."""

OTHERS_MAX: Final = 8
"""Agents of one site that are looked at; a site of more is shared."""


def is_beside(one: ControlScope, other: ControlScope) -> bool:
    """Whether both lie directly in one folder of one origin."""
    if one.origin != other.origin or one.is_exact or other.is_exact:
        return False
    return one.segments[:-1] == other.segments[:-1]


def is_folders_card(scope: ControlScope) -> bool:
    """Whether an address is that of the card of its folder."""
    return bool(scope.segments) and scope.segments[-1].lower() in CARD_NAMES


def is_documentation(at: ControlScope, document: JsonValue, paid: ControlScope) -> bool:
    """Whether an OpenAPI document is that of a paid address.

    It lies in the same folder, or in one above and lists the address.
    """
    if is_beside(at, paid):
        return True
    if at.is_exact or not ControlScope(at.origin, at.host, at.port, at.segments[:-1]).covers(paid):
        return False
    return lists_path(document, "/" + "/".join(paid.segments))


class Neighbours:
    """Whom else the store knows on a site."""

    def __init__(self, subject: Subject, store: ControlStore | None) -> None:
        self._subject = subject
        self._store = store

    async def share(self, scope: ControlScope) -> bool:
        """Whether an agent of another owner has proven control of anything on this origin."""
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
        """Whether one has proven control of this very address."""
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
        """What each of them that has another owner has proven. Raises `Unavailable`."""
        others = [one for one in agents if one != self._subject.key]
        if len(others) > OTHERS_MAX:
            raise Unavailable("more agents than are looked at")
        owner = self._subject.agent.owner if self._subject.agent else ""
        pasts = [await self._store.past(one) for one in others] if self._store else []
        return [past.keys for past in pasts if past.owner != owner]
