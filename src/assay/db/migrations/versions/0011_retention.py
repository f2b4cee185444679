"""Key agents by when they were first proven, for their retention."""

from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Make the index."""
    op.create_index("ix_key_agents_verified", "key_agents", ["verified_us"])
