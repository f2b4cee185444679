"""Wrapper configs in memory."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from assay.audit.service import AuditEntry
from assay.wrappers.history import FieldChange, Revision
from assay.wrappers.matching import route_key
from assay.wrappers.model import ChangeResult, UpstreamAuth, WrapperConfig


class MemoryWrapperStore:
    def __init__(self) -> None:
        self.rows: dict[str, WrapperConfig] = {}
        self.past: list[Revision] = []

    async def add(self, config: WrapperConfig, key: str, entry: AuditEntry | None = None) -> bool:
        for one in self.rows.values():
            same = route_key(one.method, one.path) == key
            if one.active and same and one.operator_id == config.operator_id:
                return False
        self.rows[config.id] = config
        self._written(config, (), entry)
        return True

    async def find(self, operator_id: str, config_id: str) -> WrapperConfig | None:
        known = self.rows.get(config_id)
        return known if known and known.operator_id == operator_id else None

    async def owner_for_admin(self, config_id: str) -> str | None:
        known = self.rows.get(config_id)
        return None if known is None else known.operator_id

    async def change(
        self, config: WrapperConfig, changes: Sequence[FieldChange], entry: AuditEntry
    ) -> ChangeResult:
        if self.rows[config.id].revision != config.revision - 1:
            return "stale"
        key = route_key(config.method, config.path)
        others = [c for c in await self.active(config.operator_id) if c.id != config.id]
        if config.active and key in {route_key(c.method, c.path) for c in others}:
            return "overlaps"
        self.rows[config.id] = config
        self._written(config, changes, entry)
        return "changed"

    async def history(
        self, operator_id: str, config_id: str, limit: int, offset: int
    ) -> tuple[Sequence[Revision], int]:
        found = [
            one
            for one in reversed(self.past)
            if (one.config.operator_id, one.config.id) == (operator_id, config_id)
        ]
        return found[offset : offset + limit], len(found)

    async def revision(self, operator_id: str, config_id: str, number: int) -> WrapperConfig | None:
        found, _ = await self.history(operator_id, config_id, len(self.past), 0)
        return next((one.config for one in found if one.config.revision == number), None)

    async def quoted(
        self, operator_id: str, config_id: str, network: str, price: int, since: datetime
    ) -> Sequence[Revision]:
        found, _ = await self.history(operator_id, config_id, len(self.past), 0)
        return [
            one
            for one in found
            if (one.config.network, one.config.price) == (network, price)
            and one.config.active
            and (one.until is None or one.until > since)
        ]

    async def list(self, operator_id: str) -> Sequence[WrapperConfig]:
        return [c for c in reversed(self.rows.values()) if c.operator_id == operator_id]

    async def count(self, operator_id: str, *, is_active: bool | None = None) -> int:
        found = await self.list(operator_id)
        return len([c for c in found if is_active is None or c.active == is_active])

    async def active(self, operator_id: str) -> Sequence[WrapperConfig]:
        return [c for c in self.rows.values() if c.operator_id == operator_id and c.active]

    async def deactivate(
        self, operator_id: str, config_id: str, entry: AuditEntry | None = None
    ) -> bool:
        known = self.rows.get(config_id)
        if known is None or known.operator_id != operator_id:
            return False
        self.rows[config_id] = replace(known, active=False, revision=known.revision + 1)
        self._written(self.rows[config_id], (), entry)
        return True

    async def sealed(self, operator_id: str) -> Sequence[tuple[str, bytes]]:
        found = await self.list(operator_id)
        return [(c.id, c.auth.sealed_secret) for c in found if c.auth]

    async def reseal(
        self,
        operator_id: str,
        config_id: str,
        old: bytes,
        new: bytes,
        entry: AuditEntry | None = None,
    ) -> None:
        del entry
        known = await self.find(operator_id, config_id)
        if known and known.auth and known.auth.sealed_secret == old:
            self.rows[config_id] = replace(known, auth=UpstreamAuth(known.auth.header, new))

    def _written(
        self, config: WrapperConfig, changes: Sequence[FieldChange], entry: AuditEntry | None
    ) -> None:
        at = config.created_at if entry is None else entry.at
        self.past = [
            replace(one, until=at) if one.config.id == config.id and one.until is None else one
            for one in self.past
        ]
        actor = None if entry is None else entry.actor
        action = "endpoint.created" if entry is None else entry.action
        kind, who = (None, None) if actor is None else (actor.kind, actor.operator_id)
        self.past.append(Revision(config, at, None, kind, who, action, changes))
