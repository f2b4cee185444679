"""What analytics need: roll-ups of the call log, and when and for whom a payment settled."""

import sqlalchemy as sa
from alembic import op

from assay.infra.sql.derivations import COLUMNS, DERIVED
from assay.infra.sql.rollups import short_key

revision = "0004"
down_revision = "0003"

_AT_ONCE = 5000


def upgrade() -> None:
    """Make the tables, and count what is there."""
    for name, key, measures in _ROLLUPS:
        _rollup(name, key, measures)
    _agents()
    _columns()
    _fill_columns()
    for table, derived in DERIVED.items():
        columns = ", ".join(COLUMNS[table])
        op.execute(f"INSERT INTO {table} ({columns}) SELECT {columns} FROM ({derived}) AS derived")  # noqa: S608 - our own names


_PLAIN = ("calls", "errors", "latency_us", "revenue")
_FUNNEL = (*_PLAIN, "asked", "paid", "denied", "limited", "settled", "failed")
_ROLLUPS = (
    ("call_totals", ("operator_id",), (*_FUNNEL, "agents")),
    ("call_days", ("operator_id", "day"), _FUNNEL),
    ("endpoint_totals", ("operator_id", "wrapper_id"), _PLAIN),
    ("endpoint_days", ("operator_id", "wrapper_id", "day"), _PLAIN),
    ("agent_days", ("operator_id", "agent_id", "wrapper_id", "day"), _PLAIN),
)
_KEYS = {
    "operator_id": sa.String(36),
    "wrapper_id": sa.String(36),
    "agent_id": sa.String(80),
    "chain": sa.String(64),
    "day": sa.Integer(),
}


def _rollup(
    name: str,
    key: tuple[str, ...],
    measures: tuple[str, ...],
    *more: "sa.Column[int] | sa.Column[str]",
) -> None:
    op.create_table(
        name,
        *(sa.Column(k, _KEYS[k], nullable=False, autoincrement=False) for k in key),
        *(sa.Column(m, sa.BigInteger(), nullable=False) for m in measures),
        *more,
        sa.PrimaryKeyConstraint(*key),
        sqlite_with_rowid=False,
    )


def _agents() -> None:
    _rollup(
        "agent_totals",
        ("operator_id", "agent_id"),
        _PLAIN,
        sa.Column("first_us", sa.BigInteger(), nullable=False),
        sa.Column("last_us", sa.BigInteger(), nullable=False),
        sa.Column("tier", sa.String(3)),
        sa.Column("tier_us", sa.BigInteger()),
    )
    for name in ("last_us", "calls", "revenue", "errors"):
        columns = ["operator_id", name, "agent_id"]
        op.create_index(f"ix_agent_totals_{name}", "agent_totals", columns)
    _rollup("agent_chains", ("operator_id", "agent_id", "chain"), ())


def _columns() -> None:
    op.add_column("payments", sa.Column("settled_us", sa.BigInteger()))
    op.add_column(
        "payments", sa.Column("agent_id", sa.String(80), nullable=False, server_default="")
    )
    op.add_column("calls", sa.Column("chain", sa.String(64)))
    op.add_column("calls", sa.Column("route", sa.String(16)))
    op.add_column("calls", sa.Column("agent_key", sa.BigInteger()))
    op.add_column(
        "calls", sa.Column("wrapper_key", sa.BigInteger(), nullable=False, server_default="0")
    )
    op.create_index("ix_calls_agent", "calls", ["agent_key", "at_us", "wrapper_key"])
    op.create_index("ix_calls_wrapper", "calls", ["wrapper_key", "at_us"])
    op.create_index(
        "ix_calls_payment",
        "calls",
        ["payment_id"],
        sqlite_where=sa.text("payment_id IS NOT NULL"),
        postgresql_where=sa.text("payment_id IS NOT NULL"),
    )


def _fill_columns() -> None:
    """Nobody wrote down until now when a payment settled: its last change is nearest to it."""
    op.execute(
        "UPDATE payments SET settled_us = updated_us WHERE state IN ('settled', 'delivered')"
    )
    op.execute(
        "UPDATE payments SET agent_id = COALESCE((SELECT c.agent_id FROM calls AS c"
        " WHERE c.payment_id = payments.id AND c.agent_id IS NOT NULL ORDER BY c.seq DESC LIMIT 1"
        "), payer)"
    )
    connection = op.get_bind()
    page = sa.text(
        "SELECT seq, operator_id, COALESCE(agent_id, payer), wrapper_id FROM calls"
        " WHERE seq > :after ORDER BY seq LIMIT :at_once"
    )
    change = sa.text(
        "UPDATE calls SET agent_key = :agent_key, wrapper_key = :wrapper_key WHERE seq = :a_seq"
    )
    after = 0
    while rows := connection.execute(page, {"after": after, "at_once": _AT_ONCE}).all():
        values = [
            {
                "a_seq": seq,
                "agent_key": None if agent is None else short_key(operator_id, agent),
                "wrapper_key": short_key(wrapper_id),
            }
            for seq, operator_id, agent, wrapper_id in rows
        ]
        connection.execute(change, values)
        after = rows[-1][0]
