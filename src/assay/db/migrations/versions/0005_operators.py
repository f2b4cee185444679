"""Suspension, the audit trail, webhooks."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Make the column and the tables; shut the trail against changes."""
    op.add_column("operators", sa.Column("suspended_us", sa.BigInteger()))
    _audit()
    _webhooks()
    _deliveries()
    for statement in _GUARDS[op.get_bind().dialect.name]:
        op.execute(statement)


def _number() -> sa.Column[int]:
    kind = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    return sa.Column("seq", kind, primary_key=True)


def _audit() -> None:
    op.create_table(
        "audit",
        _number(),
        sa.Column("id", sa.String(36), nullable=False, unique=True),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("actor_kind", sa.String(16), nullable=False),
        sa.Column("actor_id", sa.String(36)),
        sa.Column("client", sa.String(64), nullable=False),
        sa.Column("request_id", sa.String(64), nullable=False),
        sa.Column("action", sa.String(32), nullable=False),
        sa.Column("operator_id", sa.String(36), nullable=False),
        sa.Column("target", sa.String(64), nullable=False),
        sa.Column("details", sa.Text(), nullable=False),
    )
    op.create_index("ix_audit_operator", "audit", ["operator_id", "seq"])


def _webhooks() -> None:
    op.create_table(
        "webhooks",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("operator_id", sa.String(36), sa.ForeignKey("operators.id"), nullable=False),
        sa.Column("event", sa.String(32), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("agent_ids", sa.Text()),
        sa.Column("secret", sa.LargeBinary()),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
    )
    op.create_index("ix_webhooks_operator", "webhooks", ["operator_id", "created_us"])
    op.create_table(
        "webhook_agents",
        sa.Column("webhook_id", sa.String(36), sa.ForeignKey("webhooks.id"), primary_key=True),
        sa.Column("agent_id", sa.String(80), primary_key=True),
    )
    op.create_index("ix_webhook_agents_agent", "webhook_agents", ["agent_id", "webhook_id"])


def _deliveries() -> None:
    op.create_table(
        "webhook_deliveries",
        _number(),
        sa.Column("id", sa.String(36), nullable=False, unique=True),
        sa.Column("webhook_id", sa.String(36), nullable=False),
        sa.Column("operator_id", sa.String(36), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.String(80), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("state", sa.String(8), nullable=False),
        sa.Column("status", sa.Integer()),
        sa.Column("reason", sa.Text()),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("begun_us", sa.BigInteger()),
        sa.Column("ended_us", sa.BigInteger()),
    )
    op.create_index("ix_webhook_deliveries_state", "webhook_deliveries", ["state", "seq"])
    op.create_index("ix_webhook_deliveries_operator", "webhook_deliveries", ["operator_id", "seq"])


_GUARDS = {
    "sqlite": [
        f"CREATE TRIGGER audit_keeps_{change.lower()} BEFORE {change} ON audit"
        " BEGIN SELECT RAISE(ABORT, 'the audit trail is only added to'); END"
        for change in ("UPDATE", "DELETE")
    ],
    "postgresql": [
        (
            "CREATE FUNCTION audit_keeps() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE EXCEPTION 'the audit trail is only added to'; END $$"
        ),
        (
            "CREATE TRIGGER audit_keeps BEFORE UPDATE OR DELETE ON audit"
            " FOR EACH ROW EXECUTE FUNCTION audit_keeps()"
        ),
        (
            "CREATE TRIGGER audit_keeps_all BEFORE TRUNCATE ON audit"
            " FOR EACH STATEMENT EXECUTE FUNCTION audit_keeps()"
        ),
    ],
}
