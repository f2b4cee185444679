"""Hosts that agreed to receive more requests than an unknown host may. Source: ADR 0016.

A consent belongs to an origin and is valid on the networks it was read from: if the name is then
pointed at another party, the consent has no effect there.
"""

import hashlib
import json
from dataclasses import dataclass
from typing import Final, cast

from assay.common.cache import BoundedMap
from assay.common.clock import Clock
from assay.common.json import JsonValue, is_array, is_object
from assay.common.shared_state import SharedState
from assay.http1.model import Target
from assay.net.egress.url import network_of

CONSENT_S: Final = 3600.0
"""Lifetime of a consent; every visit to the agent it names reads it again."""

NETWORKS_MAX: Final = 8
"""Networks per consent, the newest first: names with many addresses rotate through them."""

REMEMBERED_S: Final = 10.0
REMEMBERED_MAX: Final = 10_000
"""How many consents a process caches from the shared state."""


@dataclass(frozen=True, slots=True)
class Consent:
    """Who gave it (an agent's subject key, or an account), and the networks where it is valid."""

    given_for: str
    networks: tuple[str, ...]


def origin_of(target: Target) -> str:
    """Return the scheme, host and port of a target: the unit of consent."""
    host = f"[{target.host}]" if ":" in target.host else target.host
    return f"{target.scheme}://{host}:{target.port}"


class Consents:
    """Consents by name, in the state that all processes share; each expires by itself.

    The name is an origin, or another key of a consent. Every method raises
    `common.errors.Unavailable` when the state cannot be used.
    """

    def __init__(self, state: SharedState, clock: Clock) -> None:
        self._state = state
        self._clock = clock
        self._remembered: BoundedMap[str, tuple[Consent | None, float]] = BoundedMap(REMEMBERED_MAX)

    async def find(self, name: str) -> Consent | None:
        """Return the consent stored under that name, at most `REMEMBERED_S` old."""
        known = self._remembered.get(name)
        if known is not None and known[1] > self._clock.monotonic_s():
            return known[0]
        stored = await self._state.get(_key(name))
        found = None if stored is None else _consent(stored)
        self._remember(name, found)
        return found

    async def record(self, name: str, given_for: str, address: str) -> None:
        """Store a consent just read from `address`, in addition to earlier networks."""
        before = await self.find(name)
        older = before.networks if before and before.given_for == given_for else ()
        networks = tuple(dict.fromkeys((network_of(address), *older)))[:NETWORKS_MAX]
        made = Consent(given_for, networks)
        stored = json.dumps({"for": given_for, "networks": networks})
        await self._state.put(_key(name), stored, CONSENT_S)
        self._remember(name, made)

    async def withdraw(self, name: str, given_for: str) -> None:
        """Delete a consent that is no longer given for `given_for`."""
        before = await self.find(name)
        if before is not None and before.given_for == given_for:
            await self._state.take(_key(name))
            self._remember(name, None)

    def _remember(self, name: str, found: Consent | None) -> None:
        self._remembered.put(name, (found, self._clock.monotonic_s() + REMEMBERED_S))


def _key(name: str) -> str:
    return "consent/" + hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()


def _consent(stored: str) -> Consent | None:
    try:
        row = cast("JsonValue", json.loads(stored))
    except ValueError:
        return None
    networks = row.get("networks") if is_object(row) else None
    if not is_object(row) or not is_array(networks):
        return None
    return Consent(str(row.get("for")), tuple(str(one) for one in networks))
