"""Registered agents as anybody may read them: the list, the report and the history.

Source: interface.md#public-reports.
"""

from collections.abc import Sequence
from typing import Annotated, Final

from pydantic import Field

from assay.common.clock import iso
from assay.db.engine import from_us
from assay.evaluation.listing import AgentQuery, ListedAgent
from assay.evaluation.public_agents import HistoryEntry
from assay.evaluation.public_report import (
    CLUSTERS_SHOWN,
    PublicCheck,
    PublicReport,
    PublicReputation,
)
from assay.evaluation.schemas_grade import (
    ChecksResponse,
    DemandResponse,
    Improvements,
    ScoreHigh,
    ScoreLow,
    improvements,
)
from assay.server.schemas import (
    Count,
    HashText,
    NetworkSlug,
    ResponseModel,
    RiskLevelName,
    RouteName,
    ScoreValue,
    Sentences,
    ShownAgentId,
    TierName,
    Timestamp,
    UrlText,
    encode_cursor,
)

Rung = Annotated[
    int | None,
    Field(
        examples=[2],
        description="The rung of the ladder, 0 to 4; null for evaluations from before the ladder.",
    ),
]
_Wallet = Annotated[str, Field(examples=["0x8004a169fb4a3325136eb29fa0ceb6d2e539a432"])]
Protocols = Annotated[
    list[str],
    Field(examples=[["a2a", "mcp"]], description="`a2a`, `mcp`, `http`, `x402`, `grpc`."),
]


class ListedServiceResponse(ResponseModel):
    """A service that the agent declares; both texts are the agent's own."""

    name: Annotated[str, Field(examples=["A2A"])]
    """Its declared name."""
    endpoint: UrlText
    """Its declared address."""


class ListedAgentResponse(ResponseModel):
    """A registered agent with its newest grade."""

    agent_id: ShownAgentId
    """The agent's id: a token id, or a Solana public key."""
    chain: NetworkSlug
    """The agent's network, by its slug."""
    name: Annotated[str, Field(examples=["Weather Scout"])]
    """What the agent calls itself; may be empty."""
    tier: TierName
    score: ScoreValue
    """0 to 100."""
    score_before: Annotated[
        ScoreValue | None,
        Field(description="The score of the evaluation before; null for the first."),
    ]
    rung: Rung
    protocols: Protocols
    evaluated_at: Timestamp
    """When it was evaluated last."""


class ListedAgentsResponse(ResponseModel):
    """A page of evaluated agents."""

    items: list[ListedAgentResponse]
    """The agents, in the order asked for."""
    limit: Count
    """The most agents a page may have, as asked for."""
    next_cursor: Annotated[
        str | None, Field(description="Asks for the next page as `cursor`; null on the last one.")
    ]


class ScorePartResponse(ResponseModel):
    """One step of the sum that makes the score."""

    name: Annotated[
        str,
        Field(
            examples=["behaviour"],
            description="`start`, `behaviour`, `reputation`, `wallet_and_people`, `cap` or"
            " `ceiling`.",
        ),
    ]
    points: Annotated[float, Field(examples=[22.1], description="Points it adds or takes.")]
    reasons: Sentences
    """Why, in sentences; empty for signals of which only the sum is public."""


class PublicRungResponse(ResponseModel):
    """The rung that is proven, and what bounds the score."""

    rung: Annotated[int, Field(examples=[2], ge=0, le=4)]
    """The rung, 0 (nothing proven) to 4."""
    name: Annotated[str, Field(examples=["steady"])]
    """`unproven`, `functional`, `steady`, `used` or `vouched`."""
    ceiling: ScoreValue
    """The highest score on this rung."""
    unconfirmed: bool
    """Whether the rung was held before, and is being looked at again."""
    reason: Annotated[
        str,
        Field(examples=["Rung 2 (steady) is proven, which allows at most 84."]),
    ]
    """Why the ceiling is what it is, in sentences."""
    checks: ChecksResponse
    """Checks that could be made, of those that apply."""
    next_rung: list[DemandResponse]
    """What the next rung asks for; empty on the highest."""


