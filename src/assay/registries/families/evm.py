"""Reads agents on EVM chains: the ERC-8004 registries through any `Rpc`.

Source: interface.md#trust-profile, #wallet-resolution, #trust-evaluation.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from assay.chains.evm.abi import BadAnswer
from assay.chains.evm.accounts import Accounts
from assay.chains.model import Account, ChainUnavailable, Family, Network
from assay.chains.rpc import Returned, Reverted, RpcRefused
from assay.common.cache import Cache
from assay.common.egress_budget import current_use
from assay.registries import erc8004
from assay.registries.documents import URI_CHARS_MAX, RegistrationFiles, agent_ttl_s
from assay.registries.model import AgentNotFound, Feedback, OnchainAgent, WalletMatch
from assay.registries.ports import (
    ChainFamily,
    ChainReader,
    ReaderDependencies,
    too_much_feedback,
    unbelievable,
)
from assay.registries.wallet_index import WalletIndex

AGENT_TTL_S = 30.0
"""How long an agent and its feedback are cached: after a sale, the former owner can act for the
agent at most this long."""

ACCOUNT_TTL_S = 300.0
"""How long an account's history is cached: it changes slowly."""

REGISTRY_TTL_S = 3600.0
NO_REGISTRY_TTL_S = 60.0
"""How long the check that a chain's registries are genuine is cached, whatever its result."""

AGENTS_KEPT = 1000
FEEDBACK_KEPT = 200_000
"""Feedback entries cached for all agents together: about 80 MiB."""

CLIENTS_SLICE = 64
"""Reviewers queried at once when a query for all exceeds the node's gas cap."""

FEEDBACK_MAX = 50_000
FEEDBACK_S = 8.0
"""Most feedback entries read of one agent, and the time for reading them in slices. Beyond that the
reputation is unknown, because a partial list could be any part."""


