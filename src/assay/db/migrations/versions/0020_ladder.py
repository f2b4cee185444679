"""The rung and policy of evaluations, both hashes of snapshots, cold starts at wrappers."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    """Six columns; what was there before has none of them."""
    op.add_column("evaluations", sa.Column("rung", sa.Integer()))
    op.add_column("evaluations", sa.Column("policy", sa.Text()))
    op.add_column("snapshots", sa.Column("evidence_hash", sa.String(66)))
    op.add_column("snapshots", sa.Column("record", sa.Text()))
    for table in ("wrappers", "wrapper_revisions"):
        op.add_column(table, sa.Column("cold_start", sa.String(8)))
