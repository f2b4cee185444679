"""Looks of payments by whether money came in, and those of which nothing is left to ask."""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"


def upgrade() -> None:
    """Three indexes in the place of one."""
    op.drop_index("ix_payments_watch", "payments")
    watched = "watch_us IS NOT NULL AND settled_us IS"
    ended = "state = 'released' AND watch_us IS NULL AND settled_us IS NULL"
    for name, column, where in (
        ("ix_payments_watch_settled", "watch_us", f"{watched} NOT NULL"),
        ("ix_payments_watch_unpaid", "watch_us", f"{watched} NULL"),
        ("ix_payments_ended", "expires_us", ended),
    ):
        condition = sa.text(where)
        op.create_index(
            *(name, "payments", [column]), sqlite_where=condition, postgresql_where=condition
        )
