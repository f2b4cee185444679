"""Wrappers by the address they sell: what an agent's service earns through others."""

from alembic import op

revision = "0037"
down_revision = "0036"


def upgrade() -> None:
    """An index; nothing of what is there changes."""
    op.create_index("ix_wrapper_revisions_target", "wrapper_revisions", ["target_url"])
