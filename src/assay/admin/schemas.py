"""Admins' views, and an account's data, in requests and responses.

The specification leaves the bodies of the admin's views open (interface.md#dashboard).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from assay.accounts import schemas as accounts
from assay.accounts.model import AccountChange, Operator, Plan, Role
from assay.accounts.schemas import SessionResponse, session
from assay.admin.account_data import AccountExport
from assay.admin.model import OperatorOverview, PlatformStats
from assay.admin.overview import OperatorDetail
from assay.analytics import schemas as analytics
from assay.audit.service import AuditEntry
from assay.common.clock import iso
from assay.common.costs import Cost, CostLedger
from assay.common.numbers import usd
from assay.payments.settling_watch import FacilitatorStatus, KeyStatus
from assay.server.schemas import PageResponse, RequestModel, ResponseModel, Timestamp
from assay.webhooks import schemas as webhooks
from assay.wrappers import schemas as endpoints


class SettlingKeyResponse(ResponseModel):
    """The key that settles x402 payments, on a network where wrappers are sold."""

    network: str
    address: str
    balance: Annotated[str | None, Field(description="Coins; null while nobody can say.")]
    gas_price_gwei: str | None
    payable: Annotated[
        int, Field(description="Settlements it can pay for now, each at the most it may cost.")
    ]
    problem: str


class FacilitatorResponse(ResponseModel):
    """The remote facilitator that settles x402 payments."""

    networks: Annotated[
        list[str] | None,
        Field(description="Those of ours that it lists; null where it does not say."),
    ]
    problem: Annotated[str, Field(description="Why it does not answer; empty where it does.")]


class PaymentNodeResponse(ResponseModel):
    """Whether a node answers, for a network with sales that no settling key asks."""

    network: str
    answers: bool


def payment_nodes_response(found: Mapping[str, bool]) -> list[PaymentNodeResponse]:
    """Return those nodes as a response."""
    return [PaymentNodeResponse(network=one, answers=answers) for one, answers in found.items()]


class SolanaWalletResponse(ResponseModel):
    """The wallet that writes scores to the registry on Solana."""

    address: str
    lamports: Annotated[int | None, Field(description="Null while nobody can say.")]


def settling_key_response(found: KeyStatus) -> SettlingKeyResponse:
    """Return the key on one network as a response."""
    state = found.state
    return SettlingKeyResponse(
        network=found.network,
        address=found.address,
        balance=None if state is None else f"{Decimal(state.balance).scaleb(-18):f}",
        gas_price_gwei=None if state is None else f"{Decimal(state.gas_price).scaleb(-9):f}",
        payable=found.payable,
        problem=found.problem,
    )


def facilitator_response(found: FacilitatorStatus) -> FacilitatorResponse:
    """Return the facilitator as a response."""
    networks = None if found.networks is None else sorted(found.networks)
    return FacilitatorResponse(networks=networks, problem=found.problem)


class CostBearerResponse(ResponseModel):
    """An operator or a network of addresses, and what it cost in the last day."""

    bearer: str
    used: int


class CostResponse(ResponseModel):
    """One kind of cost in the last 24 hours, as this process counted it."""

    cost: str
    used: int
    quota: Annotated[
        int | None, Field(description="Of each Free operator or address; null: not bounded.")
    ]
    largest: list[CostBearerResponse]


class PlatformStatsResponse(ResponseModel):
    """The whole platform. `agents` counts an agent once for every operator that it called."""

    operators: int
    pro_operators: int
    admins: int
    suspended_operators: int
    active_keys: int
    active_endpoints: int
    agents: int
    total_calls: int
    total_revenue: str
    avg_response_ms: float
    error_rate: str
    calls_today: int
    revenue_today: str
    funnel: analytics.FunnelResponse
    costs: list[CostResponse]
    free_settlements: Annotated[
        int,
        Field(description="Of self-registered accounts today, whose gas this service has borne."),
    ]
    settling_keys: list[SettlingKeyResponse]
    payment_nodes: list[PaymentNodeResponse]
    facilitator: Annotated[
        FacilitatorResponse | None,
        Field(description="Absent where none is set.", exclude_if=lambda value: value is None),
    ] = None
    unlogged_calls: Annotated[
        int, Field(description="Unpaid calls not logged: their callers' rows were used up.")
    ]
    undelivered: Annotated[
        int,
        Field(description="Webhook deliveries not made: their owners' rows were used up."),
    ]
    solana_write_back: Annotated[
        dict[str, int] | None,
        Field(
            description="Scores written to the registry on Solana by this process, by outcome;"
            " absent where none are.",
            exclude_if=lambda value: value is None,
        ),
    ] = None
    solana_wallet: Annotated[
        SolanaWalletResponse | None,
        Field(
            description="What writes are paid from; absent where there are none.",
            exclude_if=lambda value: value is None,
        ),
    ] = None


class AdminOperatorResponse(accounts.OperatorResponse):
    """An account as an admin sees it."""

    suspended: bool
    suspended_at: Timestamp | None


class OperatorStatsResponse(ResponseModel):
    """An account's sums."""

    total_calls: int
    total_revenue: str
    unique_agents: int
    avg_response_ms: float
    error_rate: str
    active_keys: int
    active_endpoints: int


