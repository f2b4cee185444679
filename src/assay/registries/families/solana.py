"""Reads agents on Solana: the 8004 registry's accounts, and its indexer.

The accounts are authoritative; the indexer answers only what accounts cannot.
Sources: interface.md#trust-profile, #wallet-resolution, #solana-agent-ids;
solana-registry.md#account-layouts, #ids-and-wallets.
"""

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from assay.chains.model import Account, ChainUnavailable, Family, Network
from assay.chains.solana.clusters import CORE_PROGRAM, PROGRAMS, SYSTEM_PROGRAM
from assay.common.addresses import decode, encode
from assay.common.cache import Cache
from assay.common.egress_budget import current_use
from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.registries.documents import RegistrationFiles, agent_ttl_s
from assay.registries.model import AgentNotFound, Feedback, OnchainAgent, WalletMatch, sequential_id
from assay.registries.ports import ChainFamily, ChainReader, ReaderDependencies, unbelievable
from assay.registries.solana_accounts import (
    AGENT_DISCRIMINATOR,
    ASSET_AT,
    OWNER_AT,
    WALLET_AT,
    BadAccount,
    Histories,
    agent_address,
    atom_address,
    is_burnt,
    read_agent,
    read_atom,
    read_core_owner,
)

AGENT_TTL_S = 30.0
"""As for EVM chains: after a sale, the former owner can act for the agent at most this long."""

NUMBERS_TTL_S = 300.0
"""How long a sequential id is cached: the registry assigns each only once."""

HISTORY_TTL_S = 300.0
AGENTS_KEPT = 1000
FEEDBACK_KEPT = 200_000

MATCHES_MAX = 8
"""Agents of one wallet that are confirmed on chain, which bounds every list."""

COMMITMENT = "confirmed"

_WalletSource = Literal["owner", "agentWallet"]


