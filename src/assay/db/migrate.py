"""Runs versioned migrations from code: no configuration file and no command for operators."""

from sqlalchemy import Connection, inspect, text

HEAD = "0041"
"""The newest file in `migrations/versions`; a test checks that the two agree."""


class SchemaTooNew(RuntimeError):
    """The database was created by a newer version of the service."""


def is_current(connection: Connection) -> bool:
    """Return whether the schema is up to date, which lets the usual start skip Alembic."""
    if not inspect(connection).has_table("alembic_version"):
        return False
    statement = text("SELECT version_num FROM alembic_version")
    return list(connection.execute(statement).scalars()) == [HEAD]


def upgrade(connection: Connection) -> None:
    """Apply every migration the database lacks, inside the caller's transaction.

    Raises `SchemaTooNew` if the database has a migration unknown to this code.
    """
    # Imported only when needed: it costs a start a tenth of a second.
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415
    from alembic.runtime.migration import MigrationContext  # noqa: PLC0415
    from alembic.script import ScriptDirectory  # noqa: PLC0415

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", "assay.db:migrations")
    config.set_main_option("path_separator", "os")
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    current = MigrationContext.configure(connection).get_current_revision()
    if current is not None and current not in known:
        raise SchemaTooNew(
            f"the database is at schema {current}, newer than this version of Assay: upgrade Assay"
        )
    command.upgrade(config, "head")
