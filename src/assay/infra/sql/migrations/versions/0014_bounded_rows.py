"""Who asked for codes of accounts; deliveries by turns; what deletions had left behind."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0012"


def upgrade() -> None:
    """Columns of codes, an index of deliveries, and what deleted accounts had written."""
    asked_by = sa.Column("asked_by", sa.String(16), nullable=False, server_default="terminal")
    op.add_column("account_codes", asked_by)
    for name in ("origin", "mailbox"):
        op.add_column("account_codes", sa.Column(name, sa.String(64)))
        op.create_index(f"ix_account_codes_{name}", "account_codes", [name])
    op.create_index(
        "ix_webhook_deliveries_turn", "webhook_deliveries", ["state", "operator_id", "seq"]
    )
    for statement in _ERASE:
        op.execute(statement)


_DELETED = "(SELECT id FROM operators WHERE deleted_us IS NOT NULL)"
_ERASE = [
    f"UPDATE webhook_deliveries SET domain = NULL WHERE operator_id IN {_DELETED}",  # noqa: S608 - our own words
    f"UPDATE wrappers SET target_url = '', cors_origins = '' WHERE operator_id IN {_DELETED}",  # noqa: S608 - our own words
]
