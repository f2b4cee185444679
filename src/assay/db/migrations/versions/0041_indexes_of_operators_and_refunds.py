"""Indexes: revisions of an operator, and refunds of a payment, are found without reading all."""

from alembic import op

revision = "0041"
down_revision = "0038"


def upgrade() -> None:
    """No row changes."""
    op.create_index("ix_wrapper_revisions_operator", "wrapper_revisions", ["operator_id"])
    op.create_index("ix_transfers_of", "transfers", ["payment_id"])
