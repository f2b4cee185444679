"""A registry of agents as it stands on chain: real bytes at real addresses, and what was said.

One `Registry` feeds both the RPC node and the indexer, so that the two agree; what a transaction
changes is seen by both.
"""

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from solders.account import Account
from solders.pubkey import Pubkey

from tests.support.solana import layouts
from tests.support.solana.clusters import CORE, MAINNET, SYSTEM_PROGRAM, Cluster, keypair
from tests.support.solana.feedback import Args, leaf, longer
from tests.support.solana.golden import GoldenAccount
from tests.support.solana.layouts import AgentAccount, AtomNumbers, AtomStats, Chain

LAMPORTS_A_BYTE, BYTES_EXTRA = 6_960, 128
SLOT = 435_888_000
"""Where a local runtime begins."""
FIRST_DAY = 1_772_668_800
"""When the first agent was registered: 2026-03-05, Unix seconds."""


@dataclass(frozen=True)
class Said:
    """A feedback, as the indexer lists it."""

    id: int
    asset: Pubkey
    client: Pubkey
    index: int
    args: Args
    slot: int
    created_at: int
    """Unix seconds."""
    signature: str = ""
    revoked: bool = False
    status: str = "FINALIZED"
    """PENDING, FINALIZED or ORPHANED."""


@dataclass(frozen=True)
class Agent:
    """A handle on a registered agent."""

    registry: "Registry" = field(repr=False)
    asset: Pubkey
    number: int | None
    """Its sequential id, which only the indexer knows."""
    created_at: int
    registered: AgentAccount
    """What its account held at first."""

    @property
    def address(self) -> Pubkey:
        """Of its AgentAccount."""
        return self.registry.cluster.agent(self.asset)[0]

    @property
    def stats_address(self) -> Pubkey:
        return self.registry.cluster.atom_stats(self.asset)[0]

    @property
    def account(self) -> AgentAccount:
        """As it is on chain now."""
        return AgentAccount.decoded(bytes(self.registry.accounts[self.address].data))

    @property
    def listed(self) -> AgentAccount:
        """As the indexer has it: also when the chain has it no more, or not in one piece."""
        try:
            return self.account
        except (KeyError, ValueError):
            return self.registered

    @property
    def stats(self) -> AtomNumbers | None:
        found = self.registry.accounts.get(self.stats_address)
        return AtomStats.decoded(bytes(found.data)).numbers if found and found.data else None


