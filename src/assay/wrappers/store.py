"""Stores wrapper configs and their revisions in SQL, and removes old revisions.

It never removes a revision that is in force, that was quoted recently, or that was paid.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Final, cast

from sqlalchemy import (
    ColumnElement,
    RowMapping,
    and_,
    func,
    insert,
    or_,
    select,
    text,
    union,
    update,
)
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from assay.audit.service import ActorKind, AuditEntry
from assay.audit.store import record
from assay.db.engine import Database, from_us, to_us
from assay.db.schema.everything import operators, wrapper_revisions, wrappers
from assay.wrappers.history import FieldChange, Revision
from assay.wrappers.matching import route_key
from assay.wrappers.model import QUOTES_MAX, ChangeResult, UpstreamAuth, WrapperConfig
from assay.wrappers.tier_terms import FreeQuota, TierTerms


def _revision_of(row: RowMapping) -> Revision:
    """Return the revision of a row."""
    kind = cast("ActorKind | None", row["actor_kind"] or None)
    return Revision(
        config=config_of(row),
        at=from_us(row["at_us"]),
        until=None if row["until_us"] is None else from_us(row["until_us"]),
        actor_kind=kind,
        actor_id=row["actor_id"],
        action=row["action"],
        changes=[FieldChange(*change) for change in json.loads(row["changes"])],
    )


def values_of(config: WrapperConfig) -> dict[str, object]:
    """Return the columns that both tables have."""
    return {
        "operator_id": config.operator_id,
        "path": config.path,
        "method": config.method,
        "price": config.price,
        "description": config.description,
        "rate_limit": config.rate_limit,
        "target_url": config.target_url,
        "payment_protocol": config.protocol,
        "payment_network": config.network,
        "payout_address": config.payout_address,
        "trust_enabled": config.trust_enabled,
        "min_score": config.min_score,
        "identity_proof": config.identity_proof,
        "settle": config.settle,
        "max_body_bytes": config.max_body_bytes,
        "timeout_ms": config.timeout_ms,
        "upstream_auth_header": config.auth.header if config.auth else None,
        "upstream_auth_secret": config.auth.sealed_secret if config.auth else None,
        "active": config.active,
        "created_us": to_us(config.created_at),
        "pass_response_headers": " ".join(config.pass_response_headers),
        "cors_origins": " ".join(config.cors_origins),
        "revision": config.revision,
        "cold_start": config.cold_start,
        "pricing": json.dumps(
            [[one.min_tier, one.price, one.rate_limit] for one in config.pricing]
        ),
        "free_calls": None if config.free_quota is None else config.free_quota.calls,
        "free_per": None if config.free_quota is None else config.free_quota.per,
        "enforce": config.enforce,
    }


def config_of(row: RowMapping) -> WrapperConfig:
    """Return the config of either table's columns and the account's `fee_rate`."""
    header, secret = row["upstream_auth_header"], row["upstream_auth_secret"]
    return WrapperConfig(
        id=row["wrapper_id"] if "wrapper_id" in row else row["id"],
        operator_id=row["operator_id"],
        path=row["path"],
        method=row["method"],
        price=row["price"],
        description=row["description"],
        rate_limit=row["rate_limit"],
        target_url=row["target_url"],
        protocol=row["payment_protocol"],
        network=row["payment_network"],
        payout_address=row["payout_address"],
        trust_enabled=row["trust_enabled"],
        min_score=row["min_score"],
        identity_proof=row["identity_proof"],
        settle=row["settle"],
        max_body_bytes=row["max_body_bytes"],
        timeout_ms=row["timeout_ms"],
        auth=None if header is None or secret is None else UpstreamAuth(header, bytes(secret)),
        active=row["active"],
        created_at=from_us(row["created_us"]),
        pass_response_headers=tuple(row["pass_response_headers"].split()),
        cors_origins=tuple(row["cors_origins"].split()),
        revision=row["revision"],
        cold_start=row["cold_start"],
        pricing=tuple(TierTerms(*one) for one in json.loads(row["pricing"])),
        free_quota=None
        if row["free_calls"] is None
        else FreeQuota(row["free_calls"], row["free_per"]),
        enforce=row["enforce"],
        fee_rate=Decimal(row["fee_rate"]),
    )


AT_ONCE: Final = 250
"""Rows that are read before other work runs."""

# With the account's present rate, at which accepted earlier quotes are paid too.
_WITH_RATE = select(wrappers, operators.c.fee_rate).join(
    operators, operators.c.id == wrappers.c.operator_id
)
_REVISIONS = select(wrapper_revisions, operators.c.fee_rate, operators.c.suspended_us).join(
    operators, operators.c.id == wrapper_revisions.c.operator_id
)


class SqlWrapperStore:
    """Wrapper configs and their revisions: each change is a revision, in one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(
        self, config: WrapperConfig, route_key: str | None, entry: AuditEntry | None = None
    ) -> bool:
        """Store; return False if an active config of the operator has the same route key.

        An inactive config has no key.
        """
        try:
            async with self._database.write() as connection:
                values = {**values_of(config), "id": config.id, "route_key": route_key}
                await connection.execute(insert(wrappers).values(values))
                await _write_revision(connection, config, (), entry)
        except IntegrityError:
            if route_key in await self._keys(config.operator_id):
                return False
            raise
        return True

    async def add_all(
        self,
        operator_id: str,
        known: Sequence[WrapperConfig],
        new: Sequence[WrapperConfig],
        entries: Sequence[AuditEntry],
    ) -> bool:
        """Store the operator's new configs, each with its entry, in one transaction.

        Returns False, and stores nothing, if the operator's configs are not `known` as they are.
        """
        mine = select(wrappers.c.id, wrappers.c.revision).where(
            wrappers.c.operator_id == operator_id
        )
        expected = {(config.id, config.revision) for config in known}
        try:
            async with self._database.write() as connection:
                # Read and added in one order: of two concurrent calls, one sees the other.
                await self._database.lock(connection, f"wrappers {operator_id}")
                found = {tuple(row) for row in (await connection.execute(mine)).all()}
                if found != expected:
                    return False
                for at in range(0, len(new), AT_ONCE):
                    some = slice(at, at + AT_ONCE)
                    await _write_new(connection, new[some], entries[some])
        except IntegrityError:
            keys = {_key_of(config) for config in new} - {None}
            if keys & {*await self._keys(operator_id)}:
                return False
            raise
        return True

    async def find(self, operator_id: str, config_id: str) -> WrapperConfig | None:
        """Return the operator's config with this id, active or not."""
        statement = _WITH_RATE.where(_is_his(operator_id, config_id))
        async with self._database.read() as connection:
            row = (await connection.execute(statement)).mappings().one_or_none()
        return None if row is None else config_of(row)

    async def owner_for_admin(self, config_id: str) -> str | None:
        """Return the id of the config's operator."""
        statement = select(wrappers.c.operator_id).where(wrappers.c.id == config_id)
        async with self._database.read() as connection:
            return (await connection.execute(statement)).scalar_one_or_none()

    async def list(self, operator_id: str) -> Sequence[WrapperConfig]:
        """Return the operator's configs, newest first, inactive ones included."""
        statement = _WITH_RATE.where(wrappers.c.operator_id == operator_id).order_by(
            wrappers.c.created_us.desc(), wrappers.c.id.desc()
        )
        async with self._database.read() as connection:
            rows = (await connection.execute(statement)).mappings().all()
        return await _configs(rows)

    async def count(self, operator_id: str, *, is_active: bool | None = None) -> int:
        """Return how many configs the operator has: all, or the active or inactive ones."""
        mine = wrappers.c.operator_id == operator_id
        statement = select(func.count()).select_from(wrappers).where(mine)
        if is_active is not None:
            statement = statement.where(wrappers.c.active.is_(is_active))
        async with self._database.read() as connection:
            return (await connection.execute(statement)).scalar_one()

    async def active(self, operator_id: str) -> Sequence[WrapperConfig]:
        """Return the operator's active configs; none while its account is suspended."""
        statement = _WITH_RATE.where(
            wrappers.c.operator_id == operator_id,
            wrappers.c.active.is_(True),
            operators.c.suspended_us.is_(None),
        )
        async with self._database.read() as connection:
            rows = (await connection.execute(statement)).mappings().all()
        return await _configs(rows)

    async def deactivate(
        self, operator_id: str, config_id: str, entry: AuditEntry | None = None
    ) -> bool:
        """Deactivate a config; return whether the operator has it."""
        statement = (
            update(wrappers)
            .where(_is_his(operator_id, config_id), wrappers.c.active.is_(True))
            .values(active=False, route_key=None, revision=wrappers.c.revision + 1)
            .returning(wrappers.c.id)
        )
        there = _WITH_RATE.where(_is_his(operator_id, config_id))
        async with self._database.write() as connection:
            is_changed = (await connection.execute(statement)).one_or_none() is not None
            row = (await connection.execute(there)).mappings().one_or_none()
            if row is None:
                return False
            if is_changed:
                change = FieldChange("active", before=True, after=False)
                await _write_revision(connection, config_of(row), [change], entry)
            else:
                await record(connection, entry)
        return True

    async def change(
        self, config: WrapperConfig, changes: Sequence[FieldChange], entry: AuditEntry
    ) -> ChangeResult:
        """Replace a config by its next revision.

        Returns `stale` if it is no longer the revision before, and `overlaps` if another active
        config of the operator has the same route key. Then nothing is changed.
        """
        key = _key_of(config)
        statement = (
            update(wrappers)
            .where(
                _is_his(config.operator_id, config.id),
                wrappers.c.revision == config.revision - 1,
            )
            .values({**values_of(config), "route_key": key})
            .returning(wrappers.c.id)
        )
        try:
            async with self._database.write() as connection:
                if (await connection.execute(statement)).one_or_none() is None:
                    return "stale"
                await _write_revision(connection, config, changes, entry)
        except IntegrityError:
            if key in await self._keys(config.operator_id):
                return "overlaps"
            raise
        return "changed"

    async def history(
        self, operator_id: str, config_id: str, limit: int, offset: int
    ) -> tuple[Sequence[Revision], int]:
        """Return the revisions of the operator's config, newest first, and how many there are."""
        mine = _revisions_of(operator_id, config_id)
        counted = select(func.count()).select_from(wrapper_revisions).where(*mine)
        page = _REVISIONS.where(*mine).limit(limit).offset(offset)
        async with self._database.read() as connection:
            total = (await connection.execute(counted)).scalar_one()
            ordered = page.order_by(wrapper_revisions.c.revision.desc())
            rows = (await connection.execute(ordered)).mappings().all()
        return [_revision_of(row) for row in rows], total

    async def revision(self, operator_id: str, config_id: str, number: int) -> WrapperConfig | None:
        """Return the config of a revision.

        It has no target while the account is suspended or deleted, and once the upstream's secret
        has been erased.
        """
        statement = _REVISIONS.where(
            *_revisions_of(operator_id, config_id), wrapper_revisions.c.revision == number
        )
        async with self._database.read() as connection:
            row = (await connection.execute(statement)).mappings().one_or_none()
        if row is None:
            return None
        found = _revision_of(row).config
        is_secret_forgotten = row["upstream_auth_header"] is not None and found.auth is None
        if is_secret_forgotten or row["suspended_us"] is not None:
            return replace(found, target_url="")
        return found

    async def quoted(
        self, operator_id: str, config_id: str, network: str, price: int, since: datetime
    ) -> Sequence[Revision]:
        """Return active revisions with the price on the network that were in force after `since`.

        They come newest first, at most `QUOTES_MAX`.
        """
        revisions = wrapper_revisions.c
        statement = (
            _REVISIONS.where(
                *_revisions_of(operator_id, config_id),
                revisions.payment_network == network,
                revisions.price == price,
                revisions.active.is_(True),
                revisions.target_url != "",
                or_(revisions.until_us.is_(None), revisions.until_us > to_us(since)),
            )
            .order_by(revisions.revision.desc())
            .limit(QUOTES_MAX)
        )
        async with self._database.read() as connection:
            rows = (await connection.execute(statement)).mappings().all()
        return [_revision_of(row) for row in rows]

    async def sealed(self, operator_id: str) -> Sequence[tuple[str, bytes]]:
        """Return the operator's sealed secrets, of configs and revisions, each once with its id."""
        secret, old = wrappers.c.upstream_auth_secret, wrapper_revisions.c.upstream_auth_secret
        statement = union(
            select(wrappers.c.id, secret).where(
                wrappers.c.operator_id == operator_id, secret.is_not(None)
            ),
            select(wrapper_revisions.c.wrapper_id, old).where(
                wrapper_revisions.c.operator_id == operator_id, old.is_not(None)
            ),
        )
        async with self._database.read() as connection:
            rows = (await connection.execute(statement)).all()
        return [(row[0], bytes(row[1])) for row in rows]

    async def reseal(
        self,
        operator_id: str,
        config_id: str,
        old: bytes,
        new: bytes,
        entry: AuditEntry | None = None,
    ) -> None:
        """Replace a sealed secret wherever the operator's config has it."""
        async with self._database.write() as connection:
            changed = 0
            for table, column in ((wrappers, "id"), (wrapper_revisions, "wrapper_id")):
                statement = update(table).where(
                    table.c.operator_id == operator_id,
                    table.c[column] == config_id,
                    table.c.upstream_auth_secret == old,
                )
                done = await connection.execute(statement.values(upstream_auth_secret=new))
                changed += done.rowcount
            if changed:
                await record(connection, entry)

    async def _keys(self, operator_id: str) -> Sequence[str | None]:
        statement = select(wrappers.c.route_key).where(wrappers.c.operator_id == operator_id)
        async with self._database.read() as connection:
            return (await connection.execute(statement)).scalars().all()