class PublicCheckResponse(ResponseModel):
    """One check and its result."""

    name: Annotated[str, Field(examples=["http_malformed_json"])]
    """The check's name; `/probes/{name}` explains it."""
    family: Annotated[str, Field(examples=["http"])]
    """What the check is about."""
    severity: Annotated[str, Field(examples=["minor"])]
    """`critical`, `major`, `minor` or `info`."""
    outcome: Annotated[str, Field(examples=["fail"])]
    """`pass`, `fail` or `not_tested`."""
    note: Annotated[str, Field(examples=["Broken JSON was answered with 500."])]
    """What was found, in a sentence."""
    asked: Annotated[str, Field(examples=["requests that are wrong"])]
    """What was sent, if the finding says so."""
    seen: Annotated[str, Field(examples=["http: 500"])]
    """What came back, redacted; often empty."""
    fix: Annotated[str, Field(examples=["Answer 400 to a body that is not JSON."])]
    """What to do about it; empty for a check that did not fail."""


class ReviewersResponse(ResponseModel):
    """Customers that cannot be told apart, and what their opinion weighs."""

    addresses: Annotated[
        list[str], Field(examples=[["0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"]])
    ]
    """At most three of their addresses."""
    size: Count
    """How many addresses they are."""
    weight: Annotated[float, Field(examples=[0.8], ge=0)]
    """1 is a full customer."""
    rating: Annotated[
        float | None, Field(examples=[90.0], description="0 to 100; null without an opinion.")
    ]


class PublicReputationResponse(ResponseModel):
    """What customers say, weighed by what they paid, beside the plain average."""

    weighed: ScoreValue
    """The weighed mean, 0 to 100."""
    plain_average: ScoreValue
    """The mean of all ratings without weights, 0 to 100."""
    confidence: Annotated[float, Field(examples=[0.8], ge=0, le=1)]
    """How much evidence supports the weighed mean, 0 to 1."""
    effective_reviewers: Annotated[float, Field(examples=[2.8])]
    """How many independent customers the ratings are worth."""
    ratings: Count
    """How many addresses gave a rating."""
    reviewers: list[ReviewersResponse]
    """The customers, weightiest first, at most 20."""
    reasons: Sentences
    """What decided the value, in sentences."""


class PublicSnapshotResponse(ResponseModel):
    """The link of the evaluation in the agent's chain."""

    snapshot_hash: HashText
    """`0x` and the SHA-256 of `record`."""
    previous_hash: HashText
    """The hash of the link before; `0x0` for the first."""
    evidence_hash: HashText | None
    """The hash of all evidence; null for evaluations from before the ladder."""
    record: Annotated[
        str | None,
        Field(
            examples=['{"checks":{"reachable":"passed"},"format":"assay.verdict.v2"}'],
            description="The verdict as canonical JSON, which `snapshotHash` hashes; null for"
            " evaluations from before the ladder.",
        ),
    ]


