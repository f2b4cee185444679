"""Proven control, findings that follow it, and what copies are known by."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    """Four tables."""
    op.create_table(
        "control_keys",
        sa.Column("subject_key", sa.String(160), primary_key=True),
        sa.Column("key", sa.String(300), primary_key=True),
        sa.Column("proof", sa.String(16), nullable=False),
        sa.Column("disputed", sa.Boolean(), nullable=False),
        sa.Column("seen_us", sa.BigInteger(), nullable=False),
    )
    op.create_index("ix_control_keys_key", "control_keys", ["key", "seen_us"])
    op.create_table(
        "open_findings",
        sa.Column("subject_key", sa.String(160), primary_key=True),
        sa.Column("check_name", sa.String(64), primary_key=True),
        sa.Column("opened_us", sa.BigInteger(), nullable=False),
        sa.Column("seen_us", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "agent_identities",
        sa.Column("subject_key", sa.String(160), primary_key=True),
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("owner_us", sa.BigInteger()),
        sa.Column("group_key", sa.String(32)),
        sa.Column("skeleton", sa.String(200), nullable=False),
        sa.Column("signature", sa.Text(), nullable=False),
        sa.Column("rung", sa.Integer(), nullable=False),
        sa.Column("first_us", sa.BigInteger(), nullable=False),
        sa.Column("seen_us", sa.BigInteger(), nullable=False),
    )
    by_name = "ix_agent_identities_skeleton"
    op.create_index(by_name, "agent_identities", ["skeleton", "rung", "first_us"])
    op.create_index("ix_agent_identities_group", "agent_identities", ["group_key"])
    op.create_table(
        "content_bands",
        sa.Column("band", sa.String(40), primary_key=True),
        sa.Column("subject_key", sa.String(160), primary_key=True),
        sa.Column("seen_us", sa.BigInteger(), nullable=False),
    )
    op.create_index("ix_content_bands_subject", "content_bands", ["subject_key"])
    for table in ("control_keys", "open_findings", "agent_identities", "content_bands"):
        op.create_index(f"ix_{table}_seen", table, ["seen_us"])
