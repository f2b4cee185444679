"""The party that a wrapper call is counted for: an address, a proven agent or a payer.

Calls of agents and payers are never counted together with those of strangers at the same address.
Pure.
"""

from dataclasses import dataclass
from functools import lru_cache

from assay.common.addresses import caller_of, network_around
from assay.common.errors import TooMany


@dataclass(frozen=True, slots=True)
class Caller:
    """The party a call is counted for. It stays the same object for as long as it calls."""

    own: str
    """A unique name for the address, the agent or the payer."""
    group: str
    """Groups all callers of this kind in the same network."""
    agents: str = ""
    """Groups every agent at this address; empty unless the caller is an agent."""
    is_paid: bool = False
    """Whether the call carries a valid payment."""


class UpstreamBusy(TooMany):
    """The caller or its network has too many concurrent calls to one upstream."""

    code = "wrapper_upstream_busy"


@lru_cache(maxsize=10_000)
def anonymous_at(address: str) -> Caller:
    """Return a caller of which only the address is known."""
    return Caller(caller_of(address), f"network {network_around(address)}")


@lru_cache(maxsize=10_000)
def agent_at(agent: str, address: str) -> Caller:
    """Return a caller that has proven to be an agent. Agents cost nothing, so they have groups."""
    own = f"agent {agent}"
    agents = f"agents at {caller_of(address)}"
    return Caller(own, f"agents of {network_around(address)}", agents)


@lru_cache(maxsize=10_000)
def payer_at(payer: str, address: str) -> Caller:
    """Return a caller whose payment for this call is valid."""
    return Caller(f"payer {payer}", f"payers of {network_around(address)}", is_paid=True)
