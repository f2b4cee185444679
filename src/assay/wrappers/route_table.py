"""Which wrapper answers, from memory: no request of a known operator waits for the store."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

from assay.common.cache import BoundedMap, SingleFlight
from assay.common.clock import Clock
from assay.gate.model import GateInput
from assay.net.egress.url import EgressPolicy, RefusedUrl, parse_target
from assay.payments.model import LedgerEntry
from assay.wrappers.history import size_of
from assay.wrappers.matching import BadPath, RouteRow, RouteTable
from assay.wrappers.model import RouteMatch, WrapperConfig, WrapperNotFound, WrapperRoute
from assay.wrappers.service import Endpoints
from assay.wrappers.store import SqlWrapperStore

REMEMBERED_S = 5.0
"""How long an operator's wrappers are believed without asking the store: the longest one
deactivated by another process still answers here. What this process changes counts at once."""

MISS_BELIEVED_S = 0.5
"""How long it is believed that there is no such wrapper: another process may just have made it."""

REMEMBERED_BYTES: Final = 128 * 1024 * 1024
"""Wrappers that are remembered; of more, the operator whose were read longest ago is forgotten. One
operator's may be 27 MB, which take twice as much here."""

ROW_BYTES: Final = 2048
"""What the route of a wrapper takes besides its texts."""


OPERATOR_ID_CHARS: Final = 36
"""Of a longer one nobody has a wrapper, and nothing is remembered: strangers may send any text."""


@dataclass(frozen=True, slots=True)
class _Remembered:
    configs: Sequence[WrapperConfig]
    table: RouteTable[WrapperRoute | None]
    """None for what is matched and answers nobody: no wider wrapper speaks for it."""

    until_s: float
    changes: int
    size: int
    """In bytes."""


class Routes:
    """Finds the route of a request."""

    def __init__(
        self, store: SqlWrapperStore, endpoints: Endpoints, egress: EgressPolicy, clock: Clock
    ) -> None:
        self._store = store
        self._endpoints = endpoints
        self._egress = egress
        self._clock = clock
        self._memory: BoundedMap[str, _Remembered] = BoundedMap(
            REMEMBERED_BYTES, lambda known: known.size
        )
        self._flights: SingleFlight[RouteTable[WrapperRoute | None]] = SingleFlight()

    def find_cached(self, operator_id: str, method: str, path: str) -> RouteMatch | None:
        """The route, where the operator's are in memory. No I/O."""
        table = self._remembered(operator_id)
        return None if table is None else _found(table, method, path)

    def route_cached(self, operator_id: str, method: str, path: str) -> WrapperRoute | None:
        """As `find_cached`, for callers that know the path that is forwarded."""
        table = self._remembered(operator_id)
        try:
            found = None if table is None else table.match(method, path)
        except BadPath:
            return None
        return None if found is None else found.value

    def last_known(self, operator_id: str, method: str, path: str) -> WrapperRoute | None:
        """The route as it was when the operator's were last read, however old. No I/O."""
        known = self._memory.get(operator_id)
        found = None if known is None else _found(known.table, method, path)
        return None if found is None else found.route

    async def find(self, operator_id: str, method: str, path: str) -> RouteMatch:
        """The route, and the path that is forwarded.

        Raises `WrapperNotFound`, also for a path two readers could read two ways.
        """
        found = self.find_cached(operator_id, method, path)
        may_exist = len(operator_id) <= OPERATOR_ID_CHARS
        if found is None and may_exist and self._age_s(operator_id) > MISS_BELIEVED_S:
            table = await self._flights.run(operator_id, lambda: self._load(operator_id))
            found = _found(table, method, path)
        if found is None:
            raise WrapperNotFound("No active wrapper answers this operator, path and method.")
        return found

    async def registered(self, operator_id: str, method: str, path: str) -> WrapperConfig | None:
        """The active config of a path as the store has it, whether it can be called or not."""
        async with self._endpoints.lists.slot(operator_id, is_known=True):
            configs = await self._store.active(operator_id)
            table = await RouteTable[WrapperConfig].by_turns(
                RouteRow(c.method, c.path, c, c.terms) for c in configs
            )
        try:
            found = table.match(method, path)
        except BadPath:
            return None
        return None if found is None else found.value

    async def as_claimed(
        self, entry: LedgerEntry, method: str, path: str
    ) -> tuple[WrapperConfig, RouteMatch | None]:
        """The wrapper as it was when a payment was claimed, and its route with the path forwarded.

        Where what it was is not known any more, as it is now, if it still answers; else without a
        route. Raises `WrapperNotFound` where there is neither.
        """
        number = entry.wrapper_revision
        config = await self._store.revision(entry.operator_id, entry.wrapper_id, number)
        route = None if config is None else self._route(config)
        if config is None or route is None:
            return await self._as_it_is(config, entry, method, path)
        # Another spelling of its path, which it answered for its terms, is forwarded as it came.
        found = _found(RouteTable([RouteRow(config.method, config.path, route)]), method, path)
        return config, found or RouteMatch(route, path)

    async def _as_it_is(
        self, config: WrapperConfig | None, entry: LedgerEntry, method: str, path: str
    ) -> tuple[WrapperConfig, RouteMatch | None]:
        try:
            found = await self.find(entry.operator_id, method, path)
        except WrapperNotFound:
            if config is None:
                raise
            return config, None
        if found.route.config.id == entry.wrapper_id:
            return config or found.route.config, found
        return config or found.route.config, None

    def _age_s(self, operator_id: str) -> float:
        """How long ago the operator's wrappers were read."""
        known = self._memory.get(operator_id)
        if known is None or self._remembered(operator_id) is None:
            return inf
        return REMEMBERED_S - (known.until_s - self._clock.monotonic_s())

    def _remembered(self, operator_id: str) -> RouteTable[WrapperRoute | None] | None:
        known = self._memory.get(operator_id)
        if (
            known is None
            or known.until_s <= self._clock.monotonic_s()
            or known.changes != self._endpoints.changes
        ):
            return None
        return known.table

    async def _load(self, operator_id: str) -> RouteTable[WrapperRoute | None]:
        changes = self._endpoints.changes
        configs, known = await self._store.active(operator_id), self._memory.get(operator_id)
        until = self._clock.monotonic_s() + REMEMBERED_S
        if known is not None and known.configs == configs:  # making it may take a second
            configs, table, size = known.configs, known.table, known.size
        else:
            table = await RouteTable[WrapperRoute | None].by_turns(
                RouteRow(c.method, c.path, self._route(c), c.terms) for c in configs
            )
            size = ROW_BYTES + sum(ROW_BYTES + size_of(config) for config in configs)
        self._memory.put(operator_id, _Remembered(configs, table, until, changes, size))
        return table

    def _route(self, config: WrapperConfig) -> WrapperRoute | None:
        """None for what must not be served: it has no target, or a shut one, or a lost secret."""
        target = parse_target(config.target_url, self._egress.of(config.operator_id))
        if isinstance(target, RefusedUrl):
            return None
        try:
            secret = self._endpoints.upstream_secret(config)
        except ValueError:
            return None
        header = None
        if config.auth is not None and secret is not None:
            header = (config.auth.header.encode("ascii"), secret)
        asked = GateInput(min_score=config.min_score, cold_start=config.cold_start)
        return WrapperRoute(config, target, asked, header)


def _found(
    table: RouteTable[WrapperRoute] | RouteTable[WrapperRoute | None], method: str, path: str
) -> RouteMatch | None:
    try:
        found = table.match(method, path)
    except BadPath:
        return None
    if found is None or found.value is None:
        return None
    return RouteMatch(found.value, found.path)