async def _configs(rows: Sequence[RowMapping]) -> Sequence[WrapperConfig]:
    """Return the configs of the rows, with pauses for other work."""
    found: list[WrapperConfig] = []
    for at in range(0, len(rows), AT_ONCE):
        await asyncio.sleep(0)
        found += [config_of(row) for row in rows[at : at + AT_ONCE]]
    return found


def _is_his(operator_id: str, config_id: str) -> ColumnElement[bool]:
    return and_(wrappers.c.operator_id == operator_id, wrappers.c.id == config_id)


def _revisions_of(operator_id: str, config_id: str) -> tuple[ColumnElement[bool], ...]:
    revisions = wrapper_revisions.c
    return revisions.operator_id == operator_id, revisions.wrapper_id == config_id


async def _write_revision(
    connection: AsyncConnection,
    config: WrapperConfig,
    changes: Sequence[FieldChange],
    entry: AuditEntry | None,
) -> None:
    """Write the revision, the end of the one before, and a line of the audit trail."""
    at_us = to_us(config.created_at if entry is None else entry.at)
    before = update(wrapper_revisions).where(
        *_revisions_of(config.operator_id, config.id), wrapper_revisions.c.until_us.is_(None)
    )
    await connection.execute(before.values(until_us=at_us))
    values = _revision_values(config, changes, entry)
    await connection.execute(insert(wrapper_revisions).values(values))
    await record(connection, entry)


