"""PostgreSQL announces what processes remember, so that every process hears of changes at once."""

from alembic import op

revision = "0045"
down_revision = "0044"

_ANNOUNCED = {
    "operators": (
        "UPDATE OF plan, role, fee_rate, suspended_us, deleted_us",
        "TRUE",
        "'operator ' || NEW.id",
    ),
    "api_keys": (
        "UPDATE OF revoked, scopes, expires_us, gate_policies",
        "TRUE",
        "'operator ' || NEW.operator_id",
    ),
    "wrappers": ("INSERT OR UPDATE", "TRUE", "'operator ' || NEW.operator_id"),
    "state": (
        "INSERT OR UPDATE",
        "NEW.key LIKE 'session-revoked:%'",
        "'session ' || substr(NEW.key, 17)",
    ),
    "evaluations": ("INSERT", "TRUE", "'evaluation ' || NEW.subject_key || ' ' || NEW.id"),
    "personhood": ("INSERT OR UPDATE", "TRUE", "'personhood ' || NEW.subject_key"),
}
"""What is announced of each table: after which change, of which rows, and as which text."""


def upgrade() -> None:
    """SQLite has no processes to tell."""
    if op.get_bind().dialect.name != "postgresql":
        return
    for table, (change, rows, said) in _ANNOUNCED.items():
        op.execute(
            f"CREATE FUNCTION announce_{table}() RETURNS trigger LANGUAGE plpgsql AS $$"
            f" BEGIN PERFORM pg_notify('assay.changes', {said}); RETURN NULL; END $$"
        )
        op.execute(
            f"CREATE TRIGGER announce_{table} AFTER {change} ON {table} FOR EACH ROW"
            f" WHEN ({rows}) EXECUTE FUNCTION announce_{table}()"
        )
