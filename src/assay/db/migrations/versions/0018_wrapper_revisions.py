"""Wrappers as they have been, what payments were claimed under, what upstreams know calls by."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    """Three columns and a table; every wrapper's first revision is what it is now."""
    op.add_column(
        "wrappers", sa.Column("revision", sa.Integer(), nullable=False, server_default="1")
    )
    for column in (
        sa.Column("wrapper_revision", sa.Integer(), nullable=False, server_default="1"),
        sa.Column("idempotency_key", sa.String(36), nullable=False, server_default=""),
    ):
        op.add_column("payments", column)
    op.create_table(
        "wrapper_revisions",
        sa.Column("wrapper_id", sa.String(36), primary_key=True),
        sa.Column("revision", sa.Integer(), primary_key=True),
        sa.Column("operator_id", sa.String(36), sa.ForeignKey("operators.id"), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("method", sa.String(32), nullable=False),
        sa.Column("price", sa.BigInteger(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("rate_limit", sa.BigInteger()),
        sa.Column("target_url", sa.Text(), nullable=False),
        sa.Column("payment_protocol", sa.String(8), nullable=False),
        sa.Column("payment_network", sa.String(32), nullable=False),
        sa.Column("payout_address", sa.String(42)),
        sa.Column("trust_enabled", sa.Boolean(), nullable=False),
        sa.Column("min_score", sa.Float(53), nullable=False),
        sa.Column("identity_proof", sa.String(16), nullable=False),
        sa.Column("settle", sa.String(8), nullable=False),
        sa.Column("max_body_bytes", sa.BigInteger(), nullable=False),
        sa.Column("timeout_ms", sa.Integer(), nullable=False),
        sa.Column("upstream_auth_header", sa.Text()),
        sa.Column("upstream_auth_secret", sa.LargeBinary()),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("pass_response_headers", sa.Text(), nullable=False, server_default=""),
        sa.Column("cors_origins", sa.Text(), nullable=False, server_default=""),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("until_us", sa.BigInteger()),
        sa.Column("actor_kind", sa.String(16), nullable=False),
        sa.Column("actor_id", sa.String(36)),
        sa.Column("action", sa.String(32), nullable=False),
        sa.Column("changes", sa.Text(), nullable=False),
    )
    op.create_index("ix_wrapper_revisions_until", "wrapper_revisions", ["until_us"])
    same = ", ".join(_SAME)
    op.execute(
        f"INSERT INTO wrapper_revisions (wrapper_id, revision, {same},"  # noqa: S608 - our own words
        f" at_us, actor_kind, action, changes) SELECT id, 1, {same},"
        " created_us, '', 'endpoint.created', '[]' FROM wrappers"
    )


_SAME = (
    *("operator_id", "path", "method", "price", "description", "rate_limit", "target_url"),
    *("payment_protocol", "payment_network", "payout_address", "trust_enabled", "min_score"),
    *("identity_proof", "settle", "max_body_bytes", "timeout_ms", "upstream_auth_header"),
    *("upstream_auth_secret", "active", "created_us", "pass_response_headers", "cors_origins"),
)