class SolanaReader:
    """Reads agents of Solana clusters; implements `registries.ports.ChainReader`."""

    def __init__(self, needs: ReaderDependencies) -> None:
        clock = needs.clock
        self._rpc = needs.rpc
        self._index = needs.index
        self._files = RegistrationFiles(needs.documents, clock)
        self._histories = Histories(needs.rpc, clock)
        self._agents: Cache[OnchainAgent] = Cache(
            clock,
            lambda agent: agent_ttl_s(agent, AGENT_TTL_S),
            AGENTS_KEPT,
            lambda agent: agent.weight,
        )
        self._numbers: Cache[str] = Cache(clock, NUMBERS_TTL_S, AGENTS_KEPT)
        self._feedback: Cache[tuple[Feedback, ...]] = Cache(
            clock, AGENT_TTL_S, FEEDBACK_KEPT, lambda entries: 1 + len(entries)
        )
        self._accounts: Cache[Account] = Cache(clock, HISTORY_TTL_S, AGENTS_KEPT)

    async def identify(self, network: Network, agent_id: str) -> str:
        number = sequential_id(network, agent_id)
        if number is None:
            return agent_id
        key = f"{network.cluster}/{number}"
        return await self._numbers.get(key, lambda: self._find_number(network, number))

    async def fetch_agent(self, network: Network, agent_id: str) -> OnchainAgent:
        asset = await self.identify(network, agent_id)
        key = f"{network.cluster}/{asset}"
        sharers = current_use().sharers
        return await self._agents.get(key, lambda: self._read_agent(network, asset), sharers)

    async def fetch_feedback(self, network: Network, agent_id: str) -> tuple[Feedback, ...]:
        asset = await self.identify(network, agent_id)
        key = f"{network.cluster}/{asset}"
        return await self._feedback.get(key, lambda: self._index.fetch_feedback(network, asset))

    async def fetch_agents_of(self, network: Network, wallet: str) -> tuple[WalletMatch, ...]:
        """Return agents that name the wallet, newest first, then agents it owns, oldest first.

        Naming a wallet requires its signature, but an asset can be sent to anyone, so the most
        recently received asset is the weakest evidence.
        """
        try:
            named = await self._index.find_wallet(network, wallet)
            owned = await self._index.find_owner(network, wallet)
        except ChainUnavailable:
            named = await self._scan(network, WALLET_AT, b"\1" + _bytes_of(wallet))
            owned = await self._scan(network, OWNER_AT, _bytes_of(wallet))
        candidates = dict.fromkeys((*named[:MATCHES_MAX], *owned[:MATCHES_MAX]))
        found = [await self._confirmed(network, asset, wallet) for asset in candidates]
        matches = [match for match in found if match is not None]
        # Stable: keeps the order above.
        return tuple(sorted(matches, key=lambda match: match.source))

    async def fetch_account(self, network: Network, address: str) -> Account:
        key = f"{network.cluster}/{address}"
        return await self._accounts.get(key, lambda: self._histories.account(network, address))

    async def accepts_signature(
        self, network: Network, wallet: str, digest: bytes, signature: bytes
    ) -> bool:
        """Return False: only the key of a Solana wallet signs for it."""
        del network, wallet, digest, signature
        return False

    async def _find_number(self, network: Network, number: int) -> str:
        asset = await self._index.find_number(network, number)
        if asset is None:
            raise AgentNotFound("The registry knows no agent of this sequential id.")
        return asset

    async def _read_agent(self, network: Network, asset: str) -> OnchainAgent:
        """Read the agent's account, its figures and its asset's owner, all at one slot."""
        programs = PROGRAMS[network.cluster]
        addresses = [
            agent_address(network.cluster, asset),
            atom_address(network.cluster, asset),
            asset,
        ]
        account, atom, core = await self._accounts_at(network, addresses)
        if account is None or core is None:
            raise AgentNotFound("The registry knows no agent with this asset.")
        try:
            agent = read_agent(_data_of(account, programs.registry))
            stats = None if atom is None else read_atom(_data_of(atom, programs.atom))
            asset_data = _data_of(core, CORE_PROGRAM)
            owner = None if is_burnt(asset_data) else read_core_owner(asset_data)
        except BadAccount as error:
            raise unbelievable(network, error) from error
        if agent.asset != asset:
            raise unbelievable(network, "an agent's account names another asset")
        if owner is None:
            raise AgentNotFound("The asset of this agent was burnt.")
        registration, problem = await self._files.read(agent.uri)
        return OnchainAgent(
            network=network,
            agent_id=asset,
            owner=owner,
            wallet=agent.wallet,
            token_uri=agent.uri,
            registration=registration,
            registration_problem=problem,
            collection=agent.collection,
            feedback_count=agent.feedback_count,
            atom=stats,
        )

    async def _accounts_at(
        self, network: Network, addresses: Sequence[str]
    ) -> Sequence[JsonObject | None]:
        options = {"encoding": "base64", "commitment": COMMITMENT}
        answer = await self._rpc.request(network, "getMultipleAccounts", [list(addresses), options])
        value = answer.get("value") if is_object(answer) else None
        if not is_array(value) or len(value) != len(addresses):
            raise unbelievable(network, "getMultipleAccounts gave another number of accounts")
        return [_account_or_none(network, one) for one in value]

    async def _confirmed(self, network: Network, asset: str, wallet: str) -> WalletMatch | None:
        """Return the current match on chain for an asset that the index connects to the wallet."""
        try:
            agent = await self.fetch_agent(network, asset)
        except AgentNotFound:
            return None
        if agent.wallet == wallet:
            return WalletMatch(asset, "agentWallet")
        return WalletMatch(asset, "owner") if agent.owner == wallet else None

    async def _scan(self, network: Network, at: int, value: bytes) -> Sequence[str]:
        """Return assets of agents whose account holds `value` at this offset.

        This is slow, and not every node supports it. The first byte of a wallet is its tag: an
        unset wallet matches nothing.
        """
        options: JsonObject = {
            "encoding": "base64",
            "commitment": COMMITMENT,
            "filters": [
                {"memcmp": {"offset": 0, "bytes": encode(AGENT_DISCRIMINATOR)}},
                {"memcmp": {"offset": at, "bytes": encode(value)}},
            ],
            "dataSlice": {"offset": ASSET_AT, "length": 32},
        }
        program = PROGRAMS[network.cluster].registry
        rows = await self._rpc.request(network, "getProgramAccounts", [program, options])
        if not is_array(rows):
            raise unbelievable(network, "getProgramAccounts gave no list")
        try:
            found = [_data_of(_account_of(row), program) for row in rows[:MATCHES_MAX]]
        except BadAccount as error:
            raise unbelievable(network, error) from error
        return [encode(asset) for asset in found]


def _bytes_of(key: str) -> bytes:
    return decode(key) or b""


def _account_of(row: JsonValue) -> JsonObject:
    account = row.get("account") if is_object(row) else None
    if not is_object(account):
        raise BadAccount("a row without an account")
    return account


def _account_or_none(network: Network, account: JsonValue) -> JsonObject | None:
    """Return the account, or None if it is missing or holds only lamports (anyone can send)."""
    if is_object(account):
        holds = account.get("data")
        bare = account.get("owner") == SYSTEM_PROGRAM and is_array(holds) and holds[:1] == [""]
        return None if bare else account
    if account is None:
        return None
    raise unbelievable(network, "an account that is no object")


def _data_of(account: JsonObject, program: str) -> bytes:
    """Return the data of an account that must belong to `program`. Raises `BadAccount`."""
    if account.get("owner") != program:
        raise BadAccount("an account belongs to another program")
    data = account.get("data")
    text = data[0] if is_array(data) and data else None
    if not isinstance(text, str):
        raise BadAccount("an account without data")
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise BadAccount("account data is not base64") from None


@dataclass(frozen=True, slots=True)
class Solana:
    """The family of Solana's clusters."""

    name: ClassVar[Family] = "solana"

    def reader(self, needs: ReaderDependencies) -> ChainReader:
        """Return a reader for every network of this family."""
        return SolanaReader(needs)


FAMILY: Final[ChainFamily] = Solana()
