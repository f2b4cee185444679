"""A deposited credential, its refusals, and the interface of its store."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from assay.common.errors import Conflict, NotFound
from assay.control.scope import ControlScope
from assay.net.egress.deposit_rules import Place
from assay.probing.deposited_access import EntryOutcome


class CredentialLimitReached(Conflict):
    """The agent, or its owner, has the maximum number of deposited credentials."""

    code = "credential_limit_reached"


class ControlUnproven(Conflict):
    """The agent's control of the address is not proven."""

    code = "control_unproven"


class CredentialNotFound(NotFound):
    """The agent has no credential with this id."""

    code = "credential_not_found"


@dataclass(frozen=True, slots=True)
class NewCredential:
    """A new deposit: the address it is for, and how it is sent there."""

    url: str
    place: Place
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class DepositedCredential:
    """A stored credential; its value stays sealed."""

    id: str
    subject_key: str
    chain: str
    agent_id: str
    owner: str
    """The agent's owner at the deposit: visits under another owner do not use it."""
    url: str
    place: Place
    name: str
    sealed: bytes
    created_at: datetime
    used_at: datetime | None = None
    outcome: EntryOutcome | None = None
    """Its result in the last visit that used it."""


class SealsSecrets(Protocol):
    """Seals secrets under a ring of keys."""

    def seal(self, data: bytes, associated: bytes) -> bytes:
        """Return the sealed form, bound to `associated`."""
        ...

    def open(self, sealed: bytes, associated: bytes) -> bytes:
        """Return the data; raises `ValueError` if it was not sealed with this `associated`."""
        ...

    def is_current(self, sealed: bytes) -> bool:
        """Return whether the first key of the ring sealed it."""
        ...


class DepositStore(Protocol):
    """Stores sealed credentials. Methods raise `Unavailable`."""

    async def put(self, made: DepositedCredential, per_agent: int, per_owner: int) -> bool:
        """Store it, replacing one for the same address; return False if there would be too many.

        Deposits of the agent's former owners are erased.
        """
        ...

    async def of_agent(
        self, subject_key: str, owner: str, before: datetime
    ) -> Sequence[DepositedCredential]:
        """Return the agent's, oldest first; erase those of another owner from before `before`."""
        ...

    async def remove(self, subject_key: str, credential_id: str) -> bool:
        """Remove one; return whether it existed."""
        ...

    async def note(self, outcomes: Mapping[str, EntryOutcome], at: datetime) -> None:
        """Record their results, by id."""
        ...

    async def after(self, last_id: str, at_most: int) -> Sequence[DepositedCredential]:
        """Return those of all agents by id, after `last_id`: to seal them again."""
        ...

    async def reseal(self, credential_id: str, old: bytes, sealed: bytes) -> None:
        """Replace its sealed form, unless it changed meanwhile."""
        ...


class ProvenPaths(Protocol):
    """Results of evaluations about control of addresses. Methods raise `Unavailable`."""

    async def proven_paths(self, agent: str, since: datetime) -> Sequence[ControlScope]:
        """Return addresses under the agent's proven and undisputed control, seen since then."""
        ...

    async def paths_of_others(
        self, agent: str, origin: str, at_most: int
    ) -> Sequence[ControlScope]:
        """Return addresses at an origin that other agents were proven to control."""
        ...
