"""Builds limits from the settings: the egress budget, and limits that processes share."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from typing import Protocol
from urllib.parse import urlsplit

from assay.app.log import Log
from assay.common.clock import Clock
from assay.common.costs import Cost
from assay.common.egress_budget import BudgetRules, BudgetSpent, Ceiling, UseClass, current_use
from assay.common.errors import Unavailable
from assay.common.quota_lease import QuotaLease, SharedWindow
from assay.common.shared_state import SharedState
from assay.db.engine import Database
from assay.db.state import SqlSharedState
from assay.db.store_egress_usage import SqlBudgetLedger
from assay.evaluation.host_turns import HostTurns
from assay.http1.model import Target
from assay.net.egress.address import OpenedAddresses, OpenedForOperators, opened_entry
from assay.net.egress.budget_client import EgressBudget
from assay.net.egress.consent import Consents, origin_of
from assay.net.egress.url import EgressPolicy, domain_of, is_exempt, parse_target
from assay.net.valkey import ValkeyWindow, state_address
from assay.settings import Settings, bind_address


def quotas(settings: Settings) -> Mapping[Cost, int]:
    """Return what a Free operator, or an address, may cost in a day."""
    return {
        Cost.RPC_CALLS: settings.quota_rpc_calls,
        Cost.EVALUATIONS: settings.quota_evaluations,
        Cost.UNPROVEN_EVALUATIONS: settings.quota_unproven_evaluations,
        Cost.ROWS: settings.quota_rows,
        Cost.ACCOUNT_CHANGES: settings.quota_account_changes,
        Cost.DISK_BYTES: settings.quota_disk_mib * 1024 * 1024,
    }


class PlacedWindow(SharedWindow, Protocol):
    """Counts that processes share, and where they are."""

    place: str
    """May be shown."""


async def shared_limits(
    settings: Settings,
    clock: Clock,
    log: Log,
    stack: AsyncExitStack,
    beside: PlacedWindow | None,
    *,
    serving: bool,
) -> QuotaLease | None:
    """Return the quota leases of this process; None if it counts limits by itself.

    They are of the server of `ASSAY_STATE_URL`, else `beside`: the counts of the processes that
    serve on the same socket. A process that serves starts without the server as well, and counts by
    itself until it answers. Raises `StateUrlError` for an unusable URL.
    """
    window, name = beside, "limits"
    if settings.state_url is not None:
        valkey = ValkeyWindow(state_address(settings.state_url.get_secret_value()))
        stack.push_async_callback(valkey.aclose)
        window, name = valkey, "valkey"
    if window is None:
        return None
    place = window.place

    def changed(error: Unavailable | None) -> None:
        if error is None:
            log.info("limits are shared again", state=place)
        else:
            log.warning(
                "the shared state is out of reach: each process keeps its limits by itself,"
                " and all together admit up to as many times as much",
                state=place,
                reason=error.detail,
            )

    quota_lease = QuotaLease(window, clock, changed, name)
    if serving:
        await quota_lease.begin()
        stack.push_async_callback(quota_lease.close)
    return quota_lease


KIB = 1024
GATEWAY_PART = 4
"""The IPFS gateway gets this part of a consenting host's budget: it has not consented."""
HOUR_S = 3600.0
DAY_S = 24 * HOUR_S

MESSAGES_PER_DAY = 20
"""Messages a day to one agent, and to one domain of those that anybody can trigger. Source:
evidence.md#no-acts."""


def egress_budget(settings: Settings, database: Database, clock: Clock) -> EgressBudget:
    """Build the one budget of the process, counted in the database that all processes share."""
    return EgressBudget(
        SqlBudgetLedger(database, clock),
        Consents(SqlSharedState(database, clock), clock),
        _budget_rules(settings),
        _configured(settings),
    )


def _budget_rules(settings: Settings) -> BudgetRules:
    """Return the configured ceilings."""
    return BudgetRules(
        Ceiling(settings.egress_per_minute, settings.egress_kib_per_minute * KIB),
        Ceiling(
            settings.egress_consenting_per_minute,
            settings.egress_consenting_kib_per_minute * KIB,
        ),
        Ceiling(
            settings.egress_consenting_per_minute // GATEWAY_PART,
            settings.egress_consenting_kib_per_minute * KIB // GATEWAY_PART,
        ),
        holds_private=settings.egress_budget_private,
    )


def visit_turns(budget: EgressBudget, state: SharedState, policy: EgressPolicy) -> HostTurns:
    """Return turns of visits, shared by all processes on the state."""
    return HostTurns(state, budget.ledger, budget.consents, policy, budget.rules)


def gate_quota(
    settings: Settings, budget: EgressBudget
) -> Callable[[str], Awaitable[BudgetSpent | None]]:
    """Return what counts an evaluation that a gate causes, by its subject's key."""

    async def count(subject_key: str) -> BudgetSpent | None:
        key = f"gate evaluations {subject_key}"
        return await budget.ledger.count(key, settings.gate_evaluations_per_hour, HOUR_S)

    return count


def message_quota(
    budget: EgressBudget, policy: EgressPolicy
) -> Callable[[str, str], Awaitable[bool]]:
    """Return what counts a message that may cost an agent's owner a call of a model.

    It counts by agent. Messages that anybody can trigger also count by domain, whichever caller
    asks and however many agents are declared there.
    """

    async def may_send(subject_key: str, url: str) -> bool:
        target = parse_target(url, policy)
        if isinstance(target, Target) and is_exempt(target.host, policy, budget.rules):
            return True
        keys = [f"messages to {subject_key}"]
        if isinstance(target, Target) and current_use().use_class is UseClass.SHARED:
            keys = [f"messages to {domain_of(target.host)}", *keys]
        for key in keys:
            if await budget.ledger.count(key, MESSAGES_PER_DAY, DAY_S) is not None:
                return False
        return True

    return may_send


def opened_upstreams(settings: Settings) -> OpenedForOperators:
    """Return what `ASSAY_UPSTREAM_ALLOW` opens, and for which accounts."""
    entries = tuple(opened_entry(text) for text in settings.upstream_allow)
    addresses = OpenedAddresses(entries, _own_ports(settings))
    return OpenedForOperators(addresses, frozenset(settings.upstream_allow_operators))


def _own_ports(settings: Settings) -> frozenset[int]:
    """Return where this service and its stores listen, as far as their addresses show."""
    secrets = (settings.database_url, settings.state_url, settings.smtp_url)
    ports = [_port_of(url.get_secret_value()) for url in secrets if url is not None]
    if settings.ops_bind is not None:
        ports.append(bind_address(settings.ops_bind)[1])
    return frozenset({settings.port, *(port for port in ports if port is not None)})


def _port_of(url: str) -> int | None:
    try:
        return urlsplit(url).port
    except ValueError:  # opening it refuses it; this error's text contains a part of the address
        return None


def _configured(settings: Settings) -> frozenset[str]:
    """Return configured origins whose documents strangers can cause this service to read."""
    lenient = EgressPolicy(allow_private=True, require_https=False)
    gateways = filter(None, (settings.ipfs_gateway, settings.arweave_gateway))
    targets = [parse_target(gateway, lenient) for gateway in gateways]
    return frozenset(origin_of(target) for target in targets if isinstance(target, Target))
