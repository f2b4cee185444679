"""The egress budget: what this service may send to one host. Source: ADR 0016.

A host that has not consented receives at most so many requests and bytes in any minute, over all
features, accounts and processes. Half of that is for scheduled visits, and for gates whose caller
has proven control of the agent. Everything that anybody can trigger shares the other half, and one
account has at most a quarter of the whole of it.
"""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

BUDGET_S = 60
"""Seconds that a request and its bytes count, from the moment it ends."""

SHARED_PART = 2
"""The shared class may use one half of a budget."""

ACCOUNT_PART = 4
"""One account may use one quarter of a budget in the shared class."""

RESERVED_PART = 2
"""While others ask too, one agent, and one account, may use half of a budget in the reserved class.
A visit takes between a fifth and the whole of a small budget, so smaller parts would let no visit
finish."""

OTHERS_S = 120
"""Seconds that a refused requester counts as asking."""


class UseClass(Enum):
    """The class of a request in a budget."""

    RESERVED = "reserved"
    """A scheduled visit, or a gate whose caller controls the agent: may use the whole budget."""
    SHARED = "shared"
    """What anybody can trigger: evaluations on demand, proxy, playground, unproven webhooks."""
    OWN = "own"
    """A budget of its own, which nobody else uses: a webhook receiver that proved itself."""


@dataclass(frozen=True, slots=True)
class EgressUse:
    """The class of a request, and the account that asked for it, if one did.

    `own` names the budget of class `OWN`. `agent` is the subject key of the visited agent in class
    `RESERVED`.
    """

    use_class: UseClass = UseClass.SHARED
    account: str = ""
    own: str = ""
    agent: str = ""
    is_document: bool = False
    """Whether it reads a document of a registration through the IPFS gateway."""

    @property
    def sharers(self) -> str:
        """Return the name of the group whose members may share results with each other.

        It is one class, and in the shared class one account: a result that was cut for one group
        says nothing about others.
        """
        who = self.account if self.use_class is UseClass.SHARED else ""
        return f"{self.use_class.value} {who}"

    @property
    def narrowed(self) -> "EgressUse":
        """Return the same use in the shared class."""
        return EgressUse(UseClass.SHARED, self.account, is_document=self.is_document)


_current: ContextVar[EgressUse] = ContextVar("assay_egress_use")
# Not an argument: chain readers, caches and client libraries lie between a gate and the fetch of a
# registration file. If one of them did not pass it on, the request would count for nobody. Unset is
# the narrowest class. Tasks inherit it from the task that starts them.

ANYBODY = EgressUse()
RESERVED = EgressUse(UseClass.RESERVED)


def current_use() -> EgressUse:
    """Return the use that requests of this task count as; `ANYBODY` unless it was set."""
    return _current.get(ANYBODY)


@contextmanager
def egress_use(use: EgressUse) -> Generator[None]:
    """Count requests inside the block, and in tasks that it starts, as `use`."""
    token = _current.set(use)
    try:
        yield
    finally:
        _current.reset(token)


@dataclass(frozen=True, slots=True)
class Ceiling:
    """Largest number of requests and bytes, sent and received, in any `BUDGET_S` seconds."""

    requests: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class BudgetRules:
    """The ceilings, and whether they apply to private addresses too."""

    unproven: Ceiling = Ceiling(60, 256 * 1024)
    consenting: Ceiling = Ceiling(600, 20 * 1024 * 1024)
    gateway: Ceiling = Ceiling(150, 5 * 1024 * 1024)
    """The ceiling of the IPFS gateway, for documents of registrations only."""
    holds_private: bool = False


@dataclass(frozen=True, slots=True)
class EgressClaim:
    """A request that is about to be counted against one budget."""

    exchange: str
    """Equal for the claims of one request on the budgets of its name and its address."""
    key: str
    """The name of the budget. It may be any text, because it is stored as a hash."""
    ceiling: Ceiling
    use: EgressUse
    size_bytes: int
    """Bytes that it may send and receive before it asks for more."""
    ends_s: float
    """Seconds after which it counts as ended if nobody reports its end."""


@dataclass(frozen=True, slots=True)
class BudgetSpent:
    """The budget has no room; `retry_s` is when the oldest request leaves it."""

    retry_s: float


class BudgetLedger(Protocol):
    """Counts of all processes together. Every method is one atomic step.

    Raises `common.errors.Unavailable` if it cannot be used: then nothing may be sent.
    """

    async def claim(self, claim: EgressClaim) -> BudgetSpent | None:
        """Count the request; if it would exceed the budget, return `BudgetSpent` uncounted."""
        ...

    async def extend(self, claims: "tuple[EgressClaim, ...]", wanted_bytes: int) -> int:
        """Grant up to `wanted_bytes` more for a running request, as far as each budget allows."""
        ...

    async def settle(self, exchange: str, size_bytes: int) -> None:
        """Record the end of a request that sent and received `size_bytes` in all."""
        ...

    async def forget(self, exchange: str) -> None:
        """Remove the claim: the request was never sent, or its target has no budget."""
        ...

    async def left(self, key: str, ceiling: Ceiling, use: EgressUse) -> Ceiling:
        """Return what a use may still take of a budget; never below zero."""
        ...

    async def count(self, key: str, limit: int, window_s: float) -> BudgetSpent | None:
        """Count one of at most `limit` in any `window_s` seconds, or return `BudgetSpent`."""
        ...


EGRESS_BUDGET = "egress_budget"
"""The reason for an evaluation that was not made because its host's budget is used up: ADR 0016."""
