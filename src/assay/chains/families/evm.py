"""Agents on EVM chains: the ERC-8004 registries through any `Rpc` (spec 2.1, 2.8, 4.2)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from assay.chains import erc8004
from assay.chains.model import (
    AgentNotFound,
    ChainUnavailable,
    Feedback,
    Network,
    OnchainAgent,
    Registration,
    WalletMatch,
)
from assay.chains.ports import (
    Call,
    ChainReader,
    Documents,
    DocumentUnavailable,
    Returned,
    Reverted,
    Rpc,
)
from assay.chains.registration import NotRegistration, parse_registration
from assay.chains.walletindex import WalletIndex
from assay.kit.cache import Cache
from assay.kit.clock import Clock

AGENT_TTL_S = 30.0
"""How long an agent and its feedback are remembered: a sold agent's former owner speaks for it at
most this long."""

DOCUMENT_TTL_S = 300.0
"""How long the document of one token URI is remembered. That there was none is not: the agent's own
`AGENT_TTL_S` bounds how often it is asked for."""

REGISTRY_TTL_S = 3600.0
"""How long a chain's registries are believed to be the real ones."""

CLIENTS_SLICE = 25
"""Reviewers asked for at once when all of them are more than the node's gas cap allows."""

_Read = tuple[Registration | None, str | None]


