"""Admins' views, and an account's data, in requests and responses.

The specification leaves the bodies of the admin's views open (interface.md#dashboard).
"""

import json
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
from assay.server.schemas import (
    ActorKindName,
    Caip2Text,
    ClientAddress,
    Count,
    Count0,
    EvmAddress,
    Milliseconds,
    Off,
    PageResponse,
    RateText,
    RecordId,
    RequestModel,
    ResponseModel,
    Timestamp,
    UsdText,
)
from assay.webhooks import schemas as webhooks
from assay.wrappers import schemas as endpoints


class SettlingKeyResponse(ResponseModel):
    """The key that settles x402 payments, on a network where wrappers are sold."""

    network: Caip2Text
    """The network, as a CAIP-2 id."""
    address: EvmAddress
    """The key's address."""
    balance: Annotated[
        str | None, Field(examples=["0.0421"], description="Coins; null while nobody can say.")
    ]
    gas_price_gwei: Annotated[str, Field(examples=["0.012"])] | None
    """The network's gas price in gwei; null if it could not be read."""
    payable: Annotated[
        int,
        Field(
            examples=[120],
            description="Settlements it can pay for now, each at the most it may cost.",
        ),
    ]
    problem: Annotated[str, Field(examples=[""])]
    """What is wrong, in a sentence; empty if nothing is."""


class FacilitatorResponse(ResponseModel):
    """The remote facilitator that settles x402 payments."""

    networks: Annotated[
        list[str] | None,
        Field(
            examples=[["eip155:8453"]],
            description="Those of ours that it lists; null where it does not say.",
        ),
    ]
    problem: Annotated[
        str, Field(examples=[""], description="Why it does not answer; empty where it does.")
    ]


class PaymentNodeResponse(ResponseModel):
    """Whether a node answers, for a network with sales that no settling key asks."""

    network: Caip2Text
    """The network, as a CAIP-2 id."""
    answers: bool
    """Whether the node answered."""


def payment_nodes_response(found: Mapping[str, bool]) -> list[PaymentNodeResponse]:
    """Return those nodes as a response."""
    return [PaymentNodeResponse(network=one, answers=answers) for one, answers in found.items()]


class SolanaWalletResponse(ResponseModel):
    """The wallet that writes scores to the registry on Solana."""

    address: Annotated[str, Field(examples=["7EcDhSYGxXyscszYEp35KHN8vvw3svAuLKTzXwCFLtV"])]
    """Its public key, in base 58."""
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

    bearer: Annotated[str, Field(examples=["203.0.113.0/24"])]
    """An account's id, or a network of addresses."""
    used: Count
    """What it used in the last 24 hours."""


class CostResponse(ResponseModel):
    """One kind of cost in the last 24 hours, as this process counted it."""

    cost: Annotated[str, Field(examples=["evaluations"])]
    """The kind of cost, a stable name."""
    used: Count
    """What all callers used in the last 24 hours."""
    quota: Annotated[
        int | None,
        Field(examples=[1000], description="Of each Free operator or address; null: not bounded."),
    ]
    largest: list[CostBearerResponse]
    """The callers that used most of it."""


