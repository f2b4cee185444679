"""Chain events that reputation is computed from, as far as they were read.

Days are counted from 1970; amounts are millionths of a dollar. Rows of a block that a chain
reorganised are removed with it, see `SqlEventStore.rewind`.
"""

from sqlalchemy import BigInteger, Boolean, Column, Float, Index, Integer, String, Table, false

from assay.db.schema.metadata import METADATA

index_streams = Table(
    "index_streams",
    METADATA,
    # The kind of event: `feedback`, `owners`, `payments` or `funding`. Also `gone`, payments that
    # are no longer read and whose rows are being removed; `exchange`, an address that funded as
    # many as one.
    Column("kind", String(16), primary_key=True),
    Column("network", String(64), primary_key=True),
    # An address, or empty for everything on the network.
    Column("subject", String(64), primary_key=True),
    Column("block", BigInteger, nullable=False),
    Column("block_hash", String(66), nullable=False),
    Column("rows", Integer, nullable=False),
    Column("is_done", Boolean, nullable=False),
    # Whether it was ever read to the newest block: until then, events may be missing.
    Column("is_whole", Boolean, nullable=False, server_default=false()),
    # When an evaluation last needed it; for a funding, when it was last checked.
    Column("asked_day", Integer, nullable=False, server_default="0"),
    Index("ix_index_streams_due", "kind", "network", "is_done", "block"),
    Index("ix_index_streams_asked", "kind", "asked_day"),
)

chain_feedback = Table(
    "chain_feedback",
    METADATA,
    Column("network", String(64), primary_key=True),
    Column("agent_id", String(80), primary_key=True),
    Column("client", String(64), primary_key=True),
    Column("number", BigInteger, primary_key=True),
    Column("block", BigInteger, nullable=False),
    Column("day", Integer, nullable=False),
    Column("rating", Float(53)),
    Column("uri", String(512), nullable=False),
    Column("digest", String(64), nullable=False),
    # `unchecked` or `none`; `asked` and `again` while it waits to be read; then a name of
    # `reputation.files.FileState`.
    Column("file", String(12), nullable=False),
    # Not tried before that day.
    Column("file_day", Integer, nullable=False, server_default="0"),
    Index("ix_chain_feedback_block", "network", "block"),
    Index("ix_chain_feedback_file", "file", "file_day"),
)

chain_notes = Table(
    "chain_notes",
    METADATA,
    # A revocation of an entry, or a response to it: it may be read before the entry itself.
    Column("network", String(64), primary_key=True),
    Column("tx", String(66), primary_key=True),
    Column("log", Integer, primary_key=True),
    Column("agent_id", String(80), nullable=False),
    Column("client", String(64), nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("block", BigInteger, nullable=False),
    Column("is_revocation", Boolean, nullable=False),
    Index("ix_chain_notes_agent", "network", "agent_id"),
    Index("ix_chain_notes_block", "network", "block"),
)

chain_owners = Table(
    "chain_owners",
    METADATA,
    Column("network", String(64), primary_key=True),
    Column("tx", String(66), primary_key=True),
    Column("log", Integer, primary_key=True),
    Column("agent_id", String(80), nullable=False),
    Column("owner", String(64), nullable=False),
    Column("block", BigInteger, nullable=False),
    Index("ix_chain_owners_agent", "network", "agent_id"),
    Index("ix_chain_owners_block", "network", "block"),
)

chain_transfers = Table(
    "chain_transfers",
    METADATA,
    Column("network", String(64), primary_key=True),
    Column("tx", String(66), primary_key=True),
    Column("log", Integer, primary_key=True),
    Column("sender", String(64), nullable=False),
    Column("recipient", String(64), nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("block", BigInteger, nullable=False),
    Column("day", Integer, nullable=False),
    Column("is_charge", Boolean, nullable=False),
    Index("ix_chain_transfers_recipient", "network", "recipient"),
    Index("ix_chain_transfers_sender", "network", "sender"),
    Index("ix_chain_transfers_block", "network", "block"),
)

chain_fundings = Table(
    "chain_fundings",
    METADATA,
    Column("network", String(64), primary_key=True),
    Column("account", String(64), primary_key=True),
    Column("funder", String(64), nullable=False),
    Column("block", BigInteger, nullable=False),
    Index("ix_chain_fundings_funder", "network", "funder"),
    Index("ix_chain_fundings_block", "network", "block"),
)

chain_proofs = Table(
    "chain_proofs",
    METADATA,
    # A payment that one feedback proves; `network` is the payment's, `registry` the feedback's.
    Column("network", String(64), primary_key=True),
    Column("tx", String(66), primary_key=True),
    Column("log", Integer, primary_key=True),
    Column("registry", String(64), nullable=False),
    Column("agent_id", String(80), nullable=False),
    Column("client", String(64), nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("recipient", String(64), nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("block", BigInteger, nullable=False),
    Column("day", Integer, nullable=False),
    Column("is_charge", Boolean, nullable=False),
    Index("ix_chain_proofs_agent", "registry", "agent_id"),
    Index("ix_chain_proofs_block", "network", "block"),
)

attested_people = Table(
    "attested_people",
    METADATA,
    # A hash of an attestation's statement about a person, and the address that used it first.
    Column("trait", String(64), primary_key=True),
    Column("address", String(64), nullable=False),
    Column("seen_day", Integer, nullable=False),
    Index("ix_attested_people_seen", "seen_day"),
)
