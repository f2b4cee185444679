"""When the chain is asked again about a payment, and every hash that was sent for it."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    """Four columns of payments."""
    earlier = sa.Column("earlier_tx", sa.Text(), nullable=False, server_default="")
    op.add_column("payments", earlier)
    for name, kind in (
        ("look_us", sa.BigInteger()),
        ("questions", sa.Integer()),
        ("misses", sa.Integer()),
    ):
        op.add_column("payments", sa.Column(name, kind, nullable=False, server_default="0"))
