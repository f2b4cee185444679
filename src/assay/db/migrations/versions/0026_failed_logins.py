"""Failed log-ins may leave the audit trail; nothing else may."""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"

_FAILED = sa.text("action = 'login.failed'")


def upgrade() -> None:
    """An index that finds them by age, and guards that let them go."""
    op.create_index(
        "ix_audit_failed_logins",
        "audit",
        ["at_us"],
        sqlite_where=_FAILED,
        postgresql_where=_FAILED,
    )
    for statement in _GUARDS[op.get_bind().dialect.name]:
        op.execute(statement)


_GUARDS = {
    "sqlite": [
        "DROP TRIGGER IF EXISTS audit_keeps_delete",
        (
            "CREATE TRIGGER audit_keeps_delete BEFORE DELETE ON audit"
            " WHEN OLD.action <> 'login.failed'"
            " BEGIN SELECT RAISE(ABORT, 'the audit trail is only added to'); END"
        ),
    ],
    "postgresql": [
        "DROP TRIGGER IF EXISTS audit_keeps ON audit",
        (
            "CREATE TRIGGER audit_keeps BEFORE UPDATE ON audit"
            " FOR EACH ROW EXECUTE FUNCTION audit_keeps()"
        ),
        (
            "CREATE TRIGGER audit_keeps_delete BEFORE DELETE ON audit FOR EACH ROW"
            " WHEN (OLD.action <> 'login.failed') EXECUTE FUNCTION audit_keeps()"
        ),
    ],
}
