"""Wrapper configs in memory."""

from collections.abc import Sequence
from dataclasses import replace

from assay.accounts.audit import Note
from assay.wrapper.match import route_key
from assay.wrapper.model import WrapperConfig


class MemoryWrapperStore:
    def __init__(self) -> None:
        self.rows: dict[str, WrapperConfig] = {}

    async def add(self, config: WrapperConfig, key: str, note: Note | None = None) -> bool:
        del note
        for one in self.rows.values():
            same = route_key(one.method, one.path) == key
            if one.active and same and one.operator_id == config.operator_id:
                return False
        self.rows[config.id] = config
        return True

    async def list(self, operator_id: str) -> Sequence[WrapperConfig]:
        return [c for c in reversed(self.rows.values()) if c.operator_id == operator_id]

    async def active(self, operator_id: str) -> Sequence[WrapperConfig]:
        return [c for c in self.rows.values() if c.operator_id == operator_id and c.active]

    async def deactivate(self, operator_id: str, config_id: str, note: Note | None = None) -> bool:
        del note
        known = self.rows.get(config_id)
        if known is None or known.operator_id != operator_id:
            return False
        self.rows[config_id] = replace(known, active=False)
        return True

    async def reseal(self, config: WrapperConfig, note: Note | None = None) -> None:
        del note
        self.rows[config.id] = config
