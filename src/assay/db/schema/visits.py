"""Visits to agents, their schedule, and the parties that requested them."""

from sqlalchemy import BigInteger, Column, Index, Integer, String, Table, Text

from assay.db.schema.metadata import METADATA

visits = Table(
    "visits",
    METADATA,
    Column("seq", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("subject_key", String(160), nullable=False),
    Column("at_us", BigInteger, nullable=False),
    Column("timing", String(10), nullable=False),
    Column("label", String(12), nullable=False),
    Column("rung", Integer, nullable=False),
    # Whether it saw a critical finding: frequent requests must not push those out.
    Column("is_critical", Integer, nullable=False),
    # JSON: outcomes by check, states by service, fingerprints, facts and changes.
    Column("seen", Text, nullable=False),
    Index("ix_visits_subject", "subject_key", "at_us"),
    Index("ix_visits_at", "at_us"),
)

visit_schedule = Table(
    "visit_schedule",
    METADATA,
    Column("subject_key", String(160), primary_key=True),
    Column("chain", String(64), nullable=False),
    Column("agent_id", String(80), nullable=False),
    Column("host", String(255), nullable=False),
    Column("has_control", Integer, nullable=False),
    # 1: enrolled by its owner, 2: requested, 3: the rest, visited as capacity allows.
    Column("rank", Integer, nullable=False),
    Column("reason", String(24), nullable=False),
    Column("due_us", BigInteger, nullable=False),
    # When it was due before visible events postponed it: they may do so for a bounded time.
    Column("planned_us", BigInteger, nullable=False),
    Column("confirms", Integer, nullable=False),
    Column("tries", Integer, nullable=False),
    # The last visit, and the last time any caller requested the agent.
    Column("visited_us", BigInteger, nullable=False),
    Column("asked_us", BigInteger, nullable=False),
    Column("lease_us", BigInteger, nullable=False),
    # No unannounced visit happens before then: a visible event occurred shortly before.
    Column("quiet_us", BigInteger, nullable=False, server_default="0"),
    Index("ix_visit_schedule_due", "has_control", "rank", "due_us"),
    Index("ix_visit_schedule_asked", "rank", "asked_us"),
)

visit_requests = Table(
    "visit_requests",
    METADATA,
    # `owner`, `operator` or `seller` (of a paid wrapper that checks the agent).
    Column("kind", String(8), primary_key=True),
    # The owner's address or the operator's id.
    Column("holder", String(64), primary_key=True),
    Column("subject_key", String(160), primary_key=True),
    Column("chain", String(64), nullable=False),
    Column("agent_id", String(80), nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Index("ix_visit_requests_subject", "subject_key"),
)

host_visits = Table(
    "host_visits",
    METADATA,
    # Scheduled visits to a host on a UTC day, of agents with and without proven control there.
    Column("host", String(255), primary_key=True),
    Column("day", Integer, primary_key=True),
    Column("has_control", Integer, primary_key=True),
    Column("visits", Integer, nullable=False),
    Index("ix_host_visits_day", "day"),
)

visit_seeds = Table(
    "visit_seeds",
    METADATA,
    # The hash of a visit's seed, stored when it starts, so that no seed is chosen afterwards.
    Column("commitment", String(64), primary_key=True),
    Column("subject_key", String(160), nullable=False),
    Column("at_us", BigInteger, nullable=False),
    Index("ix_visit_seeds_at", "at_us"),
)
