"""Versioned migrations, run from code: no configuration file, nothing for an operator to call."""

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection


class SchemaTooNew(RuntimeError):
    """The database was made by a newer version of the service."""


def upgrade(connection: Connection) -> None:
    """Apply every migration the database lacks, inside the caller's transaction.

    Raises `SchemaTooNew` when the database knows a migration this code does not.
    """
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", "assay.infra.sql:migrations")
    config.set_main_option("path_separator", "os")
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    current = MigrationContext.configure(connection).get_current_revision()
    if current is not None and current not in known:
        raise SchemaTooNew(
            f"the database is at schema {current}, newer than this version of Assay: upgrade Assay"
        )
    command.upgrade(config, "head")
