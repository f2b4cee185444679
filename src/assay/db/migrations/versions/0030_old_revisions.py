"""An index by which revisions are found that a payment was claimed under."""

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"


def upgrade() -> None:
    """Payments of a wrapper that was never changed are not in it."""
    changed = sa.text("wrapper_revision > 1")
    op.create_index(
        "ix_payments_revision",
        "payments",
        ["wrapper_id", "wrapper_revision"],
        sqlite_where=changed,
        postgresql_where=changed,
    )
