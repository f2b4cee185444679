"""Tables of what is known of agents beyond their evaluations."""

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from assay.infra.sql.metadata import METADATA

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
