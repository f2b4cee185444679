"""When files of feedback are read, the payments they prove, and who uses an attestation."""

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision = "0035"


def upgrade() -> None:
    """Nothing was read yet: every file is unchecked."""
    op.add_column(
        "chain_feedback", sa.Column("file_day", sa.Integer(), nullable=False, server_default="0")
    )
    op.drop_index("ix_chain_feedback_file", "chain_feedback")
    op.create_index("ix_chain_feedback_file", "chain_feedback", ["file", "file_day"])
    op.create_table(
        "chain_proofs",
        sa.Column("network", sa.String(64), primary_key=True),
        sa.Column("tx", sa.String(66), primary_key=True),
        sa.Column("log", sa.Integer(), primary_key=True),
        sa.Column("registry", sa.String(64), nullable=False),
        sa.Column("agent_id", sa.String(80), nullable=False),
        sa.Column("client", sa.String(64), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("recipient", sa.String(64), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("block", sa.BigInteger(), nullable=False),
        sa.Column("day", sa.Integer(), nullable=False),
        sa.Column("is_charge", sa.Boolean(), nullable=False),
    )
    op.create_index("ix_chain_proofs_agent", "chain_proofs", ["registry", "agent_id"])
    op.create_index("ix_chain_proofs_block", "chain_proofs", ["network", "block"])
    op.create_table(
        "attested_people",
        sa.Column("trait", sa.String(64), primary_key=True),
        sa.Column("address", sa.String(64), nullable=False),
        sa.Column("seen_day", sa.Integer(), nullable=False),
    )
    op.create_index("ix_attested_people_seen", "attested_people", ["seen_day"])
