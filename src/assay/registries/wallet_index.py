"""Finds the agents that a wallet may act for, on registries without such a query.

The registry does not list tokens by owner. Its ids count up from 0 and are never burned, so it is
read from the first to the last id, many at a time, and cached; results are confirmed on chain
before they are returned. Source: the deployed contracts (not ERC-721 Enumerable).
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import takewhile

from assay.chains.evm.abi import BadAnswer
from assay.chains.model import ChainUnavailable, Network
from assay.chains.rpc import Returned, Reverted, Rpc
from assay.common.cache import SingleFlight
from assay.common.clock import Clock
from assay.registries import erc8004
from assay.registries.model import WalletMatch

SLICE = 100
"""Agents read in one round: two calls each, about 1.3 M gas (measured: 6.3 M gas a 1,000 calls)."""

SLICES_AT_ONCE = 4
PROBES = 32
"""Ids queried at once while the number of agents is determined."""

AGENTS_MAX = 1 << 20
"""Largest registry that is read: 40 bytes an agent, 40 MiB."""

PASS_EVERY_S = 60.0
"""Time between complete readings of a registry: an older agent that changed hands since is found
only after the next one."""

PASS_SHARE = 20
"""A large registry is read again only after this many times its last reading time, so that reading
takes at most a twentieth of the time."""

PASS_S_MAX = 120.0
"""How long one reading continues without a request that needs it."""

COUNT_EVERY_S = 2.0
"""How often new agents are looked for."""

BUDGET_S = 8.0
"""How long one request waits for the reading, which continues without it."""

_Pair = tuple[str | None, str | None]
"""Owner and agentWallet of an id; no owner if the id does not exist."""

_ADDRESS_BYTES = 20
_PAIR_BYTES = 2 * _ADDRESS_BYTES
_NO_WALLET = bytes(_ADDRESS_BYTES)
_LONG_AGO = float("-inf")


@dataclass(slots=True)
class _Index:
    """What was read of one network: owner and agentWallet of each id, 40 bytes an id."""

    pairs: bytearray = field(default_factory=bytearray)
    count: int = 0
    """The known number of agents."""
    read: int = 0
    """Ids below this were read in the current pass; the rest of `pairs` is from the last one."""
    counted_s: float = _LONG_AGO
    due_s: float = _LONG_AGO
    """When the next pass begins."""
    cost_s: float = 0.0
    """Seconds spent on the current pass so far."""

    @property
    def complete(self) -> bool:
        """Return whether every agent was read in the newest pass."""
        return self.counted_s > _LONG_AGO and self.read >= self.count

    def ids_of(self, wallet: str) -> list[int]:
        """Return the ids whose owner or agentWallet was this lower-case wallet when they were read.

        Ascending, and at most one more than `SLICE`.
        """
        needle, found, at = bytes.fromhex(wallet[2:]), list[int](), -1
        while len(found) <= SLICE and (at := self.pairs.find(needle, at + 1)) >= 0:
            agent_id = at // _PAIR_BYTES
            if at % _ADDRESS_BYTES == 0 and agent_id not in found[-1:]:
                found.append(agent_id)
        return found

    def keep(self, pairs: Sequence[_Pair]) -> None:
        """Store the pairs of the next ids; the first missing id ends the list."""
        there = list(takewhile(lambda pair: pair[0] is not None, pairs))
        packed = b"".join(_packed(owner) + _packed(wallet) for owner, wallet in there)
        start, self.read = self.read, self.read + len(there)
        self.pairs[start * _PAIR_BYTES : self.read * _PAIR_BYTES] = packed
        if len(there) < len(pairs):
            self.count = self.read
            del self.pairs[self.read * _PAIR_BYTES :]


class WalletIndex:
    """Finds agents by wallet, and confirms them at the latest block."""

    def __init__(self, rpc: Rpc, clock: Clock, budget_s: float = BUDGET_S) -> None:
        self._rpc = rpc
        self._clock = clock
        self._budget_s = budget_s
        self._indexes: dict[str, _Index] = {}
        self._flights: SingleFlight[None] = SingleFlight()

    async def find(self, network: Network, wallet: str) -> tuple[WalletMatch, ...]:
        """Return the agents of a lower-case wallet, lowest id first, at most `SLICE`.

        Raises `ChainUnavailable` when nothing matched and the registry is not completely read yet:
        "none" would be a guess.
        """
        if wallet == erc8004.ZERO_ADDRESS:
            return ()
        index = self._indexes.setdefault(network.slug, _Index())
        with suppress(TimeoutError):
            async with asyncio.timeout(self._budget_s):
                await self._flights.run(network.slug, lambda: self._read_on(network, index))
        candidates = index.ids_of(wallet)
        matches = await self._confirmed(network, wallet, candidates[:SLICE])
        if not matches and (not index.complete or len(candidates) > SLICE):
            raise ChainUnavailable(
                f"The registry on {network.slug} is still being read: ask again shortly.",
                retry_after_s=5,
            )
        return matches

    async def _confirmed(
        self, network: Network, wallet: str, candidates: Sequence[int]
    ) -> tuple[WalletMatch, ...]:
        pairs = await self._pairs(network, candidates) if candidates else []
        return tuple(
            WalletMatch(str(n), "owner" if owner == wallet else "agentWallet")
            for n, (owner, agent_wallet) in zip(candidates, pairs, strict=True)
            if wallet in {owner, agent_wallet}
        )

    async def _read_on(self, network: Network, index: _Index) -> None:
        """Bring the index up to date, beginning a new pass when it is due."""
        begun = now = self._clock.monotonic_s()
        if index.complete and now >= index.due_s:
            index.read, index.cost_s = 0, 0.0
        if now - index.counted_s >= COUNT_EVERY_S:
            index.count = await self._count(network, index.count)
            index.counted_s = now
        while not index.complete and now - begun < PASS_S_MAX:
            await self._read_wave(network, index)
            earlier, now = now, self._clock.monotonic_s()
            index.cost_s += now - earlier
            if index.complete and now >= index.due_s:
                index.due_s = now + max(PASS_EVERY_S, PASS_SHARE * index.cost_s)

    async def _read_wave(self, network: Network, index: _Index) -> None:
        """Read the next slices concurrently."""
        end = min(index.read + SLICE * SLICES_AT_ONCE, index.count)
        starts = range(index.read, end, SLICE)
        try:
            async with asyncio.TaskGroup() as group:
                slices = [
                    group.create_task(self._pairs(network, range(at, min(at + SLICE, end))))
                    for at in starts
                ]
        except ExceptionGroup as faults:
            raise faults.exceptions[0] from faults
        index.keep([pair for one in slices for pair in one.result()])

    async def _count(self, network: Network, known: int) -> int:
        """Return the number of agents, at least `known`: search for the first missing id."""
        low, high = known, AGENTS_MAX
        probes = [known + 2**k - 1 for k in range(PROBES) if known + 2**k <= AGENTS_MAX]
        while low < high:
            there = [owner is not None for owner, _ in await self._pairs(network, probes)]
            if all(there) and high == AGENTS_MAX:
                raise ChainUnavailable(
                    f"The registry on {network.slug} has more agents than can be searched."
                )
            missing = [n for n, is_there in zip(probes, there, strict=True) if not is_there]
            high = missing[0] if missing else high
            low = max((n + 1 for n in probes if n < high), default=low)
            probes = list(range(low, high, max(1, -(-(high - low) // PROBES))))
        return low

    async def _pairs(self, network: Network, ids: Sequence[int]) -> list[_Pair]:
        registry = network.identity_registry
        owners = [erc8004.owner_of(registry, str(n)) for n in ids]
        wallets = [erc8004.agent_wallet(registry, str(n)) for n in ids]
        answers = await self._rpc.call(network, owners + wallets)
        try:
            return [
                _pair(owner, wallet)
                for owner, wallet in zip(answers[: len(ids)], answers[len(ids) :], strict=True)
            ]
        except (BadAnswer, ValueError) as error:  # ValueError: too few or too many answers
            raise ChainUnavailable(
                f"The chain {network.slug} gave no answer that can be believed.",
                detail=str(error),
                retry_after_s=10,
            ) from error


def _pair(owner: Returned | Reverted, wallet: Returned | Reverted) -> _Pair:
    if isinstance(owner, Reverted):
        if owner.data[:4] == erc8004.NONEXISTENT_TOKEN:
            return None, None
        raise BadAnswer(f"ownerOf reverted: {owner.message}")
    if isinstance(wallet, Reverted):
        raise BadAnswer(f"getAgentWallet reverted: {wallet.message}")
    return erc8004.read_address(owner.data), erc8004.read_address(wallet.data)


def _packed(address: str | None) -> bytes:
    return bytes.fromhex(address[2:]) if address else _NO_WALLET
