"""What the service sees now of what settles: our key on each network, its nodes, a facilitator.

Every reading is made by one question at a time and takes at most `WAIT_S`. It is used for seconds,
failures too: however many ask, a network is asked once in that time.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from assay.chains.model import ChainUnavailable
from assay.common.cache import Cache
from assay.common.clock import Clock
from assay.payments.gas import (
    GAS_MAX,
    GasBudget,
    GasStore,
    KeyNonces,
    KeyState,
    SoldOn,
    fee_per_gas,
)
from assay.payments.model import PaymentsUnavailable

WAIT_S: Final = 2.0
"""Longest wait for a reading, in seconds."""
READ_S: Final = 5.0
"""Seconds for which a reading of a network is used."""
SUPPORT_S: Final = 30.0
"""Seconds for which a reading of a facilitator is used."""


@dataclass(frozen=True, slots=True)
class KeyStatus:
    """Our key on one network."""

    network: str
    address: str
    state: KeyState | None
    """None while the network cannot be asked."""
    payable: int
    """Settlements at the highest price there that it can pay for now, each at its largest cost."""
    problem: str
    """Why there are none, if not for the balance. It may name a node: for operators only."""


@dataclass(frozen=True, slots=True)
class FacilitatorStatus:
    """A remote facilitator, or all of them together."""

    networks: frozenset[str] | None
    """Our networks that it lists; None if it does not say."""
    problem: str
    """Why it does not answer; empty if it does."""
    url: str = ""
    """Its address; empty for all together."""


class FacilitatorReader(Protocol):
    """Asks facilitators what they settle."""

    @property
    def urls(self) -> Sequence[str]:
        """Return their addresses, in order."""
        ...

    async def supported(self, url: str) -> frozenset[str] | None:
        """Return `FacilitatorStatus.networks`. Raises `PaymentsUnavailable`."""
        ...


class NodeReader(Protocol):
    """Asks the nodes of a network."""

    async def check(self, network: str) -> None:
        """Return once one of them answers. Raises `ChainUnavailable`."""
        ...


@dataclass(frozen=True, slots=True)
class KeyReading:
    """A reading of our key on a network, and its time."""

    status: KeyStatus
    nonces: KeyNonces | None
    """None where they could not be read."""
    read_at_s: float
    """Monotonic seconds."""


class SettlingWatch:
    """Asks, and remembers what it has read."""

    def __init__(
        self,
        budget: GasBudget | None,
        facilitator: FacilitatorReader | None,
        nodes: NodeReader,
        clock: Clock,
        store: GasStore,
    ) -> None:
        self._budget = budget
        self._store = store
        self._reader = facilitator
        self._nodes = nodes
        self._clock = clock
        self._keys: Cache[KeyStatus] = Cache(clock, READ_S)
        self._answering: Cache[bool] = Cache(clock, READ_S)
        self._facilitators: Cache[Sequence[FacilitatorStatus]] = Cache(clock, SUPPORT_S)
        self.readings: Mapping[str, KeyReading] = {}
        """The last readings of networks where wrappers sell, by `refresh`."""
        self.facilitator_seen: FacilitatorStatus | None = None
        """The last reading of the facilitator, by `refresh`."""

    async def key(self, network: str, price: int = 0) -> KeyStatus | None:
        """Return our key on a network, for a price; None if none of our keys settles."""
        budget = self._budget
        if budget is None or not budget.key.address:
            return None
        found = await self._keys.get(network, lambda: _key_status(budget, network))
        return _judged(found, budget.rules.cap_per_gas(network, price))

    async def keys(self) -> Sequence[KeyStatus]:
        """Return our key on every network where wrappers sell, for the highest price there."""
        sold = [one for one in await self.sold() if one.protocol == "x402"]
        found = [await self.key(one.network, one.highest) for one in sold]
        return [one for one in found if one is not None]

    async def sold(self) -> Sequence[SoldOn]:
        """Return the networks where wrappers sell."""
        return await self._store.sold()

    async def nodes(self) -> Mapping[str, bool]:
        """Return by network whether a node answers, for networks that `keys` does not ask.

        Networks without a key and a facilitator are left out.
        """
        has_key = self._budget is not None and bool(self._budget.key.address)
        asks = {"mpp"} if has_key or self._reader is None else {"mpp", "x402"}
        networks = [one.network for one in await self.sold() if one.protocol in asks]
        async with asyncio.TaskGroup() as group:
            asked = {one: group.create_task(self.answers(one)) for one in networks}
        return {one: task.result() for one, task in asked.items()}

    async def answers(self, network: str) -> bool:
        """Return whether a node of the network answers."""
        return await self._answering.get(network, lambda: self._check(network))

    async def facilitator(self) -> FacilitatorStatus | None:
        """Return the facilitators together; None if none is set. One that answers is enough."""
        found = await self.facilitators()
        answering = [one for one in found if not one.problem]
        if not answering:
            problems = "; ".join(one.problem for one in found)
            return FacilitatorStatus(None, problems) if found else None
        listed = [one.networks for one in answering if one.networks is not None]
        is_whole = len(listed) == len(answering)
        return FacilitatorStatus(frozenset[str]().union(*listed) if is_whole else None, "")

    async def facilitators(self) -> Sequence[FacilitatorStatus]:
        """Return each facilitator, in order."""
        reader = self._reader
        if reader is None:
            return ()
        return await self._facilitators.get("", lambda: _facilitator_statuses(reader))

    async def refresh(self) -> None:
        """Read `readings` and `facilitator_seen`. Raises `Unavailable` of the store."""
        self.facilitator_seen = await self.facilitator()
        self.readings = {
            one.network: KeyReading(one, await self._nonces(one.network), self._clock.monotonic_s())
            for one in await self.keys()
        }

    async def _check(self, network: str) -> bool:
        try:
            async with asyncio.timeout(WAIT_S):
                await self._nodes.check(network)
        except (ChainUnavailable, TimeoutError):
            return False
        return True

    async def _nonces(self, network: str) -> KeyNonces | None:
        if self._budget is None:
            return None
        try:
            async with asyncio.timeout(WAIT_S):
                return await self._budget.key.nonces(network)
        except (ChainUnavailable, TimeoutError):
            return None


async def _key_status(budget: GasBudget, network: str) -> KeyStatus:
    address = budget.key.address
    try:
        async with asyncio.timeout(WAIT_S):
            state = await budget.key.state(network)
    except ChainUnavailable as error:
        return KeyStatus(network, address, None, 0, error.detail or error.message)
    except TimeoutError:
        return KeyStatus(network, address, None, 0, f"no answer within {WAIT_S:g} s")
    return KeyStatus(network, address, state, 0, "")


def _judged(found: KeyStatus, cap_per_gas: int) -> KeyStatus:
    """Return the reading's status, by the highest allowed gas price."""
    if found.state is None:
        return found
    if is_above_cap(found.state, cap_per_gas):
        return replace(found, problem="gas costs more than ASSAY_GAS_CAP, or a price, allows")
    return replace(found, payable=payable(found.state, cap_per_gas))


def is_above_cap(state: KeyState, cap_per_gas: int) -> bool:
    """Return whether gas costs more now than a settlement may offer."""
    fee = fee_per_gas(state.gas_price, cap_per_gas)
    return fee.most < state.gas_price + fee.priority


def payable(state: KeyState, cap_per_gas: int) -> int:
    """Return the settlements that the balance pays for, each at its largest cost."""
    return state.balance // max(1, fee_per_gas(state.gas_price, cap_per_gas).most * GAS_MAX)


async def _facilitator_statuses(reader: FacilitatorReader) -> Sequence[FacilitatorStatus]:
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(_facilitator_status(reader, url)) for url in reader.urls]
    return [task.result() for task in asked]


async def _facilitator_status(reader: FacilitatorReader, url: str) -> FacilitatorStatus:
    try:
        async with asyncio.timeout(WAIT_S):
            return FacilitatorStatus(await reader.supported(url), "", url)
    except PaymentsUnavailable as error:
        return FacilitatorStatus(None, error.detail or error.message, url)
    except TimeoutError:
        return FacilitatorStatus(None, f"no answer within {WAIT_S:g} s", url)
