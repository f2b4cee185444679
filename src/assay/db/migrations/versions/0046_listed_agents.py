"""The newest grade of each registered agent that was evaluated, for lists and searches."""

import sqlalchemy as sa
from alembic import op

revision = "0046"
down_revision = "0045"

_EARLIER = sa.text(
    "INSERT INTO listed_agents (subject_key, chain, agent_id, wallet, owner, name, name_key,"
    " description, services, protocols, score_cents, tier, rung, evaluated_us)"
    " SELECT e.subject_key, e.chain, e.agent_id, e.wallet, '', '', '', '', '[]', 0,"
    " CAST(ROUND(e.score * 100) AS BIGINT), e.tier, e.rung, e.evaluated_us"
    " FROM evaluations e JOIN (SELECT subject_key, MAX(evaluated_us) AS newest_us"
    " FROM evaluations GROUP BY subject_key) n"
    " ON n.subject_key = e.subject_key AND n.newest_us = e.evaluated_us"
    " WHERE e.subject_key NOT LIKE 'key/%'"
    " ON CONFLICT (subject_key) DO NOTHING"
)


def upgrade() -> None:
    """Agents that were evaluated before are listed without a name until their next evaluation."""
    op.create_table(
        "listed_agents",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True),
        sa.Column("subject_key", sa.String(160), nullable=False, unique=True),
        sa.Column("chain", sa.String(64), nullable=False),
        sa.Column("agent_id", sa.String(80), nullable=False),
        sa.Column("wallet", sa.String(64), nullable=False),
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("name", sa.String(80), nullable=False),
        sa.Column(
            "name_key",
            # Compared by code points, so that an index finds how names begin.
            sa.String(80).with_variant(sa.String(80, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("services", sa.Text(), nullable=False),
        sa.Column("protocols", sa.Integer(), nullable=False),
        sa.Column("score_cents", sa.BigInteger(), nullable=False),
        sa.Column("tier", sa.String(3), nullable=False),
        sa.Column("rung", sa.Integer()),
        sa.Column("evaluated_us", sa.BigInteger(), nullable=False),
        sa.Column("before_cents", sa.BigInteger()),
    )
    for name in ("score_cents", "evaluated_us"):
        op.create_index(f"ix_listed_agents_{name}", "listed_agents", [name, "id"])
        op.create_index(f"ix_listed_agents_chain_{name}", "listed_agents", ["chain", name, "id"])
        op.create_index(f"ix_listed_agents_tier_{name}", "listed_agents", ["tier", name, "id"])
        for place in range(5):
            speaks = sa.text(f"protocols & {1 << place} <> 0")
            op.create_index(
                f"ix_listed_agents_protocol_{place}_{name}",
                "listed_agents",
                [name, "id"],
                sqlite_where=speaks,
                postgresql_where=speaks,
            )
    for name in ("agent_id", "wallet", "owner", "name_key"):
        op.create_index(f"ix_listed_agents_{name}", "listed_agents", [name])
    op.create_table(
        "listed_agent_hosts",
        sa.Column("host", sa.String(255), primary_key=True),
        sa.Column("subject_key", sa.String(160), primary_key=True),
    )
    op.create_index("ix_listed_agent_hosts_subject", "listed_agent_hosts", ["subject_key"])
    op.execute(_EARLIER)