async def _write_new(
    connection: AsyncConnection, new: Sequence[WrapperConfig], entries: Sequence[AuditEntry]
) -> None:
    """Write new configs, their first revisions, and lines of the audit trail."""
    rows = [{**values_of(one), "id": one.id, "route_key": _key_of(one)} for one in new]
    pairs = zip(new, entries, strict=True)
    revisions = [_revision_values(config, (), entry) for config, entry in pairs]
    await connection.execute(insert(wrappers), rows)
    await connection.execute(insert(wrapper_revisions), revisions)
    await record(connection, *entries)


def _revision_values(
    config: WrapperConfig, changes: Sequence[FieldChange], entry: AuditEntry | None
) -> dict[str, object]:
    return {
        **values_of(config),
        "wrapper_id": config.id,
        "at_us": to_us(config.created_at if entry is None else entry.at),
        "actor_kind": "" if entry is None else entry.actor.kind,
        "actor_id": None if entry is None else entry.actor.operator_id,
        "action": "endpoint.created" if entry is None else entry.action,
        "changes": json.dumps(changes),
    }


def _key_of(config: WrapperConfig) -> str | None:
    """Return what no other active config of the operator may have; None for an inactive one."""
    return route_key(config.method, config.path) if config.active else None


REMOVE: Final = text(
    "DELETE FROM wrapper_revisions WHERE (wrapper_id, revision) IN ("
    "SELECT r.wrapper_id, r.revision FROM wrappers w"
    " JOIN wrapper_revisions r ON r.wrapper_id = w.id"
    " AND r.revision > 1 AND r.revision <= w.revision - :kept"
    " WHERE w.revision > :kept AND r.until_us < :before_us"
    " AND NOT EXISTS (SELECT 1 FROM payments p WHERE p.wrapper_id = r.wrapper_id"
    " AND p.wrapper_revision = r.revision AND p.wrapper_revision > 1) LIMIT :limit)"
)
"""The last condition about payments is that of their index: most are of a first revision."""


class SqlOldRevisions:
    """Removes old revisions, a bounded number at a time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def remove(self, kept: int, before: datetime, limit: int) -> int:
        """Remove revisions that ended before then; return how many.

        The first and the `kept` newest of each wrapper stay, and every one that a payment was
        claimed under.
        """
        values = {"kept": kept, "before_us": to_us(before), "limit": limit}
        async with self._database.write() as connection:
            await self._database.lock(connection, "retention of revisions")
            return (await connection.execute(REMOVE, values)).rowcount
