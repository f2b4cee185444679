"""Evaluated agents whose registration says what a test wants, written as evaluations write them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from assay.common.ids import new_id
from assay.db.engine import Database
from assay.evaluation.listing import listing_of
from assay.evaluation.model import (
    Evaluation,
    Evidence,
    Grade,
    SignalName,
    SignalResult,
    SignalScore,
    Snapshot,
)
from assay.evaluation.store_evaluations import SqlEvaluationStore
from assay.registries.model import OnchainAgent, RegistrationFile, Service, Subject
from tests.support.fakes.trust import NETWORK

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


async def put_agents(
    database: Database, texts: Mapping[str, Sequence[str]], chain: str = "local"
) -> None:
    """An evaluated agent for each id, with its name, its description and its service's address."""
    store = SqlEvaluationStore(database)
    network = replace(NETWORK, slug=chain)
    for agent_id, (name, description, endpoint) in texts.items():
        file = RegistrationFile(
            name=name,
            image=endpoint,
            description=description,
            services=(Service(name, endpoint), Service("web", f"https://{endpoint}.example/")),
        )
        agent = OnchainAgent(network, agent_id, "0x" + "a" * 40, None, "data:,", file, None)
        subject = Subject(network, agent_id, "0x" + "a" * 40, agent)
        made = _evaluation(subject)
        await store.add(made, _snapshot(made), None, listing_of(subject, made.collected))


def _evaluation(subject: Subject) -> Evaluation:
    return Evaluation(
        id=new_id(),
        subject_key=subject.key,
        chain=subject.network.slug,
        agent_id=subject.agent_id,
        wallet=subject.wallet,
        collected=(
            SignalResult(
                SignalName.SANDBOX,
                Evidence({"status": "inconclusive", "why": "unreachable", "probes": {}}),
                SignalScore(50.0, 0.0, ("None of the agent's services could be reached.",)),
            ),
        ),
        unavailable={},
        score=50.0,
        grade=Grade("B", "RED", "sandbox"),
        evaluated_at=AT,
        rung=0,
    )


def _snapshot(of: Evaluation) -> Snapshot:
    return Snapshot(
        id=new_id(),
        evaluation_id=of.id,
        subject_key=of.subject_key,
        agent_id=of.agent_id,
        snapshot_hash="0x" + "1" * 64,
        previous_hash="0x0",
        encrypted_data_uri=None,
        interaction_count=0,
        taken_at=of.evaluated_at,
        evidence_hash="0x" + "2" * 64,
        record="{}",
    )
