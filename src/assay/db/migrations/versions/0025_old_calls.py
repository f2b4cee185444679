"""What is counted of calls whose rows were removed."""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"

_SUMS = ("calls", "errors", "latency_us", "asked", "denied", "limited", "first_us", "last_us")


def upgrade() -> None:
    """One table."""
    op.create_table(
        "removed_calls",
        sa.Column("operator_id", sa.String(36), primary_key=True),
        sa.Column("agent_id", sa.String(80), primary_key=True),
        sa.Column("wrapper_id", sa.String(36), primary_key=True),
        sa.Column("day", sa.Integer(), primary_key=True, autoincrement=False),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in _SUMS),
        sqlite_with_rowid=False,
    )
