"""Tables of accounts, their credentials, and the audit trail."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
    text,
    true,
)

from assay.db.schema.metadata import METADATA

operators = Table(
    "operators",
    METADATA,
    Column("id", String(36), primary_key=True),
    Column("email", Text, nullable=False),
    Column("email_lower", Text, nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("role", String(16), nullable=False),
    Column("plan", String(16), nullable=False),
    Column("fee_rate", String(32), nullable=False),
    Column("password_hash", Text, nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Column("updated_us", BigInteger, nullable=False),
    Column("suspended_us", BigInteger),
    Column("email_verified_us", BigInteger),
    # Sealed; in force once it is confirmed. The step is that of the last code accepted.
    Column("totp_secret", LargeBinary),
    Column("totp_confirmed_us", BigInteger),
    Column("totp_step", BigInteger),
    # A keyed hash of the network that signed up; the quota of accounts is counted by it.
    Column("sign_up_origin", String(64)),
    # A deleted account is also suspended, so every check of suspension refuses it.
    Column("deleted_us", BigInteger),
    # Whether it was created by sign-up, not made or invited by an admin: such accounts share a
    # budget.
    Column("self_registered", Boolean, nullable=False, server_default=true()),
    Index("ix_operators_origin", "sign_up_origin", "created_us"),
)

api_keys = Table(
    "api_keys",
    METADATA,
    Column("id", String(36), primary_key=True),
    Column("operator_id", String(36), ForeignKey("operators.id"), nullable=False),
    Column("key_hash", String(64), nullable=False, unique=True),
    Column("prefix", String(32), nullable=False),
    Column("label", Text),
    Column("revoked", Boolean, nullable=False),
    Column("last_used_us", BigInteger),
    Column("created_us", BigInteger, nullable=False),
    # Names separated by spaces, in alphabetical order.
    Column("scopes", Text, nullable=False, server_default="evaluate gate proxy webhooks"),
    Column("expires_us", BigInteger),
    # JSON, as the gate writes it.
    Column("gate_policies", Text, nullable=False, server_default=""),
    Index("ix_api_keys_operator", "operator_id", "created_us"),
)

dashboard_sessions = Table(
    "dashboard_sessions",
    METADATA,
    # The `jti` of the token. A session that was revoked has no row.
    Column("id", String(36), primary_key=True),
    Column("operator_id", String(36), ForeignKey("operators.id"), nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Column("used_us", BigInteger, nullable=False),
    Column("expires_us", BigInteger, nullable=False),
    Column("user_agent", Text, nullable=False),
    Column("client", String(64), nullable=False),
    Index("ix_dashboard_sessions_operator", "operator_id", "created_us"),
    Index("ix_dashboard_sessions_expires", "expires_us"),
)

account_codes = Table(
    "account_codes",
    METADATA,
    Column("code_hash", String(64), primary_key=True),
    Column("kind", String(16), nullable=False),
    Column("operator_id", String(36), ForeignKey("operators.id")),
    # For an invitation: the only address that may use it. For a verification: the address it
    # proves.
    Column("email_lower", Text),
    Column("created_us", BigInteger, nullable=False),
    Column("expires_us", BigInteger, nullable=False),
    # Kept for a day, and until it would have expired: recent codes are counted by their rows.
    Column("spent_us", BigInteger),
    Column("asked_by", String(16), nullable=False, server_default="terminal"),
    # Keyed hashes of the network that requested it and of the mailbox it was sent to.
    Column("origin", String(64)),
    Column("mailbox", String(64)),
    Index("ix_account_codes_origin", "origin"),
    Index("ix_account_codes_mailbox", "mailbox"),
    Index("ix_account_codes_operator", "operator_id", "kind"),
    Index("ix_account_codes_expires", "expires_us"),
)

recovery_codes = Table(
    "recovery_codes",
    METADATA,
    Column("operator_id", String(36), ForeignKey("operators.id"), primary_key=True),
    Column("code_hash", String(64), primary_key=True),
)

login_origins = Table(
    "login_origins",
    METADATA,
    Column("operator_id", String(36), ForeignKey("operators.id"), primary_key=True),
    # A keyed hash of a network from which a log-in has succeeded.
    Column("origin", String(64), primary_key=True),
    Column("used_us", BigInteger, nullable=False),
)

_IS_FAILED_LOGIN = text("action = 'login.failed'")
audit = Table(
    "audit",
    METADATA,
    # Triggers make the trail append-only, except that failed log-ins may be removed.
    Column("seq", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("id", String(36), nullable=False, unique=True),
    Column("at_us", BigInteger, nullable=False),
    Column("actor_kind", String(16), nullable=False),
    Column("actor_id", String(36)),
    Column("client", String(64), nullable=False),
    Column("request_id", String(64), nullable=False),
    Column("action", String(32), nullable=False),
    Column("operator_id", String(36), nullable=False),
    Column("target", String(64), nullable=False),
    Column("details", Text, nullable=False),
    Index("ix_audit_operator", "operator_id", "seq"),
    Index("ix_audit_actor", "actor_id"),
    Index(
        "ix_audit_failed_logins",
        "at_us",
        sqlite_where=_IS_FAILED_LOGIN,
        postgresql_where=_IS_FAILED_LOGIN,
    ),
)


earlier_keys = Table(
    "earlier_keys",
    METADATA,
    Column("id", Integer, primary_key=True),
    # Key ids separated by spaces, set once a version that signs with ES256 has begun to serve.
    Column("kids", Text, nullable=False),
    Column("until_us", BigInteger),
)
