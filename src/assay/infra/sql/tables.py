"""The schema, for both databases. Times are microseconds since 1970; JSON is text.

`migrations/` is how a database gets here; a test proves that the two agree.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
)

METADATA = MetaData()

operators = Table(
    "operators",
    METADATA,
    Column("id", String(36), primary_key=True),
    Column("email", Text, nullable=False),
    Column("email_lower", Text, nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("role", String(16), nullable=False),
    Column("plan", String(16), nullable=False),
    Column("fee_rate", String(32), nullable=False),
    Column("password_hash", Text, nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Column("updated_us", BigInteger, nullable=False),
)

api_keys = Table(
    "api_keys",
    METADATA,
    Column("id", String(36), primary_key=True),
    Column("operator_id", String(36), ForeignKey("operators.id"), nullable=False),
    Column("key_hash", String(64), nullable=False, unique=True),
    Column("prefix", String(32), nullable=False),
    Column("label", Text),
    Column("revoked", Boolean, nullable=False),
    Column("last_used_us", BigInteger),
    Column("created_us", BigInteger, nullable=False),
    Index("ix_api_keys_operator", "operator_id", "created_us"),
)

allowance = Table(
    "allowance",
    METADATA,
    Column("operator_id", String(36), ForeignKey("operators.id"), primary_key=True),
    Column("month", String(7), primary_key=True),
    Column("used", BigInteger, nullable=False),
)

key_agents = Table(
    "key_agents",
    METADATA,
    Column("address", String(42), primary_key=True),
    Column("verified_us", BigInteger, nullable=False),
)

evaluations = Table(
    "evaluations",
    METADATA,
    Column("id", String(36), primary_key=True),
    Column("subject_key", String(160), nullable=False),
    Column("chain", String(64), nullable=False),
    Column("agent_id", String(80), nullable=False),
    Column("wallet", String(64), nullable=False),
    Column("collected", Text, nullable=False),
    Column("unavailable", Text, nullable=False),
    Column("score", Float(53), nullable=False),
    Column("tier", String(3), nullable=False),
    Column("risk_level", String(8), nullable=False),
    Column("route", String(16), nullable=False),
    Column("evaluated_us", BigInteger, nullable=False),
    Index("ix_evaluations_subject", "subject_key", "evaluated_us"),
)

snapshots = Table(
    "snapshots",
    METADATA,
    # BIGINT has no row id alias in SQLite: only INTEGER counts up by itself there.
    Column("seq", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("id", String(36), nullable=False, unique=True),
    Column("evaluation_id", String(36), ForeignKey("evaluations.id"), nullable=False),
    Column("subject_key", String(160), nullable=False),
    Column("agent_id", String(80), nullable=False),
    Column("snapshot_hash", String(66), nullable=False),
    Column("previous_hash", String(66), nullable=False),
    Column("encrypted_data_uri", Text),
    Column("interaction_count", Integer, nullable=False),
    Column("taken_us", BigInteger, nullable=False),
    Index("ix_snapshots_subject", "subject_key", "seq"),
)

state = Table(
    "state",
    METADATA,
    Column("key", String(200), primary_key=True),
    Column("value", Text, nullable=False),
    Column("expires_us", BigInteger, nullable=False),
    Index("ix_state_expires", "expires_us"),
)
