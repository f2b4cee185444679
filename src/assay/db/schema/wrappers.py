"""The tables of wrappers and of their earlier revisions."""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
)

from assay.db.schema.metadata import METADATA


def _config() -> list[Column[Any]]:
    """Return the columns of a config that both tables share."""
    return [
        Column("operator_id", String(36), ForeignKey("operators.id"), nullable=False),
        Column("path", Text, nullable=False),
        Column("method", String(32), nullable=False),
        Column("price", BigInteger, nullable=False),
        Column("description", Text, nullable=False),
        Column("rate_limit", BigInteger),
        Column("target_url", Text, nullable=False),
        Column("payment_protocol", String(8), nullable=False),
        Column("payment_network", String(32), nullable=False),
        Column("payout_address", String(42)),
        Column("trust_enabled", Boolean, nullable=False),
        Column("min_score", Float(53), nullable=False),
        Column("identity_proof", String(16), nullable=False),
        Column("settle", String(8), nullable=False),
        Column("max_body_bytes", BigInteger, nullable=False),
        Column("timeout_ms", Integer, nullable=False),
        Column("upstream_auth_header", Text),
        Column("upstream_auth_secret", LargeBinary),
        Column("active", Boolean, nullable=False),
        Column("created_us", BigInteger, nullable=False),
        # Names and origins, separated by spaces.
        Column("pass_response_headers", Text, nullable=False, server_default=""),
        Column("cors_origins", Text, nullable=False, server_default=""),
        # The treatment of an unproven agent; None: the threshold decides.
        Column("cold_start", String(8)),
    ]


wrappers = Table(
    "wrappers",
    METADATA,
    Column("id", String(36), primary_key=True),
    *_config(),
    # Unique among an operator's active configs; None once deactivated.
    Column("route_key", Text),
    # Counts its changes: a change names the version it was made from.
    Column("revision", Integer, nullable=False, server_default="1"),
    Index("ix_wrappers_route", "operator_id", "route_key", unique=True),
)

wrapper_revisions = Table(
    "wrapper_revisions",
    METADATA,
    Column("wrapper_id", String(36), primary_key=True),
    Column("revision", Integer, primary_key=True),
    *_config(),
    # In force between the two moments; the newest one has no end.
    Column("at_us", BigInteger, nullable=False),
    Column("until_us", BigInteger),
    # Empty if unknown: rows older than the table.
    Column("actor_kind", String(16), nullable=False),
    Column("actor_id", String(36)),
    Column("action", String(32), nullable=False),
    # [[field, from, to], ...] without secrets.
    Column("changes", Text, nullable=False),
    Index("ix_wrapper_revisions_until", "until_us"),
    Index("ix_wrapper_revisions_operator", "operator_id"),
    Index("ix_wrapper_revisions_target", "target_url"),
)
