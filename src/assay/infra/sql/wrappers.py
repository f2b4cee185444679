"""Wrapper configs in SQL."""

from collections.abc import Sequence
from decimal import Decimal

from sqlalchemy import RowMapping, insert, select, update
from sqlalchemy.exc import IntegrityError

from assay.accounts.audit import Note
from assay.infra.sql.audit import write_note
from assay.infra.sql.engine import Database, from_us, to_us
from assay.infra.sql.tables import operators, wrappers
from assay.wrapper.model import UpstreamAuth, WrapperConfig

_WITH_RATE = select(wrappers, operators.c.fee_rate).join(
    operators, operators.c.id == wrappers.c.operator_id
)


class SqlWrapperStore:
    """Implements `wrapper.ports.WrapperStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, config: WrapperConfig, route_key: str, note: Note | None = None) -> bool:
        try:
            async with self._database.write() as connection:
                await connection.execute(insert(wrappers).values(_values(config, route_key)))
                await write_note(connection, note)
        except IntegrityError:
            if route_key in await self._keys(config.operator_id):
                return False
            raise
        return True

    async def list(self, operator_id: str) -> Sequence[WrapperConfig]:
        statement = _WITH_RATE.where(wrappers.c.operator_id == operator_id).order_by(
            wrappers.c.created_us.desc(), wrappers.c.id.desc()
        )
        async with self._database.read() as connection:
            rows = (await connection.execute(statement)).mappings().all()
        return [_config(row) for row in rows]

    async def active(self, operator_id: str) -> Sequence[WrapperConfig]:
        statement = _WITH_RATE.where(
            wrappers.c.operator_id == operator_id,
            wrappers.c.active.is_(True),
            operators.c.suspended_us.is_(None),
        )
        async with self._database.read() as connection:
            rows = (await connection.execute(statement)).mappings().all()
        return [_config(row) for row in rows]

    async def deactivate(self, operator_id: str, config_id: str, note: Note | None = None) -> bool:
        statement = (
            update(wrappers)
            .where(wrappers.c.operator_id == operator_id, wrappers.c.id == config_id)
            .values(active=False, route_key=None)
            .returning(wrappers.c.id)
        )
        async with self._database.write() as connection:
            if (await connection.execute(statement)).one_or_none() is None:
                return False
            await write_note(connection, note)
        return True

    async def reseal(self, config: WrapperConfig, note: Note | None = None) -> None:
        sealed = config.auth.sealed_secret if config.auth else None
        statement = (
            update(wrappers)
            .where(wrappers.c.operator_id == config.operator_id, wrappers.c.id == config.id)
            .values(upstream_auth_secret=sealed)
            .returning(wrappers.c.id)
        )
        async with self._database.write() as connection:
            if (await connection.execute(statement)).one_or_none() is not None:
                await write_note(connection, note)

    async def _keys(self, operator_id: str) -> Sequence[str | None]:
        statement = select(wrappers.c.route_key).where(wrappers.c.operator_id == operator_id)
        async with self._database.read() as connection:
            return (await connection.execute(statement)).scalars().all()


def _values(config: WrapperConfig, route_key: str) -> dict[str, object]:
    return {
        "id": config.id,
        "operator_id": config.operator_id,
        "path": config.path,
        "method": config.method,
        "route_key": route_key,
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
    }


def _config(row: RowMapping) -> WrapperConfig:
    header, secret = row["upstream_auth_header"], row["upstream_auth_secret"]
    return WrapperConfig(
        id=row["id"],
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
        fee_rate=Decimal(row["fee_rate"]),
    )
