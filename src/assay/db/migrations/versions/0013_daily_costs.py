"""What callers cost in a day; personal fields of deleted accounts leave the audit trail."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """One table; the guards of the audit trail let personal fields be erased, and nothing else."""
    op.create_table(
        "daily_costs",
        sa.Column("bearer", sa.String(100), primary_key=True),
        sa.Column("cost", sa.String(32), primary_key=True),
        sa.Column("day", sa.Integer(), primary_key=True),
        sa.Column("used", sa.BigInteger(), nullable=False),
    )
    op.create_index("ix_daily_costs_used", "daily_costs", ["cost", "day", "used"])
    op.create_index("ix_audit_actor", "audit", ["actor_id"])
    for statement in _GUARDS[op.get_bind().dialect.name]:
        op.execute(statement)
    for statement in _ERASE:  # of accounts that were deleted before
        op.execute(statement)


_SAME = " AND ".join(
    f"NEW.{name} {{same}} OLD.{name}"
    for name in (
        *("seq", "id", "at_us", "actor_kind", "actor_id"),
        *("action", "operator_id", "target"),
    )
)
_IS_ERASURE = (
    f"{_SAME} AND NEW.client IN (OLD.client, '')"  # noqa: S608 - our own words
    " AND NEW.request_id IN (OLD.request_id, '')"
    " AND NEW.details IN (OLD.details, '{{}}')"
    " AND EXISTS (SELECT 1 FROM operators o WHERE o.deleted_us IS NOT NULL"
    " AND (o.id = OLD.operator_id OR o.id = OLD.actor_id))"
)
_SAYS = "'the audit trail is only added to'"

_GUARDS = {
    "sqlite": [
        "DROP TRIGGER IF EXISTS audit_keeps_update",
        (
            "CREATE TRIGGER audit_keeps_update BEFORE UPDATE ON audit"
            f" WHEN NOT ({_IS_ERASURE.format(same='IS')})"
            f" BEGIN SELECT RAISE(ABORT, {_SAYS}); END"
        ),
    ],
    "postgresql": [
        (
            "CREATE OR REPLACE FUNCTION audit_keeps() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            f" IF TG_OP = 'UPDATE' THEN IF {_IS_ERASURE.format(same='IS NOT DISTINCT FROM')}"
            " THEN RETURN NEW; END IF; END IF;"
            f" RAISE EXCEPTION {_SAYS}; END $$"
        ),
    ],
}

_DELETED = "(SELECT id FROM operators WHERE deleted_us IS NOT NULL)"
_ERASE = [
    (
        "UPDATE audit SET client = '', request_id = '' WHERE client || request_id <> '' AND"  # noqa: S608 - our own words
        f" (actor_id IN {_DELETED} OR (operator_id IN {_DELETED} AND actor_kind = 'anonymous'))"
    ),
    (
        "UPDATE audit SET details = '{}' WHERE details <> '{}'"  # noqa: S608 - our own words
        f" AND operator_id IN {_DELETED}"
        " AND action IN ('account.renamed', 'key.issued', 'endpoint.created')"
    ),
]
