"""When each stream of the index was last needed, and whether it was ever read to its end."""

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"

_NOW_S = {"sqlite": "strftime('%s', 'now')", "postgresql": "EXTRACT(EPOCH FROM now())"}


def upgrade() -> None:
    """What is there counts as needed today, and as read: grades stay as they are."""
    whole = sa.Column("is_whole", sa.Boolean(), nullable=False, server_default=sa.false())
    asked = sa.Column("asked_day", sa.Integer(), nullable=False, server_default="0")
    for column in (whole, asked):
        op.add_column("index_streams", column)
    now_s = _NOW_S[op.get_bind().dialect.name]
    op.execute(
        f"UPDATE index_streams SET is_whole = TRUE, asked_day = CAST({now_s} AS BIGINT) / 86400"  # noqa: S608 - our own words
    )
    op.create_index("ix_index_streams_asked", "index_streams", ["kind", "asked_day"])
    used = sa.text("rung >= 3")
    op.create_index(
        "ix_evaluations_used",
        "evaluations",
        ["wallet", "evaluated_us"],
        sqlite_where=used,
        postgresql_where=used,
    )
