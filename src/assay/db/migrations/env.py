"""What Alembic runs: the migrations, on the connection and in the transaction it was handed."""

from alembic import context
from sqlalchemy import Connection

from assay.db.schema.everything import METADATA


def run(connection: Connection) -> None:
    """Apply the migrations the command asked for."""
    context.configure(connection=connection, target_metadata=METADATA)
    with context.begin_transaction():
        context.run_migrations()


run(context.config.attributes["connection"])
