"""Stores proven control and its consequences in SQL, for evaluations and the scheduler."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, Select, delete, func, select, tuple_

from assay.common.clock import DAY_US, Clock
from assay.control.identity import REPUTATION
from assay.control.ports import FOLLOWS_US, Elder, OpenFinding, Past
from assay.control.scope import ControlScope, scope_of
from assay.db.engine import Database, to_us
from assay.db.schema.everything import agent_identities, content_bands, control_keys, open_findings

FOUND_MAX = 50
ALIKE_MAX = 20
OF_NAME_MAX = 5
AGENTS_MAX = 1_000

_KEYS, _FINDINGS = control_keys.c, open_findings.c
_IDENTITIES, _BANDS = agent_identities.c, content_bands.c


class SqlControlStore:
    """Reads what `ControlRecords` writes; implements `control.ports.ControlStore`."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def past(self, agent: str) -> Past:
        mine = select(_IDENTITIES.owner, _IDENTITIES.owner_us, _IDENTITIES.first_us).where(
            _IDENTITIES.subject_key == agent
        )
        proven = (
            select(_KEYS.key)
            .where(_KEYS.subject_key == agent, _KEYS.proof != "site", self._is_kept(_KEYS.seen_us))
            .limit(AGENTS_MAX)
        )
        async with self._database.read() as connection:
            row = (await connection.execute(mine)).one_or_none()
        async with self._database.read() as connection:
            keys = frozenset((await connection.execute(proven)).scalars())
        if row is None:
            return Past(None, None, None, keys)
        owned_days = None if row.owner_us is None else (self._now_us() - row.owner_us) // DAY_US
        is_over = owned_days is not None and owned_days >= FOLLOWS_US // DAY_US
        return Past(row.first_us, row.owner, None if is_over else owned_days, keys)

    async def proven_by(
        self, keys: Sequence[str], agents: Sequence[str]
    ) -> Sequence[tuple[str, str]]:
        statement = (
            select(_KEYS.key, _KEYS.subject_key)
            .where(_KEYS.key.in_(keys), _KEYS.subject_key.in_(agents[:AGENTS_MAX]))
            .where(self._is_kept(_KEYS.seen_us))
        )
        async with self._database.read() as connection:
            rows = (await connection.execute(statement)).all()
        return [(row.key, row.subject_key) for row in rows]

    async def following(self, keys: Sequence[str], exclude: str) -> Sequence[OpenFinding]:
        statement = (
            select(_FINDINGS.subject_key, _FINDINGS.check_name, _KEYS.key, _FINDINGS.opened_us)
            .join(control_keys, _KEYS.subject_key == _FINDINGS.subject_key)
            .where(_KEYS.key.in_(keys), _FINDINGS.subject_key != exclude)
            # A former owner answers for findings opened during their ownership, and for no later
            # ones.
            .where(_KEYS.disputed.is_(False), _KEYS.seen_us >= _FINDINGS.opened_us)
            .where(self._is_kept(_FINDINGS.seen_us))
            .order_by(_FINDINGS.opened_us, _FINDINGS.subject_key, _FINDINGS.check_name, _KEYS.key)
            .limit(FOUND_MAX)
        )
        async with self._database.read() as connection:
            rows = (await connection.execute(statement)).all()
        first: dict[tuple[str, str], OpenFinding] = {}
        for row in rows:
            found = OpenFinding(row.subject_key, row.check_name, row.key, row.opened_us)
            named = (row.subject_key, row.check_name)
            if named not in first or first[named].key.startswith("site "):
                first[named] = found
        return list(first.values())

    async def alike(self, bands: Sequence[str], exclude: str) -> Sequence[Elder]:
        opened = func.min(_FINDINGS.opened_us)
        statement = (
            select(_IDENTITIES.subject_key, _IDENTITIES.signature, opened.label("opened_us"))
            .join(content_bands, _BANDS.subject_key == _IDENTITIES.subject_key)
            .join(open_findings, _FINDINGS.subject_key == _IDENTITIES.subject_key)
            .where(_BANDS.band.in_(bands), _IDENTITIES.subject_key != exclude)
            .where(_FINDINGS.check_name != REPUTATION, self._is_kept(_FINDINGS.seen_us))
            .group_by(_IDENTITIES.subject_key, _IDENTITIES.signature)
            .order_by(func.count().desc(), _IDENTITIES.subject_key)
            .limit(ALIKE_MAX)
        )
        async with self._database.read() as connection:
            rows = (await connection.execute(statement)).all()
        return [Elder(r.subject_key, "", 0, r.signature, r.opened_us) for r in rows]

    async def of_name(self, skeleton: str, exclude: str) -> Sequence[Elder]:
        statement = (
            select(agent_identities)
            .where(_IDENTITIES.skeleton == skeleton, _IDENTITIES.subject_key != exclude)
            .order_by(_IDENTITIES.rung.desc(), _IDENTITIES.first_us, _IDENTITIES.subject_key)
            .limit(OF_NAME_MAX)
        )
        async with self._database.read() as connection:
            rows = (await connection.execute(statement)).all()
        return [Elder(r.subject_key, skeleton, r.rung, r.signature, r.first_us) for r in rows]

    async def siblings(self, group: str) -> Sequence[str]:
        """Return the agents that share one visit and one reputation, by their `identity.group`."""
        statement = (
            select(_IDENTITIES.subject_key)
            .where(_IDENTITIES.group_key == group)
            .order_by(_IDENTITIES.subject_key)
            .limit(AGENTS_MAX)
        )
        return await self._agents(statement)

    async def proven_on(self, site: str) -> Sequence[str]:
        """Return agents with proven control on a `ControlScope.site`, for shares of its budget."""
        statement = (
            select(_KEYS.subject_key)
            .where(_KEYS.key == site, _KEYS.proof == "site", self._is_kept(_KEYS.seen_us))
            .order_by(_KEYS.subject_key)
            .limit(AGENTS_MAX)
        )
        return await self._agents(statement)

    async def holders(self, keys: Sequence[str], exclude: str) -> Sequence[str]:
        statement = (
            select(_KEYS.subject_key)
            .where(_KEYS.key.in_(keys), _KEYS.subject_key != exclude)
            .where(_KEYS.proof != "site", self._is_kept(_KEYS.seen_us))
            .distinct()
            .order_by(_KEYS.subject_key)
            .limit(AGENTS_MAX)
        )
        return await self._agents(statement)

    async def proven_paths(self, agent: str, since: datetime) -> Sequence[ControlScope]:
        """Implement `evaluation.credentials.ProvenPaths`."""
        statement = (
            select(_KEYS.key)
            .where(_KEYS.subject_key == agent, _KEYS.proof != "site", _KEYS.key.like("at http%"))
            .where(_KEYS.disputed.is_(False), _KEYS.seen_us >= to_us(since))
            .limit(AGENTS_MAX)
        )
        return _scopes(await self._agents(statement))

    async def paths_of_others(self, agent: str, origin: str, limit: int) -> Sequence[ControlScope]:
        """Return paths of other agents, including disputed ones.

        A doubtful path belongs to no one.
        """
        statement = (
            select(_KEYS.key)
            .where(_KEYS.key.startswith(f"at {origin}/", autoescape=True))
            .where(_KEYS.subject_key != agent, self._is_kept(_KEYS.seen_us))
            .distinct()
            .order_by(_KEYS.key)
            .limit(limit)
        )
        return _scopes(await self._agents(statement))

    async def remove(self, before: datetime, limit: int) -> int:
        """Remove rows last seen before then, a bounded number of each kind; return how many."""
        before_us = to_us(before)
        keyed = (
            (control_keys, (_KEYS.subject_key, _KEYS.key), _KEYS.seen_us),
            (open_findings, (_FINDINGS.subject_key, _FINDINGS.check_name), _FINDINGS.seen_us),
            (content_bands, (_BANDS.band, _BANDS.subject_key), _BANDS.seen_us),
            (agent_identities, (_IDENTITIES.subject_key,), _IDENTITIES.seen_us),
        )
        removed = 0
        async with self._database.write() as connection:
            await self._database.lock(connection, "retention of control")
            for table, columns, seen_us in keyed:
                old = select(*columns).where(seen_us < before_us).limit(limit)
                gone = delete(table).where(tuple_(*columns).in_(old))
                removed += (await connection.execute(gone)).rowcount
        return removed

    async def _agents(self, statement: Select[str]) -> Sequence[str]:
        async with self._database.read() as connection:
            return (await connection.execute(statement)).scalars().all()

    def _is_kept(self, seen_us: ColumnElement[int]) -> ColumnElement[bool]:
        return seen_us >= self._now_us() - FOLLOWS_US

    def _now_us(self) -> int:
        return to_us(self._clock.now())


def _scopes(keys: Sequence[str]) -> list[ControlScope]:
    """Return the addresses that keys name; a long one is stored as a hash, which names none."""
    found = (scope_of(key.partition(" ")[2]) for key in keys)
    return [scope for scope in found if scope is not None]