class PublicReportResponse(ResponseModel):
    """The public report of a registered agent: its newest evaluation, without who asked for it."""

    agent_id: ShownAgentId
    """The agent's id: a token id, or a Solana public key."""
    chain: NetworkSlug
    """The agent's network, by its slug."""
    registry: Annotated[
        str, Field(examples=["eip155:8453:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432"])
    ]
    """The registry that the agent is in, as registration files name it."""
    name: Annotated[str, Field(examples=["Weather Scout"])]
    """What the agent calls itself; may be empty."""
    description: Annotated[str, Field(examples=["Forecasts for cities."])]
    """What it says of itself; may be empty."""
    services: list[ListedServiceResponse]
    """Services it declares, at most eight."""
    protocols: Protocols
    wallet: _Wallet
    """The wallet that acts for the agent."""
    owner: Annotated[str, Field(examples=["0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"])]
    """Its owner in the registry; empty where it was not recorded."""
    tier: TierName
    score: ScoreValue
    """0 to 100."""
    score_low: Annotated[
        ScoreLow | None,
        Field(description="The score had every check that was not made failed; null as `ladder`."),
    ]
    score_high: Annotated[
        ScoreHigh | None,
        Field(description="The score had every check that was not made passed; null as `ladder`."),
    ]
    risk_level: RiskLevelName
    route: RouteName
    """The route that the tier leads to."""
    ladder: Annotated[
        PublicRungResponse | None, Field(description="Null for evaluations from before the ladder.")
    ]
    parts: list[ScorePartResponse]
    """How the score adds up, in order."""
    improve: Improvements
    checks: list[PublicCheckResponse]
    """Every check that applies: failures first."""
    reputation: Annotated[
        PublicReputationResponse | None, Field(description="Null without any opinion that counts.")
    ]
    snapshot: PublicSnapshotResponse
    """The evaluation's link in the agent's chain."""
    evaluated_at: Timestamp
    """When the agent was evaluated."""
    valid_until: Timestamp
    """Until when this evaluation may be reused at most."""


class HistoryEntryResponse(ResponseModel):
    """One evaluation of an agent, and why it differs from the one before."""

    evaluated_at: Timestamp
    """When the agent was evaluated."""
    tier: TierName
    tier_before: Annotated[
        TierName | None, Field(description="Null if the evaluation before is not kept.")
    ]
    score: ScoreValue
    """0 to 100."""
    rung: Rung
    reasons: Sentences
    """What changed, in sentences; empty if nothing did."""
    snapshot_hash: HashText
    """The hash of the verdict."""
    previous_hash: HashText
    """The hash of the link before; `0x0` for the first."""


class AgentHistoryResponse(ResponseModel):
    """Evaluations of an agent, newest first."""

    agent_id: ShownAgentId
    """The agent's id: a token id, or a Solana public key."""
    chain: NetworkSlug
    """The agent's network, by its slug."""
    items: list[HistoryEntryResponse]
    """The evaluations."""
    limit: Count
    """The most evaluations a page may have, as asked for."""
    next_cursor: Annotated[
        str | None, Field(description="Asks for the next page as `cursor`; null on the last one.")
    ]


def agents(found: Sequence[ListedAgent], query: AgentQuery, limit: int) -> ListedAgentsResponse:
    """Return a page; `found` has one agent more than `limit` if there is a next page."""
    shown = found[:limit]
    more = len(found) > limit
    return ListedAgentsResponse(
        items=[_listed(one) for one in shown],
        limit=limit,
        next_cursor=encode_cursor(place_of(shown[-1], query)) if more and shown else None,
    )


def place_of(last: ListedAgent, query: AgentQuery) -> str:
    """Return the place after an agent in the order of a query, as its cursor encodes it."""
    value = round(last.score * 100) if query.sort == "score" else last.evaluated_us
    return f"{query.sort}:{value}:{last.id}"


def _listed(one: ListedAgent) -> ListedAgentResponse:
    return ListedAgentResponse(
        agent_id=one.agent_id,
        chain=one.chain,
        name=one.name,
        tier=one.tier,
        score=one.score,
        score_before=one.score_before,
        rung=one.rung,
        protocols=list(one.protocols),
        evaluated_at=iso(from_us(one.evaluated_us)),
    )


