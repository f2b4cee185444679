"""Whether this process can serve, for load balancers and operators.

A process is unready if it stops, if its database does not answer and what it remembers is too old
to be used, or if its event loop was blocked. Everything else that fails leaves it ready and
degraded: another process would be no better off.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Never

from assay.chains.evm.rpc_endpoint import RpcEndpoint
from assay.common.cache import SingleFlight
from assay.common.clock import Clock
from assay.common.errors import ServiceError
from assay.common.quota_lease import QuotaLease
from assay.db.engine import HEAD, Database
from assay.payments.settling_watch import SettlingWatch

CHECKED_S: Final = 1.0
"""Seconds for which a reading is used again: strangers may ask, and each asks the database."""

DATABASE_S: Final = 1.0
"""Longest wait for the database."""

LAG_MAX_S: Final = 1.0
LAG_KEPT_S: Final = 5.0
_SAMPLE_S: Final = 0.25


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether the process can serve; if not, why; and what it does without meanwhile."""

    reasons: tuple[str, ...]
    """Of `draining`, `database` and `loop`; empty if it is ready."""
    degraded: tuple[str, ...]
    """Of `database`, `valkey`, `limits`, `facilitator`, `schema` and `rpc:<network>`."""

    @property
    def is_ready(self) -> bool:
        """Return whether callers may be sent here."""
        return not self.reasons


class LoopLag:
    """Measures how late the event loop is."""

    def __init__(self) -> None:
        self._most_s, self._most_at_s = 0.0, 0.0

    async def measure_forever(self) -> Never:
        """Measure until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due_s = loop.time() + _SAMPLE_S
            await asyncio.sleep(_SAMPLE_S)
            now_s = loop.time()
            if now_s - due_s >= self.most_s():
                self._most_s, self._most_at_s = now_s - due_s, now_s

    def forget(self) -> None:
        """Forget what was measured: a start blocks the loop, and is no reason not to serve."""
        self._most_s = 0.0

    def most_s(self) -> float:
        """Return the largest lag of the last `LAG_KEPT_S`, in seconds."""
        is_old = asyncio.get_running_loop().time() - self._most_at_s > LAG_KEPT_S
        return 0.0 if is_old else self._most_s


class ReadinessCheck:
    """Reads the readiness, at most once in `CHECKED_S` however many ask."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        quota_lease: QuotaLease | None,
        settling: SettlingWatch,
        endpoints: Mapping[tuple[str, str], RpcEndpoint],
        grace_s: float = 0.0,
    ) -> None:
        """`grace_s`: how long it serves from memory after the database has answered last."""
        self._database = database
        self._clock = clock
        self._quota_lease = quota_lease
        self._settling = settling
        self._endpoints = endpoints
        self._flights: SingleFlight[str | None] = SingleFlight()
        self._grace_s = grace_s
        self._answered_at_s = float("-inf")
        self._revision: str | None = None
        self._read_at_s = float("-inf")
        self.lag = LoopLag()
        self._is_draining = False

    async def read(self) -> Readiness:
        """Return what is known now; waits `DATABASE_S` at most."""
        if self._clock.monotonic_s() - self._read_at_s >= CHECKED_S:
            self._revision = await self._flights.run("", self._ask)
            self._read_at_s = self._clock.monotonic_s()
            if self._revision is not None:
                self._answered_at_s = self._read_at_s
        is_lost = self._revision is None
        is_in_grace = self._clock.monotonic_s() - self._answered_at_s < self._grace_s
        reasons = {
            "draining": self._is_draining,
            "database": is_lost and not is_in_grace,
            "loop": self.lag.most_s() > LAG_MAX_S,
        }
        lease, facilitator = self._quota_lease, self._settling.facilitator_seen
        degraded = {
            "database": is_lost and is_in_grace,
            lease.name if lease else "": lease is not None and lease.is_local,
            "facilitator": facilitator is not None and bool(facilitator.problem),
            "schema": self._revision not in {None, HEAD},
        }
        return Readiness(
            tuple(name for name, holds in reasons.items() if holds),
            (*(name for name, holds in degraded.items() if holds), *self._lost_networks()),
        )

    def drain(self) -> None:
        """Be unready from now on: the process was asked to stop."""
        self._is_draining = True

    async def _ask(self) -> str | None:
        """Return the schema's revision; None if the database does not say."""
        try:
            async with asyncio.timeout(DATABASE_S):
                return await self._database.revision()
        except (ServiceError, TimeoutError):
            return None

    def _lost_networks(self) -> list[str]:
        """Return the networks none of whose nodes is asked at the moment."""
        is_lost: dict[str, bool] = {}
        for (network, _), endpoint in self._endpoints.items():
            is_lost[network] = is_lost.get(network, True) and endpoint.breaker.is_open
        return [f"rpc:{network}" for network, lost in sorted(is_lost.items()) if lost]
