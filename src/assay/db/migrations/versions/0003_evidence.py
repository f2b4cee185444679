"""Proven humans behind agents, runs of the obstacle course, conduct at wrappers."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "personhood",
        sa.Column("subject_key", sa.String(length=200), nullable=False),
        sa.Column("agent_id", sa.String(length=80), nullable=False),
        sa.Column("level", sa.String(length=32), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("nullifier", sa.String(length=66), nullable=False),
        sa.Column("verified_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("subject_key"),
        sa.UniqueConstraint("scope", "nullifier", name="uq_personhood_human"),
    )
    op.create_table(
        "course_runs",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("address", sa.String(length=64), nullable=False),
        sa.Column("seed", sa.String(length=64), nullable=False),
        sa.Column("steps", sa.Text(), nullable=False),
        sa.Column("begun_us", sa.BigInteger(), nullable=False),
        sa.Column("finished_us", sa.BigInteger(), nullable=True),
        sa.Column("at_step", sa.Integer(), nullable=False),
        sa.Column("seen", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_course_runs_address", "course_runs", ["address", "finished_us"])
    op.create_table(
        "course_calls",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("run_id", sa.String(length=36), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("ended_ms", sa.BigInteger(), nullable=True),
        sa.Column("trail", sa.Text(), nullable=False),
        sa.Column("facts", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["course_runs.id"]),
        sa.PrimaryKeyConstraint("seq"),
        sa.UniqueConstraint("id"),
    )
    op.create_index("ix_course_calls_run", "course_calls", ["run_id", "seq"])
    op.create_table(
        "wrapper_conduct",
        sa.Column("address", sa.String(length=64), nullable=False),
        sa.Column("day", sa.String(length=10), nullable=False),
        sa.Column("calls", sa.BigInteger(), nullable=False),
        sa.Column("limited", sa.BigInteger(), nullable=False),
        sa.Column("early", sa.BigInteger(), nullable=False),
        sa.Column("error_run", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("address", "day"),
    )
