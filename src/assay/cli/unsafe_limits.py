"""Unsafe settings of limits: so high that they limit nobody, or that one undoes another."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from assay.settings import PREFIX, Settings

LIMITS_MAX: Mapping[str, int] = MappingProxyType(
    {
        "anonymous_per_minute": 60_000,
        "wrapper_per_minute": 60_000,
        "sandbox_per_minute": 600,
        "sandbox_per_agent_minute": 600,
        "body_bytes_max": 64 * 1024 * 1024,
        "guesses_per_minute": 6_000,
        "keyed_per_minute": 6_000_000,
        "gate_evaluations_per_hour": 600,
        "quota_rpc_calls": 10_000_000,
        "quota_evaluations": 200_000,
        "quota_unproven_evaluations": 10_000,
        "quota_rows": 100_000_000,
        "quota_disk_mib": 25_600,
        "quota_account_changes": 500_000,
        "gas_free_settlements_shared": 100_000,
        "solana_feedback_per_day": 100_000,
        "held_bodies_mib": 25_600,
        "wrapper_unread_mib": 800,
        "connections_max": 200_000,
    }
)
"""Above these a limit limits nobody: at least ten times the default, mostly a hundred times."""

ACCOUNTS_MAX: Mapping[str, int] = MappingProxyType(
    {"accounts_per_address": 2_000, "accounts_per_network": 10_000}
)

KEPT_DAYS = (
    *("call_days", "failed_login_days", "unused_account_days", "unproven_days", "key_agent_days"),
    *("unpaid_payment_days", "index_days"),
)
"""Settings of how long what strangers leave is kept; 0 is for ever."""

EGRESS_MAX: Mapping[str, int] = MappingProxyType(
    {
        "egress_per_minute": 600,
        "egress_kib_per_minute": 20 * 1024,
        "egress_consenting_per_minute": 60_000,
        "egress_consenting_kib_per_minute": 2_000 * 1024,
    }
)
"""A host that has not consented gets no more than, by default, one that has; that one gets no more
than a hundred times its default."""

DAYS_MAX = 3_650
BLOCKS_MIB_MAX = 1_024_000
PAID_RESPONSE_HOURS_MAX = 365 * 24
KEPT_ROWS: Mapping[str, int] = MappingProxyType(
    {"wrapper_revisions": 20_000, "evaluations_kept": 100_000, "index_rows": 500_000_000}
)
"""How many rows are kept of what strangers leave; 0 is no bound."""


def limits_lifted(settings: Settings) -> Iterator[str]:
    """Limits above which one caller can take everything."""
    yield from _above(settings, LIMITS_MAX)
    if settings.sign_up == "open":
        yield from _above(settings, ACCOUNTS_MAX)


def connection_caps(settings: Settings) -> Iterator[str]:
    """Caps of one caller that are not below the cap of all."""
    for name in ("connections_per_address", "connections_per_network"):
        value: int = getattr(settings, name)
        if value >= settings.connections_max:
            total = f"ASSAY_CONNECTIONS_MAX is {settings.connections_max}"
            yield f"{PREFIX}{name.upper()} is {value}, and {total}"


def egress_budget(settings: Settings) -> Iterator[str]:
    """Budgets of hosts that strangers name, above which this service attacks them."""
    yield from _above(settings, EGRESS_MAX)


def retention(settings: Settings) -> Iterator[str]:
    """Things that strangers leave, or that people bought, kept for ever."""
    for name in KEPT_DAYS:
        if getattr(settings, name) == 0:
            yield f"{PREFIX}{name.upper()} is 0, which is for ever"
    for name in KEPT_ROWS:
        if getattr(settings, name) == 0:
            yield f"{PREFIX}{name.upper()} is 0, which is no bound"
    if settings.snapshot_store == "local":
        if settings.snapshot_blocks_mib == 0:
            yield "ASSAY_SNAPSHOT_BLOCKS_MIB is 0, which is no bound"
        yield from _above(settings, {"snapshot_blocks_mib": BLOCKS_MIB_MAX})
    yield from _above(
        settings,
        {
            **dict.fromkeys(KEPT_DAYS, DAYS_MAX),
            "paid_response_hours": PAID_RESPONSE_HOURS_MAX,
            **KEPT_ROWS,
        },
    )


def settlement_lease(settings: Settings) -> Iterator[str]:
    """Payments that another process takes over while they are being settled."""
    if settings.settlement_lease_s <= settings.settlement_s:
        yield (
            f"ASSAY_SETTLEMENT_LEASE_S is {settings.settlement_lease_s:g}, and"
            f" ASSAY_SETTLEMENT_S is {settings.settlement_s:g}"
        )


def _above(settings: Settings, limits: Mapping[str, int]) -> Iterator[str]:
    for name, most in limits.items():
        value: int = getattr(settings, name)
        if value > most:
            yield f"{PREFIX}{name.upper()} is {value}, more than {most}"
