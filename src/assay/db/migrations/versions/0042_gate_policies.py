"""Policies of the gate that a proxy asks, stored with the API key."""

import sqlalchemy as sa
from alembic import op

revision = "0042"
down_revision = "0041"


def upgrade() -> None:
    """No key has one: the defaults of the gate hold."""
    policies = sa.Column("gate_policies", sa.Text, nullable=False, server_default="")
    op.add_column("api_keys", policies)
