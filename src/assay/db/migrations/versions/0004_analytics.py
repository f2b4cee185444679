"""What analytics need: roll-ups of the call log, and when and for whom a payment settled."""

# ruff: noqa: S608 - our own names

from hashlib import blake2b

import sqlalchemy as sa
from alembic import op

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
    for name, key, measures in _ROLLUPS:
        _fill(name, key, measures)
    _fill_agents()


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
                "agent_key": None if agent is None else _short_key(operator_id, agent),
                "wrapper_key": _short_key(wrapper_id),
            }
            for seq, operator_id, agent, wrapper_id in rows
        ]
        connection.execute(change, values)
        after = rows[-1][0]


_OF_CALLS = """
SELECT operator_id, wrapper_id, COALESCE(agent_id, payer) AS agent_id, at_us / 86400000000 AS day,
  at_us AS first_us, at_us AS last_us,
  1 AS calls, CASE WHEN status >= 400 AND status NOT IN (401, 402) THEN 1 ELSE 0 END AS errors,
  latency_us, 0 AS revenue, CASE WHEN status = 402 THEN 1 ELSE 0 END AS asked,
  0 AS paid,
  CASE WHEN outcome = 'trust_denied' THEN 1 ELSE 0 END AS denied,
  CASE WHEN outcome = 'rate_limit_exceeded' THEN 1 ELSE 0 END AS limited,
  0 AS settled, 0 AS failed
FROM calls"""
_SERVED = f"""{_OF_CALLS} UNION ALL
SELECT operator_id, wrapper_id, COALESCE(NULLIF(agent_id, ''), payer), settled_us / 86400000000,
  settled_us, settled_us, 0, 0, 0, amount, 0, 1, 0, 0, 1, 0
FROM payments WHERE settled_us IS NOT NULL"""
_EVENTS = f"""{_SERVED} UNION ALL
SELECT operator_id, wrapper_id, NULL, updated_us / 86400000000, updated_us, updated_us,
  0, 0, 0, 0, 0, 1, 0, 0, 0, 1
FROM payments WHERE state = 'failed'"""
_AGENTS_OF = f"""
SELECT operator_id, COUNT(DISTINCT agent_id) AS agents
FROM ({_SERVED}) AS served WHERE agent_id IS NOT NULL GROUP BY operator_id"""
_TIMES = f"""
SELECT operator_id, agent_id, MIN(first_us) AS first_us, MAX(last_us) AS last_us
FROM ({_SERVED}) AS served WHERE agent_id IS NOT NULL GROUP BY operator_id, agent_id"""
_TIERS = """
SELECT operator_id, COALESCE(agent_id, payer) AS agent_id, tier, at_us AS tier_us,
  ROW_NUMBER() OVER (
    PARTITION BY operator_id, COALESCE(agent_id, payer) ORDER BY at_us DESC, seq DESC
  ) AS place
FROM calls WHERE tier IS NOT NULL AND COALESCE(agent_id, payer) IS NOT NULL"""


def _sums(key: tuple[str, ...], measures: tuple[str, ...]) -> str:
    columns = ", ".join((*key, *(f"CAST(SUM({one}) AS BIGINT) AS {one}" for one in measures)))
    agents = "WHERE agent_id IS NOT NULL" if "agent_id" in key else ""
    return f"SELECT {columns} FROM ({_EVENTS}) AS events {agents} GROUP BY {', '.join(key)}"


def _fill(name: str, key: tuple[str, ...], measures: tuple[str, ...]) -> None:
    columns, sums = ", ".join((*key, *measures)), _sums(key, measures)
    if name == "call_totals":
        sums = (
            f"SELECT sums.*, COALESCE(counted.agents, 0) AS agents FROM ({_sums(key, _FUNNEL)})"
            f" AS sums LEFT JOIN ({_AGENTS_OF}) AS counted"
            " ON counted.operator_id = sums.operator_id"
        )
    op.execute(f"INSERT INTO {name} ({columns}) SELECT {columns} FROM ({sums}) AS derived")


def _fill_agents() -> None:
    key = ("operator_id", "agent_id")
    columns = ", ".join((*key, *_PLAIN, "first_us", "last_us", "tier", "tier_us"))
    of_sums = " AND ".join(f"{{0}}.{one} = sums.{one}" for one in key)
    op.execute(
        f"INSERT INTO agent_totals ({columns})"
        " SELECT sums.*, times.first_us, times.last_us, tiers.tier, tiers.tier_us"
        f" FROM ({_sums(key, _PLAIN)}) AS sums"
        f" JOIN ({_TIMES}) AS times ON {of_sums.format('times')}"
        f" LEFT JOIN ({_TIERS}) AS tiers ON {of_sums.format('tiers')} AND tiers.place = 1"
    )
    op.execute(
        "INSERT INTO agent_chains (operator_id, agent_id, chain)"
        " SELECT DISTINCT operator_id, COALESCE(agent_id, payer), chain FROM calls"
        " WHERE chain IS NOT NULL AND COALESCE(agent_id, payer) IS NOT NULL"
    )


def _short_key(*parts: str) -> int:
    digest = blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest) >> 1
