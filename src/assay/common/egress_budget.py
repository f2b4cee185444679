"""What others may have sent to one host: the egress budget's terms. Source: ADR 0016.

A host that has not consented sees at most so many requests and bytes in any minute,
through whichever feature, account or process. Half of that is for scheduled visits and for gates on
agents whose caller has shown that it controls them; whatever anybody can trigger shares the other
half, and one account has at most a quarter of the whole of it.
"""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

BUDGET_S = 60
"""Seconds a request and its bytes count, from the moment they are over."""

SHARED_PART = 2
"""The shared class may use one half of a budget."""

ACCOUNT_PART = 4
"""One account may use one quarter of a budget in the shared class."""

RESERVED_PART = 2
"""While others ask too, one agent, and one account, may use one half of a budget in the reserved
class. A visit takes between a fifth and the whole of a small budget: in smaller parts none would be
finished."""

OTHERS_S = 120
"""How long somebody who was refused counts as asking."""


class UseClass(Enum):
    """Who a request is made for."""

    RESERVED = "reserved"
    """A scheduled visit, or a gate whose caller controls the agent: may use the whole budget."""
    SHARED = "shared"
    """What anybody can trigger: evaluations on demand, proxy, playground, unproven webhooks."""
    OWN = "own"
    """A budget that nobody else draws on: a webhook receiver that proved itself."""


@dataclass(frozen=True, slots=True)
class EgressUse:
    """The class of a request, and the account that asked for it where one did.

    `own` names the budget of class `OWN`; `agent` is the subject key of the agent that is visited
    in class `RESERVED`.
    """

    use_class: UseClass = UseClass.SHARED
    account: str = ""
    own: str = ""
    agent: str = ""
    is_document: bool = False
    """Whether it reads a document of a registration through the IPFS gateway."""

    @property
    def sharers(self) -> str:
        """Names who may use each other's results: what was cut for one says nothing of others.

        One class; in the shared one, one account.
        """
        who = self.account if self.use_class is UseClass.SHARED else ""
        return f"{self.use_class.value} {who}"

    @property
    def narrowed(self) -> "EgressUse":
        """The same in the shared class."""
        return EgressUse(UseClass.SHARED, self.account, is_document=self.is_document)


_current: ContextVar[EgressUse] = ContextVar("assay_egress_use")
# Not an argument: between a gate and the fetch of a registration file lie readers of chains, caches
# and client libraries, and what none of them passed on would be counted for nobody. Unset is the
# narrowest class. Tasks inherit it from the task that starts them.

ANYBODY = EgressUse()
RESERVED = EgressUse(UseClass.RESERVED)


def current_use() -> EgressUse:
    """What requests of this task are counted as; `ANYBODY` unless somebody said."""
    return _current.get(ANYBODY)


@contextmanager
def egress_use(use: EgressUse) -> Generator[None]:
    """Count what is sent inside the block, and in tasks it starts, as `use`."""
    token = _current.set(use)
    try:
        yield
    finally:
        _current.reset(token)


@dataclass(frozen=True, slots=True)
class Ceiling:
    """Requests and bytes, sent and received, in any `BUDGET_S` seconds."""

    requests: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class BudgetRules:
    """The ceilings, and whether addresses of one's own network have them too."""

    unproven: Ceiling = Ceiling(60, 256 * 1024)
    consenting: Ceiling = Ceiling(600, 20 * 1024 * 1024)
    gateway: Ceiling = Ceiling(150, 5 * 1024 * 1024)
    """Of the IPFS gateway, for documents of registrations alone."""
    holds_private: bool = False


@dataclass(frozen=True, slots=True)
class EgressClaim:
    """A request that is about to be counted against one budget."""

    exchange: str
    """The same for the claims of one request on the budgets of name and address."""
    key: str
    """Names the budget. Any text: it is stored as a hash."""
    ceiling: Ceiling
    use: EgressUse
    size_bytes: int
    """What it may send and receive before it asks for more."""
    ends_s: float
    """Seconds after which it is certainly over, when nobody says so."""


@dataclass(frozen=True, slots=True)
class BudgetSpent:
    """A budget has no room; `retry_s` is when the oldest request leaves it."""

    retry_s: float


class BudgetLedger(Protocol):
    """Counts kept by all processes together. Every method is one atomic step.

    Raises `common.errors.Unavailable` when it cannot be used: then nothing may be sent.
    """

    async def claim(self, claim: EgressClaim) -> BudgetSpent | None:
        """Count the request; `BudgetSpent` when that would exceed the budget, uncounted."""
        ...

    async def extend(self, claims: "tuple[EgressClaim, ...]", wanted_bytes: int) -> int:
        """Up to `wanted_bytes` more for a request under way, as many as each budget has left."""
        ...

    async def settle(self, exchange: str, size_bytes: int) -> None:
        """The request is over; it sent and received `size_bytes` in all."""
        ...

    async def forget(self, exchange: str) -> None:
        """The request was never sent, or nobody has to be spared it."""
        ...

    async def left(self, key: str, ceiling: Ceiling, use: EgressUse) -> Ceiling:
        """What a use may still take of a budget; never below zero."""
        ...

    async def count(self, key: str, limit: int, window_s: float) -> BudgetSpent | None:
        """Count one of at most `limit` in any `window_s` seconds, or say `BudgetSpent`."""
        ...


EGRESS_BUDGET = "egress_budget"
"""Why an evaluation was not made: its host has had its share of requests. See ADR 0016."""
