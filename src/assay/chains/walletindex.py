"""Which agents a wallet speaks for, on registries that cannot be asked that.

The registry lists no tokens by owner. Its ids are counted up from 0 and never burned, so the
registry is read from the first to the last id, many at a time, and remembered for a while.
Source: the deployed contracts (not ERC-721 Enumerable), read on 2026-11-20.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from assay.chains import erc8004
from assay.chains.model import ChainUnavailable, Network, WalletMatch
from assay.chains.ports import Call, Returned, Reverted
from assay.kit.clock import Clock
from assay.kit.singleflight import SingleFlight

Answers = Callable[[Network, Sequence[Call]], Awaitable[Sequence[Returned | Reverted]]]

SLICE = 200
"""Agents read at once: two calls each, about 2.5 M gas."""

INDEX_TTL_S = 60.0
BUDGET_S = 8.0
"""How long one request may read; what is not read by then goes on with the next request."""

_Pair = tuple[str | None, str | None]
"""Owner and agentWallet of an id; (None, None) where there is no such id."""


@dataclass(slots=True)
class _Index:
    """What was read of one network; `complete` when the first missing id was met."""

    begun_s: float
    pairs: list[_Pair] = field(default_factory=list[_Pair])
    complete: bool = False


class WalletIndex:
    """Finds agents by wallet, and confirms what it finds at the latest block."""

    def __init__(self, answers: Answers, clock: Clock) -> None:
        self._answers = answers
        self._clock = clock
        self._indexes: dict[str, _Index] = {}
        self._flights: SingleFlight[None] = SingleFlight()

    async def find(self, network: Network, wallet: str) -> tuple[WalletMatch, ...]:
        """The agents of a lower-case wallet, lowest id first.

        Raises `ChainUnavailable` when nothing matched and the registry is not wholly read yet:
        "none" would be a guess.
        """
        await self._flights.run(network.slug, lambda: self._read_on(network))
        index = self._indexes[network.slug]
        candidates = [n for n, pair in enumerate(index.pairs) if wallet in pair]
        matches = await self._confirmed(network, wallet, candidates[:SLICE])
        if not matches and not index.complete:
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

    async def _read_on(self, network: Network) -> None:
        now = self._clock.monotonic_s()
        index = self._indexes.get(network.slug)
        if index is None or (index.complete and now - index.begun_s > INDEX_TTL_S):
            index = self._indexes[network.slug] = _Index(now)
        until = now + BUDGET_S
        while not index.complete and self._clock.monotonic_s() < until:
            start = len(index.pairs)
            pairs = await self._pairs(network, range(start, start + SLICE))
            there = [pair for pair in pairs if pair[0] is not None]
            index.pairs += there
            index.complete = len(there) < len(pairs)

    async def _pairs(self, network: Network, ids: Sequence[int]) -> list[_Pair]:
        registry = network.identity_registry
        calls = [
            call
            for n in ids
            for call in (
                erc8004.owner_of(registry, str(n)),
                erc8004.agent_wallet(registry, str(n)),
            )
        ]
        answers = await self._answers(network, calls)
        try:
            return [
                _pair(owner, wallet)
                for owner, wallet in zip(answers[::2], answers[1::2], strict=True)
            ]
        except erc8004.BadAnswer as error:
            raise ChainUnavailable(
                f"The chain {network.slug} gave no answer that can be believed.",
                detail=str(error),
                retry_after_s=10,
            ) from error


def _pair(owner: Returned | Reverted, wallet: Returned | Reverted) -> _Pair:
    if isinstance(owner, Reverted):
        if owner.data[:4] == erc8004.NONEXISTENT_TOKEN:
            return None, None
        raise erc8004.BadAnswer(f"ownerOf reverted: {owner.message}")
    if isinstance(wallet, Reverted):
        raise erc8004.BadAnswer(f"getAgentWallet reverted: {wallet.message}")
    return erc8004.read_address(owner.data), erc8004.read_address(wallet.data)