class OperatorRowResponse(ResponseModel):
    """An account and its sums."""

    operator: AdminOperatorResponse
    stats: OperatorStatsResponse


class OperatorsResponse(PageResponse):
    """A page of accounts, newest first. `operators` is `items` under its earlier name."""

    items: list[OperatorRowResponse]
    operators: list[OperatorRowResponse]


class OperatorDetailResponse(ResponseModel):
    """An account: its keys, wrappers, newest agents, and revenue of the last 30 days."""

    operator: AdminOperatorResponse
    keys: list[accounts.KeyResponse]
    endpoints: list[endpoints.EndpointResponse]
    agents: list[analytics.AgentResponse]
    revenue: list[analytics.RevenueResponse]
    stats: analytics.StatsResponse


class ChangeRequest(RequestModel):
    """The changes of an account; at least one member."""

    model_config = ConfigDict(alias_generator=None)

    plan: Annotated[Plan | None, Field(strict=False)] = None
    role: Annotated[Role | None, Field(strict=False)] = None
    fee_rate: Annotated[
        Decimal | None, Field(strict=False, ge=0, le=1, decimal_places=6, examples=["0.025"])
    ] = None
    suspended: bool | None = None

    def change(self) -> AccountChange:
        """Return it as the use case takes it."""
        return AccountChange(self.plan, self.role, self.fee_rate, self.suspended)


class ChangedResponse(ResponseModel):
    """The account as it is now."""

    ok: bool
    operator: AdminOperatorResponse


class NoteResponse(ResponseModel):
    """One line of the audit trail; `operatorId` is null for a log-in to no account."""

    id: str
    at: Timestamp
    actor: str
    actor_id: str | None
    client: str
    request_id: str
    action: str
    operator_id: str | None
    target: str
    details: dict[str, Any]


class AuditResponse(PageResponse):
    """A page of the audit trail, newest first. `notes` and `nextBefore` are earlier names."""

    items: list[NoteResponse]
    notes: list[NoteResponse]
    next_before: str | None


def costs(ledger: CostLedger) -> list[CostResponse]:
    """Return what callers cost this process in the last day, as a response."""
    totals = ledger.totals()
    return [
        CostResponse(
            cost=cost.value,
            used=totals[cost],
            quota=ledger.quotas.get(cost),
            largest=[
                CostBearerResponse(bearer=name, used=used) for name, used in ledger.largest(cost)
            ],
        )
        for cost in Cost
    ]


@dataclass(frozen=True, slots=True)
class Aside:
    """The platform's figures that are not in its store."""

    ledger: CostLedger
    unlogged_calls: int
    undelivered: int
    written: Mapping[str, int] | None
    """Write-backs by outcome, if there are any."""
    wallet: tuple[str, int | None] | None
    """The address that writes to Solana and its lamports, if they are known."""
    free_settlements: int
    keys: Sequence[KeyStatus]
    facilitator: FacilitatorStatus | None
    nodes: Mapping[str, bool]


