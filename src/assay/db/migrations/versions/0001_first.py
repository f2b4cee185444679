"""The first schema: accounts, keys, allowance, key agents, evaluations, snapshots, state."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make every table."""
    op.create_table(
        "evaluations",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("subject_key", sa.String(length=160), nullable=False),
        sa.Column("chain", sa.String(length=64), nullable=False),
        sa.Column("agent_id", sa.String(length=80), nullable=False),
        sa.Column("wallet", sa.String(length=64), nullable=False),
        sa.Column("collected", sa.Text(), nullable=False),
        sa.Column("unavailable", sa.Text(), nullable=False),
        sa.Column("score", sa.Float(precision=53), nullable=False),
        sa.Column("tier", sa.String(length=3), nullable=False),
        sa.Column("risk_level", sa.String(length=8), nullable=False),
        sa.Column("route", sa.String(length=16), nullable=False),
        sa.Column("evaluated_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(
        "ix_evaluations_subject", "evaluations", ["subject_key", "evaluated_us"], unique=False
    )
    op.create_table(
        "key_agents",
        sa.Column("address", sa.String(length=42), nullable=False),
        sa.Column("verified_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("address"),
    )
    op.create_table(
        "operators",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("email", sa.Text(), nullable=False),
        sa.Column("email_lower", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("plan", sa.String(length=16), nullable=False),
        sa.Column("fee_rate", sa.String(length=32), nullable=False),
        sa.Column("password_hash", sa.Text(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("updated_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("email_lower"),
    )
    op.create_table(
        "state",
        sa.Column("key", sa.String(length=200), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("expires_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("key"),
    )
    op.create_index("ix_state_expires", "state", ["expires_us"], unique=False)
    op.create_table(
        "allowance",
        sa.Column("operator_id", sa.String(length=36), nullable=False),
        sa.Column("month", sa.String(length=7), nullable=False),
        sa.Column("used", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["operator_id"], ["operators.id"]),
        sa.PrimaryKeyConstraint("operator_id", "month"),
    )
    op.create_table(
        "api_keys",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("operator_id", sa.String(length=36), nullable=False),
        sa.Column("key_hash", sa.String(length=64), nullable=False),
        sa.Column("prefix", sa.String(length=32), nullable=False),
        sa.Column("label", sa.Text(), nullable=True),
        sa.Column("revoked", sa.Boolean(), nullable=False),
        sa.Column("last_used_us", sa.BigInteger(), nullable=True),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["operator_id"], ["operators.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("key_hash"),
    )
    op.create_index("ix_api_keys_operator", "api_keys", ["operator_id", "created_us"], unique=False)
    op.create_table(
        "snapshots",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("evaluation_id", sa.String(length=36), nullable=False),
        sa.Column("subject_key", sa.String(length=160), nullable=False),
        sa.Column("agent_id", sa.String(length=80), nullable=False),
        sa.Column("snapshot_hash", sa.String(length=66), nullable=False),
        sa.Column("previous_hash", sa.String(length=66), nullable=False),
        sa.Column("encrypted_data_uri", sa.Text(), nullable=True),
        sa.Column("interaction_count", sa.Integer(), nullable=False),
        sa.Column("taken_us", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["evaluation_id"], ["evaluations.id"]),
        sa.PrimaryKeyConstraint("seq"),
        sa.UniqueConstraint("id"),
    )
    op.create_index("ix_snapshots_subject", "snapshots", ["subject_key", "seq"], unique=False)