class EvmReader:
    """Reads agents of EVM chains; implements `registries.ports.ChainReader`."""

    def __init__(self, needs: ReaderDependencies) -> None:
        rpc, clock = needs.rpc, needs.clock
        self._rpc = rpc
        self._clock = clock
        self._files = RegistrationFiles(needs.documents, clock)
        self._agents: Cache[OnchainAgent] = Cache(
            clock,
            lambda agent: agent_ttl_s(agent, AGENT_TTL_S),
            AGENTS_KEPT,
            lambda agent: agent.weight,
        )
        self._feedback: Cache[tuple[Feedback, ...]] = Cache(
            clock, AGENT_TTL_S, FEEDBACK_KEPT, lambda entries: 1 + len(entries)
        )
        self._faults: Cache[str | None] = Cache(clock, _registry_ttl_s)
        self._index = WalletIndex(rpc, clock)
        self._past = Accounts(rpc)
        self._accounts: Cache[Account] = Cache(clock, ACCOUNT_TTL_S, AGENTS_KEPT)

    async def identify(self, network: Network, agent_id: str) -> str:
        del network
        return agent_id

    async def fetch_agent(self, network: Network, agent_id: str) -> OnchainAgent:
        key = f"{network.slug}/{agent_id}"
        sharers = current_use().sharers
        return await self._agents.get(key, lambda: self._read_agent(network, agent_id), sharers)

    async def fetch_feedback(self, network: Network, agent_id: str) -> tuple[Feedback, ...]:
        key = f"{network.slug}/{agent_id}"
        return await self._feedback.get(key, lambda: self._read_feedback(network, agent_id))

    async def fetch_agents_of(self, network: Network, wallet: str) -> tuple[WalletMatch, ...]:
        await self._check_registries(network)
        return await self._index.find(network, wallet)

    async def fetch_account(self, network: Network, address: str) -> Account:
        key = f"{network.slug}/{address}"
        return await self._accounts.get(key, lambda: self._past.account(network, address))

    async def accepts_signature(
        self, network: Network, wallet: str, digest: bytes, signature: bytes
    ) -> bool:
        code = await self._rpc.request(network, "eth_getCode", [wallet, "latest"])
        if not isinstance(code, str) or len(code) <= len("0x"):
            return False
        call = erc8004.valid_signature(wallet, digest, signature)
        answer = await self._rpc.call_untrusted(network, call, erc8004.SIGNATURE_GAS_MAX)
        return isinstance(answer, Returned) and erc8004.says_valid(answer.data)

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
        except BadAnswer as error:
            raise unbelievable(network, error) from error
        if owner_address is None:
            raise unbelievable(network, "an agent without an owner")
        registration, problem = await self._files.read(token_uri)
        return OnchainAgent(
            network,
            agent_id,
            owner_address,
            wallet_address,
            token_uri[:URI_CHARS_MAX],
            registration,
            problem,
        )

    async def _read_feedback(self, network: Network, agent_id: str) -> tuple[Feedback, ...]:
        """Read feedback separately: a flood of entries must not make the agent unreadable."""
        await self._check_registries(network)
        try:
            found = await self._feedback_of(network, agent_id, ())
            if found is None:
                found = await self._read_feedback_in_slices(network, agent_id)
        except BadAnswer as error:
            raise unbelievable(network, error) from error
        return tuple(found)

    async def _read_feedback_in_slices(self, network: Network, agent_id: str) -> list[Feedback]:
        """Read feedback too large for one call, some reviewers at a time, in the same order."""
        until = self._clock.monotonic_s() + FEEDBACK_S
        call = erc8004.clients(network.reputation_registry, agent_id)
        (answer,) = await self._rpc.call(network, [call])
        reviewers = erc8004.read_addresses(_returned(answer))
        found: list[Feedback] = []
        at, size = 0, CLIENTS_SLICE
        while at < len(reviewers):
            if len(found) > FEEDBACK_MAX or self._clock.monotonic_s() > until:
                raise too_much_feedback(network)
            some = await self._feedback_of(network, agent_id, reviewers[at : at + size])
            if some is not None:
                found += some
                at += size
            elif size > 1:
                size //= 2
            else:
                raise too_much_feedback(network)
        return found

    async def _feedback_of(
        self, network: Network, agent_id: str, reviewers: Sequence[str]
    ) -> Sequence[Feedback] | None:
        """Return the entries of these reviewers (all if none are named), or None if it is too much.

        The function itself never reverts: if it or the node refuses, the reason is gas.
        """
        call = erc8004.all_feedback(network.reputation_registry, agent_id, reviewers)
        try:
            (answer,) = await self._rpc.call(network, [call])
        except RpcRefused:
            return None
        return erc8004.read_feedback(answer.data) if isinstance(answer, Returned) else None

    async def _check_registries(self, network: Network) -> None:
        """Raise `ChainUnavailable` unless both registries are genuine.

        Some chains have only a placeholder at the well-known address.
        """
        fault = await self._faults.get(network.slug, lambda: self._find_fault(network))
        if fault is not None:
            raise ChainUnavailable(
                f"{network.slug} has no ERC-8004 registries of version {erc8004.VERSION}.",
                detail=fault,
                retry_after_s=int(NO_REGISTRY_TTL_S),
            )

    async def _find_fault(self, network: Network) -> str | None:
        """Return what is wrong with the registries, for our logs; None if they are genuine."""
        identity, reputation = network.identity_registry, network.reputation_registry
        calls = [
            erc8004.version(identity),
            erc8004.version(reputation),
            erc8004.identity_registry(reputation),
        ]
        answers = await self._rpc.call(network, calls)
        try:
            versions = [erc8004.read_text(_returned(answer)) for answer in answers[:2]]
            linked = erc8004.read_address(_returned(answers[2]))
        except BadAnswer as error:
            return str(error)
        if versions == [erc8004.VERSION] * 2 and linked == identity:
            return None
        return f"versions {versions}, the reputation registry is linked to {linked}"


def _registry_ttl_s(fault: str | None) -> float:
    return REGISTRY_TTL_S if fault is None else NO_REGISTRY_TTL_S


def _returned(answer: Returned | Reverted) -> bytes:
    """Return the bytes of an answer that must not be a revert; raises `BadAnswer`."""
    if isinstance(answer, Reverted):
        raise BadAnswer(f"reverted: {answer.message}")
    return answer.data


@dataclass(frozen=True, slots=True)
class Evm:
    """The family of EVM chains."""

    name: ClassVar[Family] = "evm"

    def reader(self, needs: ReaderDependencies) -> ChainReader:
        """Return a reader for every network of this family."""
        return EvmReader(needs)


FAMILY: Final[ChainFamily] = Evm()