@dataclass(repr=False)
class Registry:
    """The registry of one cluster; `put` is everything that ever changes on it."""

    cluster: Cluster = MAINNET
    accounts: dict[Pubkey, Account] = field(default_factory=dict[Pubkey, Account])
    journal: list[tuple[Pubkey, Account]] = field(default_factory=list[tuple[Pubkey, Account]])
    """Every change in order; a node replays what it has not seen."""
    agents: list[Agent] = field(default_factory=list[Agent])
    said: list[Said] = field(default_factory=list[Said])
    lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        self.authority = keypair("authority").pubkey()
        self.collection = keypair("collection").pubkey()
        registry = self.cluster.registry
        root = layouts.root_config(self.collection, self.authority, self._bump(b"root_config"))
        self.put(self.cluster.root_config(), root, registry)
        seeds = (b"registry_config", bytes(self.collection))
        base = layouts.registry_config(self.collection, self.authority, self._bump(*seeds))
        self.put(self.cluster.registry_config(self.collection), base, registry)
        self.pause_atom(paused=False)

    def _bump(self, *seeds: bytes) -> int:
        return Pubkey.find_program_address(list(seeds), self.cluster.registry)[1]

    def pause_atom(self, *, paused: bool = True) -> None:
        """While it is paused, every scored feedback of an agent with AtomStats fails (6004)."""
        address, bump = self.cluster.atom_config()
        data = layouts.atom_config(self.authority, self.cluster.registry, bump, paused=paused)
        self.put(address, data, self.cluster.atom)

    def put(self, address: Pubkey, data: bytes, program: Pubkey) -> None:
        """Any bytes at any address, exempt from rent: also accounts cut short or misplaced."""
        rent = (len(data) + BYTES_EXTRA) * LAMPORTS_A_BYTE
        account = Account(rent, data, program, executable=False, rent_epoch=2**64 - 1)
        with self.lock:
            self.accounts[address] = account
            self.journal.append((address, account))

    def put_golden(self, *golden: GoldenAccount) -> None:
        for one in golden:
            program = Pubkey.from_string(one.program)
            self.put(Pubkey.from_string(one.address), one.data, program)

    def agent(
        self,
        label: str = "",
        *,
        asset: Pubkey | None = None,
        owner: Pubkey | None = None,
        core_owner: Pubkey | None = None,
        collection: Pubkey | None = None,
        feedback_count: int = 0,
        atom: AtomNumbers | None = None,
        number: int | None = 0,
        **fields: Any,
    ) -> Agent:
        """Registers an agent: AgentAccount, Core asset and, with `atom`, AtomStats.

        `core_owner`: the owner in truth, where the registry remembers an older one;
        `number`: its sequential id, 0 for the next one, None where the indexer knows none;
        `fields`: of `AgentAccount` (`wallet`, `uri`, `name`, `creator`, `atom_enabled` ...).
        """
        label = label or f"agent {len(self.agents) + 1}"
        asset = asset or keypair(f"asset:{label}").pubkey()
        owner = owner or keypair(f"owner:{label}").pubkey()
        fields = {"creator": owner, "atom_enabled": atom is not None} | fields
        fields.setdefault("feedback", Chain(layouts.NOBODY, feedback_count))
        bump = self.cluster.agent(asset)[1]
        kept = collection or self.collection
        account = AgentAccount(collection=kept, owner=owner, asset=asset, bump=bump, **fields)
        with self.lock:
            place = len(self.agents) + 1
            number = place if number == 0 else number
            made = Agent(self, asset, number, FIRST_DAY + place, account)
            self.agents.append(made)
            self.put(made.address, account.encoded(), self.cluster.registry)
            core = layouts.core_asset(core_owner or owner, kept, account.name, account.uri)
            self.put(asset, core, CORE)
            if atom is not None:
                self.put_stats(made, atom)
        return made

    def put_stats(self, agent: Agent, numbers: AtomNumbers) -> None:
        address, bump = self.cluster.atom_stats(agent.asset)
        collection = agent.account.collection
        stats = AtomStats(collection=collection, asset=agent.asset, numbers=numbers, bump=bump)
        self.put(address, stats.encoded(), self.cluster.atom)

    def change(self, agent: Agent, **fields: Any) -> None:
        """Rewrites the AgentAccount with other contents."""
        self.put(agent.address, replace(agent.account, **fields).encoded(), self.cluster.registry)

    def feedback(
        self, agent: Agent, client: Pubkey | str = "client", *, slot: int = SLOT, **said: Any
    ) -> Said:
        """Somebody rates an agent: count, digest chain and a row of the indexer.

        `said`: fields of `Args`, and of `Said` (`revoked`, `status`, `created_at`, `signature`).
        """
        row = {
            k: said.pop(k) for k in ("revoked", "status", "created_at", "signature") if k in said
        }
        if isinstance(client, str):
            client = keypair(f"client:{client}").pubkey()
        said.setdefault("value", said.get("score") or 0)
        return self.give(agent.asset, client, Args(**said), slot, **row)

    def give(self, asset: Pubkey, client: Pubkey, args: Args, slot: int, **row: Any) -> Said:
        with self.lock:
            address = self.cluster.agent(asset)[0]
            account = AgentAccount.decoded(bytes(self.accounts[address].data))
            index = account.feedback.count
            new = leaf(asset, client, index, args.seal(), slot)
            changed = replace(account, feedback=longer(account.feedback, new))
            self.put(address, changed.encoded(), self.cluster.registry)
            row.setdefault("created_at", int(time.time()))
            said = Said(len(self.said) + 1, asset, client, index, args, slot, **row)
            self.said.append(said)
            return said

    def feedbacks(self, asset: Pubkey | str) -> Iterator[Said]:
        """Of one agent, oldest first; orphans are not listed, as the indexer does not."""
        for one in self.said:
            if str(one.asset) == str(asset) and one.status != "ORPHANED":
                yield one

    def truncate(self, address: Pubkey, length: int) -> None:
        found = self.accounts[address]
        self.put(address, bytes(found.data)[:length], found.owner)

    def hand_over(self, address: Pubkey, program: Pubkey) -> None:
        """The same bytes, owned by another program."""
        self.put(address, bytes(self.accounts[address].data), program)

    def vanish(self, *addresses: Pubkey) -> None:
        """Nothing is there any more; the indexer goes on listing what was."""
        gone = Account(0, b"", SYSTEM_PROGRAM)
        with self.lock:
            for address in addresses:
                self.accounts.pop(address, None)
                self.journal.append((address, gone))