def report(found: PublicReport) -> PublicReportResponse:
    """Return the report as a response."""
    agent, evaluation, score = found.agent, found.evaluation, found.score
    return PublicReportResponse(
        agent_id=agent.agent_id,
        chain=agent.chain,
        registry=found.network.agent_registry,
        name=agent.name,
        description=agent.description,
        services=[ListedServiceResponse(name=n, endpoint=url) for n, url in agent.services],
        protocols=list(agent.protocols),
        wallet=agent.wallet,
        owner=agent.owner,
        tier=evaluation.grade.tier,
        score=evaluation.score,
        score_low=None if score is None else score.low,
        score_high=None if score is None else score.high,
        risk_level=evaluation.grade.risk_level,
        route=evaluation.grade.route,
        ladder=_rung(found),
        parts=[
            ScorePartResponse(name=one.name, points=one.points, reasons=list(one.reasons))
            for one in found.parts
        ],
        improve=improvements(found.improve),
        checks=[_check(one) for one in found.checks],
        reputation=None if found.reputation is None else _reputation(found.reputation),
        snapshot=PublicSnapshotResponse(
            snapshot_hash=found.snapshot.snapshot_hash,
            previous_hash=found.snapshot.previous_hash,
            evidence_hash=found.snapshot.evidence_hash,
            record=found.snapshot.record,
        ),
        evaluated_at=iso(evaluation.evaluated_at),
        valid_until=iso(found.valid_until),
    )


def _rung(found: PublicReport) -> PublicRungResponse | None:
    score = found.score
    if score is None:
        return None
    made, of = score.checks_made, score.checks_applicable
    return PublicRungResponse(
        rung=score.place.rung,
        name=score.place.name,
        ceiling=score.place.ceiling,
        unconfirmed=score.place.is_unconfirmed,
        reason=found.ceiling_reason,
        checks=ChecksResponse(
            made=made, applicable=of, summary=f"{made} of {of} applicable checks"
        ),
        next_rung=[
            DemandResponse(
                name=one.name, state=one.state, asks=one.asks, why=one.why, action=one.action
            )
            for one in found.demands
        ],
    )


def _check(one: PublicCheck) -> PublicCheckResponse:
    return PublicCheckResponse(
        name=one.name,
        family=one.family,
        severity=one.severity,
        outcome=one.outcome,
        note=one.note,
        asked=one.asked,
        seen=one.seen,
        fix=one.fix,
    )


_ADDRESSES_SHOWN: Final = 3


def _reputation(found: PublicReputation) -> PublicReputationResponse:
    weighed = found.weighed
    heaviest = sorted(weighed.clusters, key=lambda one: (-one.weight, one.members))
    return PublicReputationResponse(
        weighed=weighed.value,
        plain_average=found.plain_average,
        confidence=weighed.confidence,
        effective_reviewers=weighed.mass,
        ratings=found.ratings,
        reviewers=[
            ReviewersResponse(
                addresses=list(one.members[:_ADDRESSES_SHOWN]),
                size=len(one.members),
                weight=round(one.weight, 4),
                rating=None if one.rating is None else float(one.rating),
            )
            for one in heaviest[:CLUSTERS_SHOWN]
        ],
        reasons=list(found.reasons),
    )


def history(
    agent_id: str, chain: str, found: Sequence[HistoryEntry], limit: int
) -> AgentHistoryResponse:
    """Return a page of the history; `found` has one entry more if there is a next page."""
    shown = found[:limit]
    more = len(found) > limit
    return AgentHistoryResponse(
        agent_id=agent_id,
        chain=chain,
        items=[_entry(one) for one in shown],
        limit=limit,
        next_cursor=encode_cursor(f"seq:{shown[-1].seq}") if more and shown else None,
    )


def _entry(one: HistoryEntry) -> HistoryEntryResponse:
    return HistoryEntryResponse(
        evaluated_at=iso(one.evaluation.evaluated_at),
        tier=one.evaluation.grade.tier,
        tier_before=one.tier_before,
        score=one.evaluation.score,
        rung=one.evaluation.rung,
        reasons=list(one.reasons),
        snapshot_hash=one.snapshot.snapshot_hash,
        previous_hash=one.snapshot.previous_hash,
    )
