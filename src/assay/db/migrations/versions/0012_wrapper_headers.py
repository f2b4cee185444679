"""What of an upstream's headers passes through a wrapper, and who may call it from a browser."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Two columns of wrappers."""
    for name in ("pass_response_headers", "cors_origins"):
        op.add_column("wrappers", sa.Column(name, sa.Text(), nullable=False, server_default=""))
