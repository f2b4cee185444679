"""Whom a wrapper call is counted for: the caller's address, or who it has shown to be.

Calls of agents and payers are never counted with those of strangers at their address. Pure.
"""

from dataclasses import dataclass
from functools import lru_cache

from assay.common.addresses import caller_of, network_around
from assay.common.errors import TooMany


@dataclass(frozen=True, slots=True)
class Caller:
    """Whom a call is counted for. The same caller is the same object for as long as it calls."""

    own: str
    """The address, the agent or the payer, each by a name that only it has."""
    group: str
    """All callers of its kind in its network."""
    agents: str = ""
    """Every agent at its address; empty unless it is an agent."""
    is_paid: bool = False
    """Whether the call has a payment that holds."""


class UpstreamBusy(TooMany):
    """The caller, or its network, has as many calls of one upstream under way as it may."""

    code = "wrapper_upstream_busy"


@lru_cache(maxsize=10_000)
def anonymous_at(address: str) -> Caller:
    """A caller of whom only the address is known."""
    return Caller(caller_of(address), f"network {network_around(address)}")


@lru_cache(maxsize=10_000)
def agent_at(agent: str, address: str) -> Caller:
    """An agent that has proven to be one. Agents are made for nothing, so they have groups."""
    own = f"agent {agent}"
    agents = f"agents at {caller_of(address)}"
    return Caller(own, f"agents of {network_around(address)}", agents)


@lru_cache(maxsize=10_000)
def payer_at(payer: str, address: str) -> Caller:
    """A payer whose payment for this call holds."""
    return Caller(f"payer {payer}", f"payers of {network_around(address)}", is_paid=True)
