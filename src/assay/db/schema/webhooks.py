"""Webhook registrations, the agents they subscribe to, and all their deliveries."""

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
)

from assay.db.schema.metadata import METADATA

webhooks = Table(
    "webhooks",
    METADATA,
    Column("id", String(36), primary_key=True),
    Column("operator_id", String(36), ForeignKey("operators.id"), nullable=False),
    Column("event", String(32), nullable=False),
    Column("url", Text, nullable=False),
    # JSON: a list of numbers and strings; None for every agent.
    Column("agent_ids", Text),
    Column("secret", LargeBinary),
    Column("created_us", BigInteger, nullable=False),
    Index("ix_webhooks_operator", "operator_id", "created_us"),
)

webhook_agents = Table(
    "webhook_agents",
    METADATA,
    Column("webhook_id", String(36), ForeignKey("webhooks.id"), primary_key=True),
    # `*` for every agent, so that the registrations for one agent are found by two keys.
    Column("agent_id", String(80), primary_key=True),
    Index("ix_webhook_agents_agent", "agent_id", "webhook_id"),
)

webhook_deliveries = Table(
    "webhook_deliveries",
    METADATA,
    Column("seq", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("id", String(36), nullable=False, unique=True),
    Column("webhook_id", String(36), nullable=False),
    Column("operator_id", String(36), nullable=False),
    Column("url", Text, nullable=False),
    Column("agent_id", String(80), nullable=False),
    Column("payload", Text, nullable=False),
    Column("state", String(8), nullable=False),
    Column("status", Integer),
    Column("reason", Text),
    Column("created_us", BigInteger, nullable=False),
    Column("begun_us", BigInteger),
    Column("ended_us", BigInteger),
    # The receiver's registrable domain: deliveries that wait for one budget wait together.
    Column("domain", String(255)),
    # Pending until then; 0 if it never had to wait.
    Column("wait_until_us", BigInteger, nullable=False, server_default="0"),
    Index("ix_webhook_deliveries_domain", "state", "domain"),
    Index("ix_webhook_deliveries_state", "state", "seq"),
    Index("ix_webhook_deliveries_turn", "state", "operator_id", "seq", "wait_until_us"),
    Index("ix_webhook_deliveries_operator", "operator_id", "seq"),
)

webhook_events = Table(
    "webhook_events",
    METADATA,
    Column("seq", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("agent_id", String(80), nullable=False),
    # JSON: the payload of each event.
    Column("bodies", Text, nullable=False),
    # Registrations made later do not receive it.
    Column("created_us", BigInteger, nullable=False),
    # The last account whose deliveries were created; accounts are processed in order of id.
    Column("after_operator", String(36), nullable=False),
)
"""Evaluations that some accounts have not been notified of yet."""
