"""Tables of evaluations, snapshots, visits and deposited credentials.

Tables of evaluations and snapshots.

Visits to agents, their schedule, and the parties that requested them.

Credentials that owners deposited for evaluations of their agents' services.
"""

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from assay.db.schema.metadata import METADATA

personhood = Table(
    "personhood",
    METADATA,
    Column("subject_key", String(200), primary_key=True),
    Column("agent_id", String(80), nullable=False),
    Column("level", String(32), nullable=False),
    Column("scope", Text, nullable=False),
    Column("nullifier", String(66), nullable=False),
    Column("verified_us", BigInteger, nullable=False),
    UniqueConstraint("scope", "nullifier", name="uq_personhood_human"),
)

course_runs = Table(
    "course_runs",
    METADATA,
    Column("id", String(36), primary_key=True),
    Column("address", String(64), nullable=False),
    Column("seed", String(64), nullable=False),
    Column("steps", Text, nullable=False),
    Column("begun_us", BigInteger, nullable=False),
    Column("finished_us", BigInteger),
    Column("at_step", Integer, nullable=False),
    Column("seen", Text),
    Index("ix_course_runs_address", "address", "finished_us"),
    Index("ix_course_runs_finished", "finished_us", "begun_us"),
)

course_calls = Table(
    "course_calls",
    METADATA,
    Column("seq", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("id", String(36), nullable=False, unique=True),
    Column("run_id", String(36), ForeignKey("course_runs.id"), nullable=False),
    Column("step", Integer, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    Column("ended_ms", BigInteger),
    Column("trail", Text, nullable=False),
    Column("facts", Text, nullable=False),
    Index("ix_course_calls_run", "run_id", "seq"),
)

wrapper_conduct = Table(
    "wrapper_conduct",
    METADATA,
    Column("address", String(64), primary_key=True),
    Column("day", String(10), primary_key=True),
    Column("calls", BigInteger, nullable=False),
    Column("limited", BigInteger, nullable=False),
    Column("early", BigInteger, nullable=False),
    Column("error_run", BigInteger, nullable=False),
    Index("ix_wrapper_conduct_day", "day"),
)

evaluations = Table(
    "evaluations",
    METADATA,
    Column("id", String(36), primary_key=True),
    Column("subject_key", String(160), nullable=False),
    Column("chain", String(64), nullable=False),
    Column("agent_id", String(80), nullable=False),
    Column("wallet", String(64), nullable=False),
    Column("collected", Text, nullable=False),
    Column("unavailable", Text, nullable=False),
    Column("score", Float(53), nullable=False),
    Column("tier", String(3), nullable=False),
    Column("risk_level", String(8), nullable=False),
    Column("route", String(16), nullable=False),
    Column("evaluated_us", BigInteger, nullable=False),
    # The rung proven, and the policy it was graded by (JSON); None for rows older than the ladder.
    Column("rung", Integer),
    Column("policy", Text),
    Index("ix_evaluations_subject", "subject_key", "evaluated_us"),
    Index(
        "ix_evaluations_used",
        "wallet",
        "evaluated_us",
        sqlite_where=text("rung >= 3"),
        postgresql_where=text("rung >= 3"),
    ),
)

snapshots = Table(
    "snapshots",
    METADATA,
    # In SQLite a BIGINT does not auto-increment; only INTEGER is an alias of the row id.
    Column("seq", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("id", String(36), nullable=False, unique=True),
    Column("evaluation_id", String(36), ForeignKey("evaluations.id"), nullable=False),
    Column("subject_key", String(160), nullable=False),
    Column("agent_id", String(80), nullable=False),
    Column("snapshot_hash", String(66), nullable=False),
    Column("previous_hash", String(66), nullable=False),
    Column("encrypted_data_uri", Text),
    Column("interaction_count", Integer, nullable=False),
    Column("taken_us", BigInteger, nullable=False),
    # The hash of all evidence, and the verdict record behind `snapshot_hash`; None as above.
    Column("evidence_hash", String(66)),
    Column("record", Text),
    Index("ix_snapshots_subject", "subject_key", "seq"),
    # Without it, the database scans every snapshot for each evaluation that is removed.
    Index("ix_snapshots_evaluation", "evaluation_id"),
)

removed_snapshots = Table(
    "removed_snapshots",
    METADATA,
    # The hash of a subject's last removed snapshot: the start of the chain that is kept.
    Column("subject_key", String(160), primary_key=True),
    Column("snapshot_hash", String(66), nullable=False),
)


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

listed_agents = Table(
    "listed_agents",
    METADATA,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("subject_key", String(160), nullable=False, unique=True),
    Column("chain", String(64), nullable=False),
    Column("agent_id", String(80), nullable=False),
    Column("wallet", String(64), nullable=False),
    # What the agent says of itself: empty for agents last evaluated before there was a list.
    Column("owner", String(64), nullable=False),
    Column("name", String(80), nullable=False),
    # Compared by code points, so that an index finds how names begin.
    Column(
        "name_key",
        String(80).with_variant(String(80, collation="C"), "postgresql"),
        nullable=False,
    ),
    Column("description", Text, nullable=False),
    # JSON: pairs of name and address. `protocols` is a sum of powers of two.
    Column("services", Text, nullable=False),
    Column("protocols", Integer, nullable=False),
    # The newest evaluation, and the score of the one before it.
    Column("score_cents", BigInteger, nullable=False),
    Column("tier", String(3), nullable=False),
    Column("rung", Integer),
    Column("evaluated_us", BigInteger, nullable=False),
    Column("before_cents", BigInteger),
    Index("ix_listed_agents_score_cents", "score_cents", "id"),
    Index("ix_listed_agents_chain_score_cents", "chain", "score_cents", "id"),
    Index("ix_listed_agents_tier_score_cents", "tier", "score_cents", "id"),
    Index("ix_listed_agents_evaluated_us", "evaluated_us", "id"),
    Index("ix_listed_agents_chain_evaluated_us", "chain", "evaluated_us", "id"),
    Index("ix_listed_agents_tier_evaluated_us", "tier", "evaluated_us", "id"),
    *(
        Index(
            f"ix_listed_agents_protocol_{place}_{column}",
            *(column, "id"),
            sqlite_where=text(f"protocols & {1 << place} <> 0"),
            postgresql_where=text(f"protocols & {1 << place} <> 0"),
        )
        for column in ("score_cents", "evaluated_us")
        for place in range(5)
    ),
    Index("ix_listed_agents_agent_id", "agent_id"),
    Index("ix_listed_agents_wallet", "wallet"),
    Index("ix_listed_agents_owner", "owner"),
    Index("ix_listed_agents_name_key", "name_key"),
)
"""Registered agents with their newest grade, for lists and searches; key agents are not in it."""

listed_agent_hosts = Table(
    "listed_agent_hosts",
    METADATA,
    Column("host", String(255), primary_key=True),
    Column("subject_key", String(160), primary_key=True),
    Index("ix_listed_agent_hosts_subject", "subject_key"),
)
"""The hosts of the services that listed agents declare."""
