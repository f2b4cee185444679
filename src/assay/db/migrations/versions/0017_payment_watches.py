"""When settled payments are looked at again; those that have settled before are not."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    """A column of payments, and an index of the rows that have it."""
    op.add_column("payments", sa.Column("watch_us", sa.BigInteger()))
    watched = sa.text("watch_us IS NOT NULL")
    op.create_index(
        "ix_payments_watch",
        "payments",
        ["watch_us"],
        sqlite_where=watched,
        postgresql_where=watched,
    )
