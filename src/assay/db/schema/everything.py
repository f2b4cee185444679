"""The schema of both databases. Times are microseconds since 1970; JSON is text.

`migrations/` creates it; a test checks that the two agree.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
    false,
    text,
)

from assay.db.schema.accounts import (
    account_codes,
    api_keys,
    audit,
    dashboard_sessions,
    earlier_keys,
    login_origins,
    operators,
    recovery_codes,
)
from assay.db.schema.analytics import (
    agent_chains,
    agent_days,
    agent_totals,
    call_days,
    call_id_key,
    call_totals,
    endpoint_days,
    endpoint_totals,
)
from assay.db.schema.budgets import daily_costs, egress_usage
from assay.db.schema.control import (
    agent_identities,
    content_bands,
    control_keys,
    open_findings,
)
from assay.db.schema.evaluation import (
    course_calls,
    course_runs,
    evaluations,
    host_visits,
    listed_agent_hosts,
    listed_agents,
    personhood,
    removed_snapshots,
    service_credentials,
    snapshots,
    visit_requests,
    visit_schedule,
    visit_seeds,
    visits,
    wrapper_conduct,
)
from assay.db.schema.metadata import METADATA
from assay.db.schema.paid_calls import paid_calls
from assay.db.schema.payments import daily_budgets, gas_accounts, transfer_transactions, transfers
from assay.db.schema.reputation import (
    attested_people,
    chain_feedback,
    chain_fundings,
    chain_notes,
    chain_owners,
    chain_proofs,
    chain_transfers,
    index_streams,
)
from assay.db.schema.webhooks import (
    webhook_agents,
    webhook_deliveries,
    webhook_events,
    webhooks,
)
from assay.db.schema.wrappers import (
    free_calls,
    observed_totals,
    tier_quotes,
    wrapper_revisions,
    wrappers,
)

__all__ = [
    "METADATA",
    "account_codes",
    "agent_chains",
    "agent_days",
    "agent_identities",
    "agent_totals",
    "allowance",
    "api_keys",
    "attested_people",
    "audit",
    "call_days",
    "call_id_key",
    "call_totals",
    "calls",
    "chain_feedback",
    "chain_fundings",
    "chain_notes",
    "chain_owners",
    "chain_proofs",
    "chain_transfers",
    "content_bands",
    "control_keys",
    "course_calls",
    "course_runs",
    "daily_budgets",
    "daily_costs",
    "dashboard_sessions",
    "earlier_keys",
    "egress_usage",
    "endpoint_days",
    "endpoint_totals",
    "evaluations",
    "free_calls",
    "gas_accounts",
    "host_visits",
    "index_streams",
    "key_agents",
    "listed_agent_hosts",
    "listed_agents",
    "login_origins",
    "observed_totals",
    "open_findings",
    "operators",
    "paid_calls",
    "paid_responses",
    "payments",
    "personhood",
    "recovery_codes",
    "removed_snapshots",
    "service_credentials",
    "snapshots",
    "state",
    "tier_quotes",
    "transfer_transactions",
    "transfers",
    "visit_requests",
    "visit_schedule",
    "visit_seeds",
    "visits",
    "webhook_agents",
    "webhook_deliveries",
    "webhook_events",
    "webhooks",
    "wrapper_conduct",
    "wrapper_revisions",
    "wrappers",
]

allowance = Table(
    "allowance",
    METADATA,
    Column("operator_id", String(36), ForeignKey("operators.id"), primary_key=True),
    Column("month", String(7), primary_key=True),
    Column("used", BigInteger, nullable=False),
)

key_agents = Table(
    "key_agents",
    METADATA,
    Column("address", String(42), primary_key=True),
    Column("verified_us", BigInteger, nullable=False),
    Index("ix_key_agents_verified", "verified_us"),
)

state = Table(
    "state",
    METADATA,
    Column("key", String(200), primary_key=True),
    Column("value", Text, nullable=False),
    Column("expires_us", BigInteger, nullable=False),
    Index("ix_state_expires", "expires_us"),
)

_SETTLED = text("settled_us IS NOT NULL")
_WATCH_SETTLED = text("watch_us IS NOT NULL AND settled_us IS NOT NULL")
_WATCH_UNPAID = text("watch_us IS NOT NULL AND settled_us IS NULL")
_ENDED = text("state IN ('released', 'failed') AND watch_us IS NULL AND settled_us IS NULL")
payments = Table(
    "payments",
    METADATA,
    Column("id", String(36), primary_key=True),
    Column("protocol", String(8), nullable=False),
    Column("network", String(32), nullable=False),
    Column("asset", String(42), nullable=False),
    Column("payer", String(64), nullable=False),
    Column("nonce", String(80), nullable=False),
    Column("digest", String(64), nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("pay_to", String(42), nullable=False),
    Column("operator_id", String(36), nullable=False),
    Column("wrapper_id", String(36), nullable=False),
    Column("request_digest", String(64), nullable=False),
    Column("state", String(10), nullable=False),
    Column("tx", String(80), nullable=False),
    Column("raw_tx", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("credential", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("identifier", String(128)),
    Column("expires_us", BigInteger, nullable=False),
    Column("lease_us", BigInteger, nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Column("updated_us", BigInteger, nullable=False),
    Column("moves", Integer, nullable=False),
    # The agent that analytics count it for, and the time the money arrived: the day of its revenue.
    Column("agent_id", String(80), nullable=False),
    Column("settled_us", BigInteger),
    # When to check it next; null: never.
    Column("watch_us", BigInteger),
    # The most its settlement may cost the payer in addition, while it is in flight.
    Column("fee_token", String(42), nullable=False, server_default=""),
    Column("fee_most", BigInteger, nullable=False, server_default="0"),
    # The cost of its settlement in billionths of the currency, and the party that bears it.
    Column("gas_payer", String(8), nullable=False, server_default=""),
    Column("gas_currency", String(32), nullable=False, server_default=""),
    Column("gas_reserved", BigInteger, nullable=False, server_default="0"),
    Column("gas_spent", BigInteger),
    # Hashes of earlier attempts, separated by spaces; the next check, 0 for now; number of checks.
    Column("earlier_tx", Text, nullable=False, server_default=""),
    Column("look_us", BigInteger, nullable=False, server_default="0"),
    Column("questions", Integer, nullable=False, server_default="0"),
    Column("misses", Integer, nullable=False, server_default="0"),
    Column("is_used", Boolean, nullable=False, server_default=false()),
    # The platform's fee, None for nothing, and the amount paid to it beside the seller.
    Column("fee_rate", String(32)),
    Column("direct_fee", BigInteger, nullable=False, server_default="0"),
    Column("direct_fee_payee", String(42), nullable=False, server_default=""),
    # The wrapper at the time of the claim, and the call's id at its upstream.
    Column("wrapper_revision", Integer, nullable=False, server_default="1"),
    Column("idempotency_key", String(36), nullable=False, server_default=""),
    Index("ix_payments_unique", "network", "asset", "payer", "nonce", unique=True),
    Index("ix_payments_digest", "network", "digest"),
    Index("ix_payments_payer", "network", "asset", "payer", "state"),
    Index("ix_payments_state", "state", "lease_us"),
    Index("ix_payments_operator", "operator_id", "created_us"),
    *(
        Index(name, *columns, sqlite_where=where, postgresql_where=where)
        for name, columns, where in (
            ("ix_payments_watch_settled", ("network", "watch_us"), _WATCH_SETTLED),
            ("ix_payments_watch_unpaid", ("network", "watch_us"), _WATCH_UNPAID),
            ("ix_payments_ended", ("expires_us",), _ENDED),
        )
    ),
    Index("ix_payments_settled", "settled_us", sqlite_where=_SETTLED, postgresql_where=_SETTLED),
    Index(
        "ix_payments_revision",
        "wrapper_id",
        "wrapper_revision",
        sqlite_where=text("wrapper_revision > 1"),
        postgresql_where=text("wrapper_revision > 1"),
    ),
)

paid_responses = Table(
    "paid_responses",
    METADATA,
    Column("payment_id", String(36), ForeignKey("payments.id"), primary_key=True),
    Column("status", Integer, nullable=False),
    Column("headers", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("stored_us", BigInteger, nullable=False),
    # What the signed receipt says beside the payment, as JSON; empty without a receipt.
    Column("receipt", Text, nullable=False, server_default=""),
    Index("ix_paid_responses_stored", "stored_us"),
)

calls = Table(
    "calls",
    METADATA,
    Column("seq", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("operator_id", String(36), nullable=False),
    Column("wrapper_id", String(36), nullable=False),
    Column("at_us", BigInteger, nullable=False),
    Column("request_id", String(64), nullable=False),
    Column("method", String(32), nullable=False),
    Column("path", Text, nullable=False),
    Column("agent_id", String(80)),
    Column("agent_address", String(64)),
    Column("identity_proven", Boolean, nullable=False),
    Column("payer", String(64)),
    Column("client", String(64), nullable=False),
    Column("tier", String(3)),
    Column("score", Float(53)),
    Column("status", Integer, nullable=False),
    Column("outcome", String(32), nullable=False),
    Column("latency_us", BigInteger, nullable=False),
    Column("cost", BigInteger, nullable=False),
    Column("payment_id", String(36)),
    Column("request_bytes", BigInteger, nullable=False),
    Column("response_bytes", BigInteger, nullable=False),
    Column("chain", String(64)),
    Column("route", String(16)),
    # Why the trust check would have refused it, if it only observed.
    Column("would_deny", String(32)),
    # Numbers in place of (operator, agent) and of the wrapper: an index over the texts would cost
    # twice as much a row. Queries by them compare the texts as well.
    Column("agent_key", BigInteger),
    Column("wrapper_key", BigInteger, nullable=False),
    # The index contains the number, so that a page is found in order without reading earlier rows.
    Index("ix_calls_operator", "operator_id", "at_us", "seq"),
    # The index contains the wrapper, so that an agent's calls to one are found without the rows.
    Index("ix_calls_agent", "agent_key", "at_us", "seq", "wrapper_key"),
    Index("ix_calls_wrapper", "wrapper_key", "at_us", "seq"),
    Index(
        "ix_calls_payment",
        "payment_id",
        sqlite_where=text("payment_id IS NOT NULL"),
        postgresql_where=text("payment_id IS NOT NULL"),
    ),
)