class EvmReader:
    """Implements `chains.ports.ChainReader`."""

    def __init__(self, rpc: Rpc, documents: Documents, clock: Clock) -> None:
        self._rpc = rpc
        self._documents = documents
        self._agents: Cache[OnchainAgent] = Cache(clock, AGENT_TTL_S)
        self._feedback: Cache[tuple[Feedback, ...]] = Cache(clock, AGENT_TTL_S, 1000)
        self._files: Cache[_Read] = Cache(clock, DOCUMENT_TTL_S, 1000)
        self._registries: Cache[None] = Cache(clock, REGISTRY_TTL_S)
        self._index = WalletIndex(self._answers, clock)

    async def fetch_agent(self, network: Network, agent_id: str) -> OnchainAgent:
        key = f"{network.slug}/{agent_id}"
        return await self._agents.get(key, lambda: self._read_agent(network, agent_id))

    async def fetch_feedback(self, network: Network, agent_id: str) -> tuple[Feedback, ...]:
        key = f"{network.slug}/{agent_id}"
        return await self._feedback.get(key, lambda: self._read_feedback(network, agent_id))

    async def fetch_agents_of(self, network: Network, wallet: str) -> tuple[WalletMatch, ...]:
        await self._check_registries(network)
        return await self._index.find(network, wallet)

    async def accepts_signature(
        self, network: Network, wallet: str, digest: bytes, signature: bytes
    ) -> bool:
        code = await self._rpc.request(network, "eth_getCode", [wallet, "latest"])
        if not isinstance(code, str) or len(code) <= len("0x"):
            return False
        call = erc8004.valid_signature(wallet, digest, signature)
        (answer,) = await self._rpc.call(network, [call])
        return isinstance(answer, Returned) and answer.data[:4] == erc8004.ERC1271_MAGIC

    async def _read_agent(self, network: Network, agent_id: str) -> OnchainAgent:
        await self._check_registries(network)
        registry = network.identity_registry
        calls = [
            erc8004.owner_of(registry, agent_id),
            erc8004.token_uri(registry, agent_id),
            erc8004.agent_wallet(registry, agent_id),
        ]
        owner, uri, wallet = await self._rpc.call(network, calls)
        if isinstance(owner, Reverted) and owner.data[:4] == erc8004.NONEXISTENT_TOKEN:
            raise AgentNotFound("The registry knows no agent of this id.")
        try:
            owner_address = erc8004.read_address(_returned(owner))
            token_uri = erc8004.read_text(_returned(uri))
            wallet_address = erc8004.read_address(_returned(wallet))
        except erc8004.BadAnswer as error:
            raise _unbelievable(network, error) from error
        if owner_address is None:
            raise _unbelievable(network, "an agent without an owner")
        registration, problem = await self._registration(token_uri)
        return OnchainAgent(
            network, agent_id, owner_address, wallet_address, token_uri, registration, problem
        )

    async def _registration(self, uri: str) -> _Read:
        """The registration file behind a token URI, or why there is none."""
        if not uri:
            return None, "The agent has no token URI."
        try:
            return await self._files.get(uri, lambda: self._read_document(uri))
        except DocumentUnavailable as error:
            return None, str(error)

    async def _read_document(self, uri: str) -> _Read:
        document = await self._documents.fetch(uri)
        try:
            return parse_registration(document.body), None
        except NotRegistration as error:
            return None, str(error)

    async def _read_feedback(self, network: Network, agent_id: str) -> tuple[Feedback, ...]:
        await self._check_registries(network)
        registry = network.reputation_registry
        try:
            (answer,) = await self._rpc.call(network, [erc8004.all_feedback(registry, agent_id)])
            if isinstance(answer, Returned):
                return erc8004.read_feedback(answer.data)
            return await self._read_feedback_in_slices(network, agent_id)
        except erc8004.BadAnswer as error:
            raise _unbelievable(network, error) from error

    async def _read_feedback_in_slices(
        self, network: Network, agent_id: str
    ) -> tuple[Feedback, ...]:
        """More rows than one call may read: the same, a few reviewers at a time."""
        registry = network.reputation_registry
        (answer,) = await self._answers(network, [erc8004.clients(registry, agent_id)])
        reviewers = erc8004.read_addresses(_returned(answer))
        found: list[Feedback] = []
        for start in range(0, len(reviewers), CLIENTS_SLICE):
            of = reviewers[start : start + CLIENTS_SLICE]
            call = erc8004.all_feedback(registry, agent_id, of)
            (answer,) = await self._answers(network, [call])
            found += erc8004.read_feedback(_returned(answer))
        return tuple(found)

    async def _check_registries(self, network: Network) -> None:
        """Raises `ChainUnavailable` unless both registries are the real ones.

        Some chains hold only a placeholder at the well-known address.
        """
        await self._registries.get(network.slug, lambda: self._read_versions(network))

    async def _read_versions(self, network: Network) -> None:
        identity, reputation = network.identity_registry, network.reputation_registry
        calls = [
            erc8004.version(identity),
            erc8004.version(reputation),
            erc8004.identity_registry(reputation),
        ]
        answers = await self._rpc.call(network, calls)
        try:
            versions = {erc8004.read_text(_returned(answer)) for answer in answers[:2]}
            linked = erc8004.read_address(_returned(answers[2]))
        except erc8004.BadAnswer as error:
            raise _no_registries(network, error) from error
        if versions != {erc8004.VERSION} or linked != identity:
            raise _no_registries(network, f"versions {versions}, linked to {linked}")

    async def _answers(
        self, network: Network, calls: Sequence[Call]
    ) -> Sequence[Returned | Reverted]:
        return await self._rpc.call(network, calls)


def _returned(answer: Returned | Reverted) -> bytes:
    """The bytes of an answer that must not be a revert; raises `BadAnswer`."""
    if isinstance(answer, Reverted):
        raise erc8004.BadAnswer(f"reverted: {answer.message}")
    return answer.data


def _unbelievable(network: Network, detail: object) -> ChainUnavailable:
    return ChainUnavailable(
        f"The chain {network.slug} gave no answer that can be believed.",
        detail=str(detail),
        retry_after_s=10,
    )


def _no_registries(network: Network, detail: object) -> ChainUnavailable:
    return ChainUnavailable(
        f"The chain {network.slug} has no ERC-8004 registries of version {erc8004.VERSION}.",
        detail=str(detail),
        retry_after_s=60,
    )


@dataclass(frozen=True, slots=True)
class Evm:
    """The family of EVM chains."""

    name: ClassVar[str] = "evm"

    def reader(self, rpc: Rpc, documents: Documents, clock: Clock) -> ChainReader:
        """A reader of every network of this family."""
        return EvmReader(rpc, documents, clock)


FAMILY: Final = Evm()
