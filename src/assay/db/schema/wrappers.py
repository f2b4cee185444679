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
        # [[tier, micro-dollars, calls a minute or null], ...], best first.
        Column("pricing", Text, nullable=False, server_default="[]"),
        # Free calls of each agent, by UTC day or month; None: none.
        Column("free_calls", BigInteger),
        Column("free_per", String(5)),
        Column("enforce", String(8), nullable=False, server_default="enforce"),
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

tier_quotes = Table(
    "tier_quotes",
    METADATA,
    # Prices that proven agents were quoted because of their tier, while they may be paid. Rows are
    # removed once they have ended.
    Column("wrapper_id", String(36), primary_key=True),
    Column("agent", String(160), primary_key=True),
    Column("revision", Integer, primary_key=True),
    Column("price", BigInteger, primary_key=True),
    Column("until_us", BigInteger, nullable=False),
    Index("ix_tier_quotes_until", "until_us"),
)

free_calls = Table(
    "free_calls",
    METADATA,
    # Free calls of an agent in its newest period; an empty agent is everybody without a quota of
    # their own.
    Column("wrapper_id", String(36), primary_key=True),
    Column("per", String(5), primary_key=True),
    Column("agent", String(160), primary_key=True),
    Column("period", String(10), nullable=False),
    Column("used", BigInteger, nullable=False),
    Index("ix_free_calls_period", "per", "period"),
)

observed_totals = Table(
    "observed_totals",
    METADATA,
    # Calls that a wrapper let pass although its trust check would have refused them.
    Column("operator_id", String(36), primary_key=True),
    Column("wrapper_id", String(36), primary_key=True),
    Column("would_deny", BigInteger, nullable=False),
)
