"""Finds the wrapper from memory: no request of a known operator waits for the store."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from assay.common.cache import Cache
from assay.common.clock import Clock
from assay.common.errors import SourceAway
from assay.gate.model import GateInput
from assay.net.egress.url import EgressPolicy, RefusedUrl, parse_target
from assay.payments.model import LedgerEntry
from assay.wrappers.history import size_of
from assay.wrappers.matching import BadPath, RouteRow, RouteTable
from assay.wrappers.model import RouteMatch, WrapperConfig, WrapperNotFound, WrapperRoute
from assay.wrappers.service import Endpoints
from assay.wrappers.store import SqlWrapperStore

REMEMBERED_S = 5.0
"""Seconds for which an operator's wrappers are used without asking the store. For so long, a
wrapper that another process deactivated still answers here, if no change feed says so. What this
process changes counts at once."""

MISS_BELIEVED_S = 0.5
"""Seconds for which a missing wrapper is not looked up again: another process may just have created
it."""

REMEMBERED_BYTES: Final = 128 * 1024 * 1024
"""Bytes of wrappers that are remembered; beyond that, the operator that was read longest ago is
forgotten. One operator's wrappers may have 27 MB, which take twice as much here."""

ROW_BYTES: Final = 2048
"""Bytes of a route besides its texts."""


OPERATOR_ID_CHARS: Final = 36
"""Longest operator id. Nothing is looked up or remembered for a longer one, because strangers may
send any text."""


@dataclass(frozen=True, slots=True)
class _Remembered:
    configs: Sequence[WrapperConfig]
    table: RouteTable[WrapperRoute | None]
    """None as a route means that it matches and answers nobody: no wider wrapper answers
    instead."""

    size: int
    """The size in bytes."""


class Routes:
    """Finds the route of a request."""

    def __init__(
        self,
        store: SqlWrapperStore,
        endpoints: Endpoints,
        egress: EgressPolicy,
        clock: Clock,
        grace_s: float = 0.0,
    ) -> None:
        """While the store does not answer, wrappers are used until they are `grace_s` old."""
        self._store = store
        self._endpoints = endpoints
        self._egress = egress
        self._memory: Cache[_Remembered] = Cache(
            clock, REMEMBERED_S, REMEMBERED_BYTES, lambda known: known.size, grace_s=grace_s
        )
        endpoints.on_change = self.forget
        self.stale_lines = b""
        """Lines for the heads of answers, while the store does not answer."""

    def forget(self, operator_id: str) -> None:
        """Ask the store before this operator's wrappers answer again: some have changed."""
        self._memory.remove(operator_id)

    def doubt(self) -> None:
        """Ask the store before any wrapper's next call, as far as the store answers."""
        self._memory.doubt()

    def stale_s(self, operator_id: str) -> float | None:
        """Return the age of wrappers that are used because the store does not answer, or None."""
        return self._memory.stale_s(operator_id)

    def find_cached(self, operator_id: str, method: str, path: str) -> RouteMatch | None:
        """Return the route, if the operator's are in memory. No I/O."""
        known = self._memory.fresh(operator_id)
        return None if known is None else _found(known.table, method, path)

    def route_cached(self, operator_id: str, method: str, path: str) -> WrapperRoute | None:
        """Return it like `find_cached`, for callers that know the forwarded path."""
        known = self._memory.fresh(operator_id)
        try:
            found = None if known is None else known.table.match(method, path)
        except BadPath:
            return None
        return None if found is None else found.value

    def last_known(self, operator_id: str, method: str, path: str) -> WrapperRoute | None:
        """Return the route as it was when the operator's were last read, however old. No I/O."""
        known = self._memory.last(operator_id)
        found = None if known is None else _found(known.table, method, path)
        return None if found is None else found.route

    async def find(self, operator_id: str, method: str, path: str) -> RouteMatch:
        """Return the route, and the path that is forwarded.

        Raises `WrapperNotFound`, also for a path that two readers could read differently, and
        `SourceAway` for what was not known when the store last answered.
        """
        known = self._memory.fresh(operator_id)
        found = None if known is None else _found(known.table, method, path)
        may_exist = len(operator_id) <= OPERATOR_ID_CHARS
        is_old = known is None or self._memory.age_s(operator_id) > MISS_BELIEVED_S
        if found is None and may_exist and is_old:
            asked = await self._memory.ask(operator_id, lambda: self._load(operator_id))
            found = _found(asked.table, method, path)
            age_s = self._memory.stale_s(operator_id)
            self.stale_lines = b"" if age_s is None else b"%b: %b\r\n" % stale_header(age_s)
            if found is None and age_s is not None:
                raise _unknown_now()
        if found is None:
            raise WrapperNotFound("No active wrapper answers this operator, path and method.")
        return found

    async def active(self, operator_id: str) -> Sequence[WrapperConfig]:
        """Return the operator's active wrappers as they are remembered, in no certain order.

        Raises `SourceAway` if the store does not answer: prices may have changed.
        """
        if len(operator_id) > OPERATOR_ID_CHARS:
            return ()
        known = await self._memory.get(operator_id, lambda: self._load(operator_id))
        if self._memory.stale_s(operator_id) is not None:
            raise _unknown_now()
        return known.configs

    async def registered(self, operator_id: str, method: str, path: str) -> WrapperConfig | None:
        """Return the active config of a path from the store, whether it can be called or not."""
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
        """Return the wrapper as a payment claimed it, and its route with the forwarded path.

        If its state of that time is unknown, return it as it is now, if it still answers, or else
        without a route. Raises `WrapperNotFound` if there is neither.
        """
        number = entry.wrapper_revision
        config = await self._store.revision(entry.operator_id, entry.wrapper_id, number)
        route = None if config is None else self._route(config)
        if config is None or route is None:
            return await self._as_it_is(config, entry, method, path)
        # It answered another spelling of its path on its terms: forward that as it came.
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

    async def _load(self, operator_id: str) -> _Remembered:
        configs, known = await self._store.active(operator_id), self._memory.last(operator_id)
        if known is not None and known.configs == configs:  # building it may take a second
            return known
        table = await RouteTable[WrapperRoute | None].by_turns(
            RouteRow(c.method, c.path, self._route(c), c.terms) for c in configs
        )
        size = ROW_BYTES + sum(ROW_BYTES + size_of(config) for config in configs)
        return _Remembered(configs, table, size)

    def _route(self, config: WrapperConfig) -> WrapperRoute | None:
        """Return the route; None if it has no target, a closed target, or a lost secret."""
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


def _unknown_now() -> SourceAway:
    return SourceAway("The wrappers cannot be looked up now.", retry_after_s=5)


def stale_header(age_s: float) -> tuple[bytes, bytes]:
    """Return the header of an answer by wrappers that were read so long ago."""
    return b"x-assay-stale", b"routes; age=%d" % age_s


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
