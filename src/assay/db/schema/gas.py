"""Tables of prepaid settlement costs of accounts, and of exact daily budgets."""

from sqlalchemy import BigInteger, Column, ForeignKey, Integer, String, Table

from assay.db.schema.metadata import METADATA

gas_accounts = Table(
    "gas_accounts",
    METADATA,
    Column("operator_id", String(36), ForeignKey("operators.id"), primary_key=True),
    # `usd`, or the network whose native coin it is.
    Column("currency", String(32), primary_key=True),
    # Billionths of the currency, less reservations; negative after an unexpected cost.
    Column("balance", BigInteger, nullable=False),
)

daily_budgets = Table(
    "daily_budgets",
    METADATA,
    Column("name", String(120), primary_key=True),
    # A UTC calendar day, in days since 1970. Rows are removed after a month.
    Column("day", Integer, primary_key=True),
    Column("used", BigInteger, nullable=False),
)
