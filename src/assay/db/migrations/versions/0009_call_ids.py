"""The key that ids of calls are made with; the log itself stays as it is."""

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """A table with one row."""
    table = op.create_table("call_id_key", sa.Column("key", sa.LargeBinary(), nullable=False))
    op.bulk_insert(table, [{"key": secrets.token_bytes(32)}])
