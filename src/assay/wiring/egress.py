"""The egress budget, put together from the settings."""

from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from assay.egress.budget import BudgetRules, Ceiling, Spent
from assay.egress.consent import Consents, origin_of
from assay.egress.opened import OpenedAddresses, OpenedForOperators, opened_entry
from assay.egress.url import EgressPolicy, Target, parse_target
from assay.infra.http.egress_budget import EgressBudget
from assay.infra.sql.egress_usage import SqlBudgetLedger
from assay.infra.sql.engine import Database
from assay.infra.sql.state import SqlSharedState
from assay.kit.clock import Clock
from assay.kit.state import SharedState
from assay.settings import Settings
from assay.trust.turns import HostTurns

KIB = 1024
GATEWAY_PART = 4
"""The IPFS gateway has one quarter of what a host has that consents: it has not."""
HOUR_S = 3600.0


def egress_budget(settings: Settings, database: Database, clock: Clock) -> EgressBudget:
    """The one budget of the process, counted in the database all processes share."""
    return EgressBudget(
        SqlBudgetLedger(database, clock),
        Consents(SqlSharedState(database, clock), clock),
        budget_rules(settings),
        _configured(settings),
    )


def budget_rules(settings: Settings) -> BudgetRules:
    """The ceilings as they are set."""
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
    """Turns of visits, over all processes on the state."""
    return HostTurns(state, budget.ledger, budget.consents, policy, budget.rules)


def gate_quota(
    settings: Settings, budget: EgressBudget
) -> Callable[[str], Awaitable[Spent | None]]:
    """Counts an evaluation that a gate causes, by its subject's key."""

    async def count(subject_key: str) -> Spent | None:
        key = f"gate evaluations {subject_key}"
        return await budget.ledger.count(key, settings.gate_evaluations_per_hour, HOUR_S)

    return count


def opened_upstreams(settings: Settings) -> OpenedForOperators:
    """What `ASSAY_UPSTREAM_ALLOW` opens, and to whom."""
    entries = tuple(opened_entry(text) for text in settings.upstream_allow)
    addresses = OpenedAddresses(entries, _own_ports(settings))
    return OpenedForOperators(addresses, frozenset(settings.upstream_allow_operators))


def _own_ports(settings: Settings) -> frozenset[int]:
    """Where this service and its stores listen, as far as their addresses say so."""
    secrets = (settings.database_url, settings.state_url, settings.smtp_url)
    ports = [_port_of(url.get_secret_value()) for url in secrets if url is not None]
    return frozenset({settings.port, *(port for port in ports if port is not None)})


def _port_of(url: str) -> int | None:
    try:
        return urlsplit(url).port
    except ValueError:  # whoever opens it refuses it; the text of this error holds a part of it
        return None


def _configured(settings: Settings) -> frozenset[str]:
    """Origins that the operator has set, and strangers cause documents to be read from."""
    lenient = EgressPolicy(allow_private=True, require_https=False)
    target = parse_target(settings.ipfs_gateway, lenient) if settings.ipfs_gateway else None
    return frozenset({origin_of(target)}) if isinstance(target, Target) else frozenset()
