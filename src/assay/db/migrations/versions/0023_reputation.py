"""Events of chains that reputation is made of."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    """Six tables."""
    _index_streams()
    _chain_feedback()
    _chain_notes()
    _chain_owners()
    _chain_transfers()
    _chain_fundings()


def _index_streams() -> None:
    op.create_table(
        "index_streams",
        sa.Column("kind", sa.String(16), primary_key=True),
        sa.Column("network", sa.String(64), primary_key=True),
        sa.Column("subject", sa.String(64), primary_key=True),
        sa.Column("block", sa.BigInteger(), nullable=False),
        sa.Column("block_hash", sa.String(66), nullable=False),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("is_done", sa.Boolean(), nullable=False),
    )
    op.create_index(
        "ix_index_streams_due", "index_streams", ["kind", "network", "is_done", "block"]
    )


def _chain_feedback() -> None:
    op.create_table(
        "chain_feedback",
        sa.Column("network", sa.String(64), primary_key=True),
        sa.Column("agent_id", sa.String(80), primary_key=True),
        sa.Column("client", sa.String(64), primary_key=True),
        sa.Column("number", sa.BigInteger(), primary_key=True),
        sa.Column("block", sa.BigInteger(), nullable=False),
        sa.Column("day", sa.Integer(), nullable=False),
        sa.Column("rating", sa.Float(53)),
        sa.Column("uri", sa.String(512), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("file", sa.String(12), nullable=False),
    )
    op.create_index("ix_chain_feedback_block", "chain_feedback", ["network", "block"])
    op.create_index("ix_chain_feedback_file", "chain_feedback", ["file"])


def _chain_notes() -> None:
    op.create_table(
        "chain_notes",
        sa.Column("network", sa.String(64), primary_key=True),
        sa.Column("tx", sa.String(66), primary_key=True),
        sa.Column("log", sa.Integer(), primary_key=True),
        sa.Column("agent_id", sa.String(80), nullable=False),
        sa.Column("client", sa.String(64), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("block", sa.BigInteger(), nullable=False),
        sa.Column("is_revocation", sa.Boolean(), nullable=False),
    )
    op.create_index("ix_chain_notes_agent", "chain_notes", ["network", "agent_id"])
    op.create_index("ix_chain_notes_block", "chain_notes", ["network", "block"])


def _chain_owners() -> None:
    op.create_table(
        "chain_owners",
        sa.Column("network", sa.String(64), primary_key=True),
        sa.Column("tx", sa.String(66), primary_key=True),
        sa.Column("log", sa.Integer(), primary_key=True),
        sa.Column("agent_id", sa.String(80), nullable=False),
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("block", sa.BigInteger(), nullable=False),
    )
    op.create_index("ix_chain_owners_agent", "chain_owners", ["network", "agent_id"])
    op.create_index("ix_chain_owners_block", "chain_owners", ["network", "block"])


def _chain_transfers() -> None:
    op.create_table(
        "chain_transfers",
        sa.Column("network", sa.String(64), primary_key=True),
        sa.Column("tx", sa.String(66), primary_key=True),
        sa.Column("log", sa.Integer(), primary_key=True),
        sa.Column("sender", sa.String(64), nullable=False),
        sa.Column("recipient", sa.String(64), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("block", sa.BigInteger(), nullable=False),
        sa.Column("day", sa.Integer(), nullable=False),
        sa.Column("is_charge", sa.Boolean(), nullable=False),
    )
    op.create_index("ix_chain_transfers_recipient", "chain_transfers", ["network", "recipient"])
    op.create_index("ix_chain_transfers_sender", "chain_transfers", ["network", "sender"])
    op.create_index("ix_chain_transfers_block", "chain_transfers", ["network", "block"])


def _chain_fundings() -> None:
    op.create_table(
        "chain_fundings",
        sa.Column("network", sa.String(64), primary_key=True),
        sa.Column("account", sa.String(64), primary_key=True),
        sa.Column("funder", sa.String(64), nullable=False),
        sa.Column("block", sa.BigInteger(), nullable=False),
    )
    op.create_index("ix_chain_fundings_funder", "chain_fundings", ["network", "funder"])
    op.create_index("ix_chain_fundings_block", "chain_fundings", ["network", "block"])
