"""Costs of callers on a UTC day, by bearer and kind. Rows are removed after two days."""

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
