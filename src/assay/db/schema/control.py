"""Tables of proven control, of the open findings that depend on it, and of names and texts."""

from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, String, Table, Text

from assay.db.schema.metadata import METADATA

control_keys = Table(
    "control_keys",
    METADATA,
    Column("subject_key", String(160), primary_key=True),
    Column("key", String(300), primary_key=True),
    Column("proof", String(16), nullable=False),
    Column("disputed", Boolean, nullable=False),
    Column("seen_us", BigInteger, nullable=False),
    Index("ix_control_keys_key", "key", "seen_us"),
    Index("ix_control_keys_seen", "seen_us"),
)

open_findings = Table(
    "open_findings",
    METADATA,
    Column("subject_key", String(160), primary_key=True),
    Column("check_name", String(64), primary_key=True),
    Column("opened_us", BigInteger, nullable=False),
    Column("seen_us", BigInteger, nullable=False),
    Index("ix_open_findings_seen", "seen_us"),
)

agent_identities = Table(
    "agent_identities",
    METADATA,
    Column("subject_key", String(160), primary_key=True),
    Column("owner", String(64), nullable=False),
    Column("owner_us", BigInteger),
    Column("group_key", String(32)),
    Column("skeleton", String(200), nullable=False),
    Column("signature", Text, nullable=False),
    Column("rung", Integer, nullable=False),
    Column("first_us", BigInteger, nullable=False),
    Column("seen_us", BigInteger, nullable=False),
    Index("ix_agent_identities_skeleton", "skeleton", "rung", "first_us"),
    Index("ix_agent_identities_group", "group_key"),
    Index("ix_agent_identities_seen", "seen_us"),
)

content_bands = Table(
    "content_bands",
    METADATA,
    Column("band", String(40), primary_key=True),
    Column("subject_key", String(160), primary_key=True),
    Column("seen_us", BigInteger, nullable=False),
    Index("ix_content_bands_subject", "subject_key"),
    Index("ix_content_bands_seen", "seen_us"),
)
"""Only of agents with an open critical finding."""
