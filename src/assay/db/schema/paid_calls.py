"""Calls to sellers that the operator paid for: the claims made for them, and the results."""

from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, String, Table, Text

from assay.db.schema.metadata import METADATA

paid_calls = Table(
    "paid_calls",
    METADATA,
    Column("id", String(36), primary_key=True),
    Column("subject_key", String(160), nullable=False),
    Column("service", String(2048), nullable=False),
    Column("payee", String(42), nullable=False),
    Column("owner", String(64), nullable=False),
    Column("site", String(255), nullable=False),
    Column("domain", String(255), nullable=False),
    Column("network", String(32), nullable=False),
    # The party that funds the wallet; the wallet is derived from that key and this row's id.
    Column("sender", String(42), nullable=False),
    Column("wallet", String(42), nullable=False),
    # Base units: the amount in the wallet, and the amount with gas, which counts in budgets.
    Column("amount", BigInteger, nullable=False),
    Column("cost", BigInteger, nullable=False),
    Column("opened_us", BigInteger, nullable=False),
    Column("nonce", BigInteger),
    Column("raw", Text, nullable=False),
    Column("transaction_hash", String(66), nullable=False),
    Column("is_filled", Boolean, nullable=False),
    # Visits that spent from it.
    Column("tries", Integer, nullable=False),
    Column("is_proven", Boolean, nullable=False),
    Column("taken", BigInteger, nullable=False),
    # JSON: the transcript of the purchase; NULL before there is one.
    Column("bought", Text),
    Column("kept_us", BigInteger),
    Index("ix_paid_calls_opened", "opened_us"),
    Index("ix_paid_calls_payee", "payee", "opened_us"),
    Index("ix_paid_calls_subject", "subject_key", "opened_us"),
    Index("ix_paid_calls_nonce", "sender", "network", "nonce", unique=True),
)