class PlatformStatsResponse(ResponseModel):
    """The whole platform. `agents` counts an agent once for every operator that it called."""

    operators: Count
    """Accounts."""
    pro_operators: Count
    """Accounts on the Pro plan."""
    admins: Count
    """Accounts with the role `admin`."""
    suspended_operators: Count0
    """Accounts that are suspended."""
    active_keys: Count
    """API keys that are neither revoked nor expired."""
    active_endpoints: Count
    """Wrappers that answer."""
    agents: Count
    """Agents that called; one counts once for every account it called."""
    total_calls: Count
    """Calls of wrappers so far."""
    total_revenue: UsdText
    """Settled payments so far, in US dollars with six decimals."""
    avg_response_ms: Milliseconds
    """Mean duration of a call in milliseconds; 0 without calls."""
    error_rate: RateText
    """Failed calls per call, 0 to 1, with four decimals."""
    calls_today: Count
    """Calls since 00:00 UTC."""
    revenue_today: UsdText
    """Payments settled since 00:00 UTC, in US dollars."""
    funnel: analytics.FunnelResponse
    """How many calls got how far, from the 402 to the money."""
    costs: list[CostResponse]
    """What callers cost this process in the last 24 hours, by kind."""
    free_settlements: Annotated[
        int,
        Field(
            examples=[0],
            description="Of self-registered accounts today, whose gas this service has borne.",
        ),
    ]
    settling_keys: list[SettlingKeyResponse]
    """The keys that settle x402 payments, one for each network."""
    payment_nodes: list[PaymentNodeResponse]
    """Nodes of networks with sales that no settling key asks."""
    facilitator: Annotated[
        FacilitatorResponse | None,
        Field(description="Absent where none is set.", exclude_if=lambda value: value is None),
    ] = None
    unlogged_calls: Annotated[
        int,
        Field(
            examples=[0], description="Unpaid calls not logged: their callers' rows were used up."
        ),
    ]
    undelivered: Annotated[
        int,
        Field(
            examples=[0],
            description="Webhook deliveries not made: their owners' rows were used up.",
        ),
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

    suspended: Off
    """Whether the account is suspended: nothing of it works then."""
    suspended_at: Timestamp | None
    """When it was suspended; null if it is not."""


class OperatorStatsResponse(ResponseModel):
    """An account's sums."""

    total_calls: Count
    """Calls of wrappers so far."""
    total_revenue: UsdText
    """Settled payments so far, in US dollars with six decimals."""
    unique_agents: Count
    """Different agents that called."""
    avg_response_ms: Milliseconds
    """Mean duration of a call in milliseconds; 0 without calls."""
    error_rate: RateText
    """Failed calls per call, 0 to 1, with four decimals."""
    active_keys: Count
    """API keys that are neither revoked nor expired."""
    active_endpoints: Count
    """Wrappers that answer."""


class OperatorRowResponse(ResponseModel):
    """An account and its sums."""

    operator: AdminOperatorResponse
    """The account."""
    stats: OperatorStatsResponse
    """Sums of the account."""


class OperatorsResponse(PageResponse):
    """A page of accounts, newest first. `operators` is `items` under its earlier name."""

    items: list[OperatorRowResponse]
    """The rows of this page."""
    operators: list[OperatorRowResponse]
    """`items` under its earlier name."""


class OperatorDetailResponse(ResponseModel):
    """An account: its keys, wrappers, newest agents, and revenue of the last 30 days."""

    operator: AdminOperatorResponse
    """The account."""
    keys: list[accounts.KeyResponse]
    """The account's API keys, newest first."""
    endpoints: list[endpoints.EndpointResponse]
    """Its wrappers, newest first."""
    agents: list[analytics.AgentResponse]
    """The agents that called it most recently."""
    revenue: list[analytics.RevenueResponse]
    """Money and calls of the last 30 days, oldest first."""
    stats: analytics.StatsResponse
    """Sums over all calls of the account."""


class ChangeRequest(RequestModel):
    """The changes of an account; at least one member."""

    model_config = ConfigDict(alias_generator=None)

    plan: Annotated[Plan | None, Field(strict=False)] = None
    """The new plan; absent: unchanged."""
    role: Annotated[Role | None, Field(strict=False)] = None
    """The new role; absent: unchanged."""
    fee_rate: Annotated[
        Decimal | None, Field(strict=False, ge=0, le=1, decimal_places=6, examples=["0.025"])
    ] = None
    """The new share of each payment, 0 to 1; absent: unchanged."""
    suspended: Off | None = None
    """True suspends the account, false reinstates it; absent: unchanged."""

    def change(self) -> AccountChange:
        """Return it as the use case takes it."""
        return AccountChange(self.plan, self.role, self.fee_rate, self.suspended)


class ChangedResponse(ResponseModel):
    """The account as it is now."""

    ok: bool
    """Always true in a success."""
    operator: AdminOperatorResponse
    """The account as it is now."""


class NoteResponse(ResponseModel):
    """One line of the audit trail; `operatorId` is null for a log-in to no account."""

    id: RecordId
    """Its id, a UUID."""
    at: Timestamp
    """When it happened."""
    actor: ActorKindName
    """Who did it: `operator`, `admin`, `terminal` or `anonymous`."""
    actor_id: RecordId | None
    """The account that did it; null if none did."""
    client: ClientAddress
    """The address that the request came from."""
    request_id: RecordId
    """The request's id, as in the header `x-request-id`."""
    action: Annotated[str, Field(examples=["key.rotated"])]
    """What was done, as a dotted name."""
    operator_id: RecordId | None
    """The account concerned; null for a log-in to no account."""
    target: RecordId
    """What it was done to: an id, or empty."""
    details: dict[str, Any]
    """Further facts, depending on `action`."""


class AuditResponse(PageResponse):
    """A page of the audit trail, newest first. `notes` and `nextBefore` are earlier names."""

    items: list[NoteResponse]
    """The rows of this page."""
    notes: list[NoteResponse]
    """`items` under its earlier name."""
    next_before: RecordId | None
    """`nextCursor` under its earlier name, as an id; null on the last page."""


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
    """When it happened."""
    actor: ActorKindName
    """Who did it: `operator`, `admin`, `terminal` or `anonymous`."""
    client: ClientAddress
    """The address that the request came from."""
    action: Annotated[str, Field(examples=["key.rotated"])]
    """What was done, as a dotted name."""
    target: RecordId
    """What it was done to: an id, or empty."""
    details: dict[str, Any]
    """Further facts, depending on `action`."""


class AccountExportResponse(ResponseModel):
    """What is stored about the account. Calls and payments: GET /operator/analytics/logs/export."""

    exported_at: Timestamp
    """When this copy was made."""
    operator: accounts.OperatorResponse
    """The account."""
    security: accounts.AccountSecurity
    """Whether the e-mail address and a second factor protect the account."""
    allowance: accounts.AllowanceResponse
    """Metered calls of this month."""
    keys: list[accounts.KeyResponse]
    """The account's API keys, newest first."""
    gate_policies: dict[str, Any]
    """The gate's policies of each key that has some, by the key's id."""
    sessions: list[SessionResponse]
    """The account's dashboard sessions, newest first."""
    endpoints: list[endpoints.EndpointResponse]
    """The account's wrappers, newest first."""
    webhooks: list[webhooks.WebhookResponse]
    """The account's registrations, newest first."""
    stats: analytics.StatsResponse
    """Sums over all calls of the account."""
    audit: list[ExportedNote]
    """The audit trail about the account."""


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
        gate_policies={k.id: json.loads(k.gate_policies) for k in found.keys if k.gate_policies},
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
