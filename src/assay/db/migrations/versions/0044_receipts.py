"""What the signed receipt of a paid answer says of its call."""

import sqlalchemy as sa
from alembic import op

revision = "0044"
down_revision = "0043"


def upgrade() -> None:
    """Answers that were stored before have no receipt."""
    receipt = sa.Column("receipt", sa.Text, nullable=False, server_default="")
    op.add_column("paid_responses", receipt)
