"""Where signals beyond the registry and the sandbox look, from the settings."""

from contextlib import AsyncExitStack

from assay.app.log import Log, write_back_note
from assay.app.naming import naming
from assay.chains.networks import Networks
from assay.chains.rpc import Rpc
from assay.common.clock import Clock
from assay.db.daily_budgets import DailyBudgets
from assay.db.engine import Database
from assay.evaluation.attestations import EasAttestations, eas_source
from assay.evaluation.judge import OpenAiModel
from assay.evaluation.model import SignalName
from assay.evaluation.ports import Sources
from assay.key_agents.store import SqlAttestedPeople
from assay.personhood.human_registry import SelfHumans, contract_of
from assay.personhood.model import PersonhoodVerifier
from assay.personhood.store import SqlPersonhoodStore
from assay.personhood.verifier import CloudVerifier, RouterVerifier
from assay.registries.subjects import Subjects
from assay.reputation.solana_fees import SolanaFees
from assay.reputation.write_back import FeedbackPublisher
from assay.settings import Settings


def sources(
    settings: Settings, networks: Networks, rpc: Rpc, database: Database, clock: Clock
) -> Sources:
    """What is configured. Raises `ValueError` with a plain sentence for what does not hold."""
    with naming("ASSAY_ATTESTATION_SOURCES"):
        listed = [eas_source(row, networks) for row in settings.attestation_sources]
    humans = None
    if settings.self_registry:
        where = contract_of(settings.self_registry, networks, "ASSAY_SELF_REGISTRY")
        humans = SelfHumans(rpc, *where, clock)
    return Sources(
        attestations=EasAttestations(rpc, listed, clock) if listed else None,
        attested=SqlAttestedPeople(database, clock) if listed else None,
        humans=humans,
        personhoods=None if settings.world_id_app is None else SqlPersonhoodStore(database),
        judge=_judge(settings),
    )


def _judge(settings: Settings) -> OpenAiModel | None:
    if settings.judge_url is None:
        return None
    key = None if settings.judge_key is None else settings.judge_key.get_secret_value()
    return OpenAiModel(settings.judge_url, settings.judge_model, key, settings.judge_timeout_s)


def write_back(  # noqa: PLR0913, PLR0917 - all that a write needs
    settings: Settings,
    networks: Networks,
    subjects: Subjects,
    rpc: Rpc,
    log: Log,
    database: Database,
    clock: Clock,
) -> FeedbackPublisher | None:
    """Where scores go back to, if a keypair is configured. Raises `ValueError` for a bad one."""
    if settings.solana_keypair is None:
        return None
    # Loads Solana's signing library, which no other house needs.
    from assay.reputation.solana_writer import SolanaWriter, keypair_of  # noqa: PLC0415

    keypair = keypair_of(settings.solana_keypair.get_secret_value())
    writer = SolanaWriter(rpc, keypair, settings.solana_priority_microlamports)
    fees = SolanaFees(writer, DailyBudgets(database), settings.solana_feedback_per_day, clock)
    return FeedbackPublisher(subjects, networks, writer, write_back_note(log), fees)


def absent(found: Sources) -> frozenset[SignalName]:
    """Signals that are not offered, for want of a source."""
    by_signal = {
        SignalName.ATTESTATION: found.attestations,
        SignalName.SELF: found.humans,
        SignalName.PERSONHOOD: found.personhoods,
    }
    return frozenset(name for name, source in by_signal.items() if source is None)


def verifier(
    settings: Settings, networks: Networks, rpc: Rpc, stack: AsyncExitStack
) -> PersonhoodVerifier | None:
    """Who verifies proofs of personhood, if anybody. Raises `ValueError`."""
    app, action = settings.world_id_app, settings.world_id_action
    if app is None:
        return None
    if settings.world_id_verifier == "cloud":
        cloud = CloudVerifier(settings.world_id_api, app, action)
        stack.push_async_callback(cloud.aclose)
        return cloud
    where = contract_of(settings.world_id_router, networks, "ASSAY_WORLD_ID_ROUTER")
    return RouterVerifier(rpc, *where, app, action)
