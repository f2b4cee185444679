"""Wrapper configs and their revisions, as rows."""

import json
from decimal import Decimal
from typing import cast

from sqlalchemy import RowMapping

from assay.audit.service import ActorKind
from assay.db.engine import from_us, to_us
from assay.wrappers.history import FieldChange, Revision
from assay.wrappers.model import UpstreamAuth, WrapperConfig


def revision_of(row: RowMapping) -> Revision:
    """What the columns of a revision hold."""
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
    """The columns that both tables have."""
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
    }


def config_of(row: RowMapping) -> WrapperConfig:
    """What the columns of either table hold, beside the account's `fee_rate`."""
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
        fee_rate=Decimal(row["fee_rate"]),
    )
