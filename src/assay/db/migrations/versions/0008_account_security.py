"""Dashboard sessions, single-use codes, second factors, key scopes, and the end of an account."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

_KEYS_SO_FAR = "evaluate gate proxy webhooks"
"""What every API key could do before there were scopes."""


def upgrade() -> None:
    """Add columns of accounts and keys, and four tables."""
    op.add_column("operators", sa.Column("email_verified_us", sa.BigInteger()))
    op.add_column("operators", sa.Column("totp_secret", sa.LargeBinary()))
    op.add_column("operators", sa.Column("totp_confirmed_us", sa.BigInteger()))
    op.add_column("operators", sa.Column("totp_step", sa.BigInteger()))
    op.add_column("operators", sa.Column("sign_up_origin", sa.String(64)))
    op.add_column("operators", sa.Column("deleted_us", sa.BigInteger()))
    op.create_index("ix_operators_origin", "operators", ["sign_up_origin", "created_us"])
    scopes = sa.Column("scopes", sa.Text(), nullable=False, server_default=_KEYS_SO_FAR)
    op.add_column("api_keys", scopes)
    op.add_column("api_keys", sa.Column("expires_us", sa.BigInteger()))
    _sessions()
    _codes()
    _origins()


def _sessions() -> None:
    op.create_table(
        "dashboard_sessions",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("operator_id", sa.String(36), sa.ForeignKey("operators.id"), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("used_us", sa.BigInteger(), nullable=False),
        sa.Column("expires_us", sa.BigInteger(), nullable=False),
        sa.Column("user_agent", sa.Text(), nullable=False),
        sa.Column("client", sa.String(64), nullable=False),
    )
    op.create_index(
        "ix_dashboard_sessions_operator", "dashboard_sessions", ["operator_id", "created_us"]
    )
    op.create_index("ix_dashboard_sessions_expires", "dashboard_sessions", ["expires_us"])


def _codes() -> None:
    op.create_table(
        "account_codes",
        sa.Column("code_hash", sa.String(64), primary_key=True),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("operator_id", sa.String(36), sa.ForeignKey("operators.id")),
        sa.Column("email_lower", sa.Text()),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("expires_us", sa.BigInteger(), nullable=False),
        sa.Column("spent_us", sa.BigInteger()),
    )
    op.create_index("ix_account_codes_operator", "account_codes", ["operator_id", "kind"])
    op.create_index("ix_account_codes_expires", "account_codes", ["expires_us"])
    op.create_table(
        "recovery_codes",
        sa.Column("operator_id", sa.String(36), sa.ForeignKey("operators.id"), primary_key=True),
        sa.Column("code_hash", sa.String(64), primary_key=True),
    )


def _origins() -> None:
    op.create_table(
        "login_origins",
        sa.Column("operator_id", sa.String(36), sa.ForeignKey("operators.id"), primary_key=True),
        sa.Column("origin", sa.String(64), primary_key=True),
        sa.Column("used_us", sa.BigInteger(), nullable=False),
    )
