"""Visits, when the next ones are due, who asked for them, and what hosts have had."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    """Four tables."""
    op.create_table(
        "visits",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True),
        sa.Column("subject_key", sa.String(160), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("timing", sa.String(10), nullable=False),
        sa.Column("label", sa.String(12), nullable=False),
        sa.Column("rung", sa.Integer(), nullable=False),
        sa.Column("is_critical", sa.Integer(), nullable=False),
        sa.Column("seen", sa.Text(), nullable=False),
    )
    op.create_index("ix_visits_subject", "visits", ["subject_key", "at_us"])
    op.create_index("ix_visits_at", "visits", ["at_us"])
    _schedule()
    op.create_table(
        "visit_requests",
        sa.Column("kind", sa.String(8), primary_key=True),
        sa.Column("holder", sa.String(64), primary_key=True),
        sa.Column("subject_key", sa.String(160), primary_key=True),
        sa.Column("chain", sa.String(64), nullable=False),
        sa.Column("agent_id", sa.String(80), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
    )
    op.create_index("ix_visit_requests_subject", "visit_requests", ["subject_key"])
    op.create_table(
        "host_visits",
        sa.Column("host", sa.String(255), primary_key=True),
        sa.Column("day", sa.Integer(), primary_key=True),
        sa.Column("has_control", sa.Integer(), primary_key=True),
        sa.Column("visits", sa.Integer(), nullable=False),
    )
    op.create_index("ix_host_visits_day", "host_visits", ["day"])


def _schedule() -> None:
    op.create_table(
        "visit_schedule",
        sa.Column("subject_key", sa.String(160), primary_key=True),
        sa.Column("chain", sa.String(64), nullable=False),
        sa.Column("agent_id", sa.String(80), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("has_control", sa.Integer(), nullable=False),
        sa.Column("rank", sa.Integer(), nullable=False),
        sa.Column("reason", sa.String(24), nullable=False),
        sa.Column("due_us", sa.BigInteger(), nullable=False),
        sa.Column("planned_us", sa.BigInteger(), nullable=False),
        sa.Column("confirms", sa.Integer(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("visited_us", sa.BigInteger(), nullable=False),
        sa.Column("asked_us", sa.BigInteger(), nullable=False),
        sa.Column("lease_us", sa.BigInteger(), nullable=False),
    )
    op.create_index("ix_visit_schedule_due", "visit_schedule", ["has_control", "rank", "due_us"])
    op.create_index("ix_visit_schedule_asked", "visit_schedule", ["rank", "asked_us"])