def platform(found: PlatformStats, aside: Aside) -> PlatformStatsResponse:
    """Return the platform as a response."""
    written, wallet = aside.written, aside.wallet
    return PlatformStatsResponse(
        solana_wallet=wallet and SolanaWalletResponse(address=wallet[0], lamports=wallet[1]),
        costs=costs(aside.ledger),
        free_settlements=aside.free_settlements,
        settling_keys=[settling_key_response(one) for one in aside.keys],
        payment_nodes=payment_nodes_response(aside.nodes),
        facilitator=aside.facilitator and facilitator_response(aside.facilitator),
        unlogged_calls=aside.unlogged_calls,
        undelivered=aside.undelivered,
        operators=found.operators,
        pro_operators=found.pro,
        admins=found.admins,
        suspended_operators=found.suspended,
        active_keys=found.active_keys,
        active_endpoints=found.active_endpoints,
        agents=found.agents,
        total_calls=found.total.calls,
        total_revenue=usd(found.total.revenue),
        avg_response_ms=analytics.average_ms(found.total),
        error_rate=analytics.error_rate(found.total),
        calls_today=found.today.calls,
        revenue_today=usd(found.today.revenue),
        funnel=analytics.funnel(found.funnel),
        solana_write_back=None if written is None else dict(written),
    )


def operator(found: Operator) -> AdminOperatorResponse:
    """Return an account as a response."""
    suspended_at = found.suspended_at
    return AdminOperatorResponse(
        **accounts.operator(found).model_dump(),
        suspended=found.is_suspended,
        suspended_at=None if suspended_at is None else iso(suspended_at),
    )


def row(found: OperatorOverview) -> OperatorRowResponse:
    """Return an account with its sums as a response."""
    return OperatorRowResponse(
        operator=operator(found.operator),
        stats=OperatorStatsResponse(
            total_calls=found.counted.calls,
            total_revenue=usd(found.counted.revenue),
            unique_agents=found.agents,
            avg_response_ms=analytics.average_ms(found.counted),
            error_rate=analytics.error_rate(found.counted),
            active_keys=found.active_keys,
            active_endpoints=found.active_endpoints,
        ),
    )


def detail(found: OperatorDetail) -> OperatorDetailResponse:
    """Return an account in detail as a response."""
    return OperatorDetailResponse(
        operator=operator(found.operator),
        keys=[accounts.key(one) for one in found.keys],
        endpoints=[endpoints.endpoint(one) for one in found.endpoints],
        agents=[analytics.agent(one) for one in found.agents],
        revenue=[analytics.revenue(day, counted) for day, counted in found.revenue],
        stats=analytics.stats(found.stats),
    )


def note(found: AuditEntry) -> NoteResponse:
    """Return a line of the trail as a response."""
    return NoteResponse(
        id=found.id,
        at=iso(found.at),
        actor=found.actor.kind,
        actor_id=found.actor.operator_id,
        client=found.actor.client,
        request_id=found.actor.request_id,
        action=found.action,
        operator_id=found.operator_id or None,
        target=found.target,
        details=dict(found.details),
    )


class ExportedNote(ResponseModel):
    """One line of the audit trail about the account."""

    at: Timestamp
    actor: str
    client: str
    action: str
    target: str
    details: dict[str, Any]


class AccountExportResponse(ResponseModel):
    """What is stored about the account. Calls and payments: GET /operator/analytics/logs/export."""

    exported_at: Timestamp
    operator: accounts.OperatorResponse
    security: accounts.AccountSecurity
    allowance: accounts.AllowanceResponse
    keys: list[accounts.KeyResponse]
    sessions: list[SessionResponse]
    endpoints: list[endpoints.EndpointResponse]
    webhooks: list[webhooks.WebhookResponse]
    stats: analytics.StatsResponse
    audit: list[ExportedNote]


def account_export(
    found: AccountExport, current: str | None, now: datetime
) -> AccountExportResponse:
    """Return an account's data as a response."""
    return AccountExportResponse(
        exported_at=iso(now),
        operator=accounts.operator(found.operator),
        security=accounts.security(found.operator, found.recovery_codes_left),
        allowance=accounts.allowance(found.allowance),
        keys=[accounts.key(one) for one in found.keys],
        sessions=[session(one, current) for one in found.sessions],
        endpoints=[endpoints.endpoint(one) for one in found.endpoints],
        webhooks=[webhooks.webhook(one, None) for one in found.webhooks],
        stats=analytics.stats(found.stats),
        audit=[_note(note(one)) for one in found.notes],
    )


def _note(found: NoteResponse) -> ExportedNote:
    return ExportedNote(
        at=found.at,
        actor=found.actor,
        client=found.client,
        action=found.action,
        target=found.target,
        details=found.details,
    )
