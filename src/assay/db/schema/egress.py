"""Recent outbound usage by budget. Rows are removed a minute after their request ended."""

from sqlalchemy import BigInteger, Column, Index, Integer, String, Table

from assay.db.schema.metadata import METADATA

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
