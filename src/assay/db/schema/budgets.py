"""Tables of callers' costs and of outbound usage. Rows are removed after two days.

Costs of callers on a UTC day, by bearer and kind. Rows are removed after two days.

Recent outbound usage by budget. Rows are removed a minute after their request ended.
"""

from sqlalchemy import BigInteger, Column, Index, Integer, String, Table

from assay.db.schema.metadata import METADATA

daily_costs = Table(
    "daily_costs",
    METADATA,
    # `operator` with its id, or `address` with a network.
    Column("bearer", String(100), primary_key=True),
    Column("cost", String(32), primary_key=True),
    Column("day", Integer, primary_key=True),
    Column("used", BigInteger, nullable=False),
    Index("ix_daily_costs_used", "cost", "day", "used"),
)


egress_usage = Table(
    "egress_usage",
    METADATA,
    Column("seq", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("exchange", String(36), nullable=False),
    # A hash: it hides which host is called, and bounds the length of names.
    Column("budget", String(32), nullable=False),
    Column("is_shared", Integer, nullable=False),
    Column("account", String(36), nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("expires_us", BigInteger, nullable=False),
    Index("ix_egress_usage_budget", "budget", "expires_us"),
    Index("ix_egress_usage_exchange", "exchange"),
    Index("ix_egress_usage_expires", "expires_us"),
)
