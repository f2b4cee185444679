"""Who pays for the gas of settlements: what payments reserve and spend, accounts, daily budgets."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    """Columns of payments and operators, and two tables."""
    payer = sa.Column("gas_payer", sa.String(8), nullable=False, server_default="")
    currency = sa.Column("gas_currency", sa.String(32), nullable=False, server_default="")
    reserved = sa.Column("gas_reserved", sa.BigInteger(), nullable=False, server_default="0")
    for column in (payer, currency, reserved, sa.Column("gas_spent", sa.BigInteger())):
        op.add_column("payments", column)
    itself = sa.Column("self_registered", sa.Boolean(), nullable=False, server_default=sa.true())
    op.add_column("operators", itself)
    # An account of which the trail does not say that the terminal made it counts as a stranger's.
    op.execute(
        "UPDATE operators SET self_registered = FALSE WHERE EXISTS (SELECT 1 FROM audit a"
        " WHERE a.operator_id = operators.id AND a.action = 'account.registered'"
        " AND a.actor_kind = 'terminal')"
    )
    op.create_table(
        "gas_accounts",
        sa.Column("operator_id", sa.String(36), sa.ForeignKey("operators.id"), primary_key=True),
        sa.Column("currency", sa.String(32), primary_key=True),
        sa.Column("balance", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "daily_budgets",
        sa.Column("name", sa.String(120), primary_key=True),
        sa.Column("day", sa.Integer(), primary_key=True),
        sa.Column("used", sa.BigInteger(), nullable=False),
    )
