"""Credentials that owners deposited for evaluations of their agents' services."""

from sqlalchemy import BigInteger, Column, Index, LargeBinary, String, Table, UniqueConstraint

from assay.db.schema.metadata import METADATA

service_credentials = Table(
    "service_credentials",
    METADATA,
    Column("id", String(36), primary_key=True),
    Column("subject_key", String(160), nullable=False),
    Column("chain", String(64), nullable=False),
    Column("agent_id", String(80), nullable=False),
    # The agent's owner at that time; a transfer invalidates earlier deposits.
    Column("owner", String(64), nullable=False),
    Column("url", String(1024), nullable=False),
    Column("place", String(8), nullable=False),
    Column("name", String(64), nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    Column("created_us", BigInteger, nullable=False),
    # The last visit that used it, and the result there.
    Column("used_us", BigInteger),
    Column("outcome", String(12)),
    UniqueConstraint("subject_key", "url", name="uq_service_credentials_url"),
    Index("ix_service_credentials_owner", "owner"),
    Index("ix_service_credentials_used", "used_us", "created_us"),
)
