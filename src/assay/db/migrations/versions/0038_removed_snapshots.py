"""Where chains begin whose oldest snapshots left, and an index that removing them needs."""

import sqlalchemy as sa
from alembic import op

revision = "0038"
down_revision = "0037"


def upgrade() -> None:
    """Nothing has left so far."""
    op.create_table(
        "removed_snapshots",
        sa.Column("subject_key", sa.String(160), primary_key=True),
        sa.Column("snapshot_hash", sa.String(66), nullable=False),
    )
    op.create_index("ix_snapshots_evaluation", "snapshots", ["evaluation_id"])
    for table in ("wrappers", "wrapper_revisions"):  # what a deleted account's owner wrote
        op.execute(
            f"UPDATE {table} SET pass_response_headers = '' WHERE pass_response_headers <> ''"  # noqa: S608
            " AND operator_id IN (SELECT id FROM operators WHERE deleted_us IS NOT NULL)"
        )
