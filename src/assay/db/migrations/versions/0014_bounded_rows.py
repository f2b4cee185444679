"""Who asked for codes; the end of Ed25519; indexes for turns and removal; what deletions left."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Columns of codes, a table, indexes, and an end of what deleted accounts had written."""
    asked_by = sa.Column("asked_by", sa.String(16), nullable=False, server_default="terminal")
    op.add_column("account_codes", asked_by)
    for name in ("origin", "mailbox"):
        op.add_column("account_codes", sa.Column(name, sa.String(64)))
        op.create_index(f"ix_account_codes_{name}", "account_codes", [name])
    by_turn = ["state", "operator_id", "seq", "wait_until_us"]
    op.create_index("ix_webhook_deliveries_turn", "webhook_deliveries", by_turn)
    op.create_index("ix_course_runs_finished", "course_runs", ["finished_us", "begun_us"])
    op.create_index("ix_wrapper_conduct_day", "wrapper_conduct", ["day"])
    op.create_table(
        "earlier_keys",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("kids", sa.Text(), nullable=False),
        sa.Column("until_us", sa.BigInteger()),
    )
    # Decisions are signed for operators: without one, none was signed before ES256 either.
    op.execute("INSERT INTO earlier_keys SELECT 1, '', NULL WHERE EXISTS (SELECT 1 FROM operators)")
    for statement in _ERASE:
        op.execute(statement)


_DELETED = "(SELECT id FROM operators WHERE deleted_us IS NOT NULL)"
_ERASE = [
    f"UPDATE webhook_deliveries SET domain = NULL WHERE operator_id IN {_DELETED}",  # noqa: S608 - our own words
    f"UPDATE wrappers SET target_url = '', cors_origins = '' WHERE operator_id IN {_DELETED}",  # noqa: S608 - our own words
]
