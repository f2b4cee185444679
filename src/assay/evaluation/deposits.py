"""A deposited credential, its refusals, and what is asked of whoever keeps it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from assay.common.errors import Conflict, NotFound
from assay.control.scope import ControlScope
from assay.net.egress.deposit_rules import Place
from assay.probing.deposited_access import EntryOutcome


class CredentialLimitReached(Conflict):
    """The agent, or its owner, has as many credentials deposited as there may be."""

    code = "credential_limit_reached"


class ControlUnproven(Conflict):
    """Nobody has shown that the agent controls the address."""

    code = "control_unproven"


class CredentialNotFound(NotFound):
    """The agent has no credential of this id."""

    code = "credential_not_found"


@dataclass(frozen=True, slots=True)
class NewCredential:
    """What an owner deposits: the address it is for, and how it is sent there."""

    url: str
    place: Place
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class DepositedCredential:
    """A credential as it is kept; what it is stays sealed."""

    id: str
    subject_key: str
    chain: str
    agent_id: str
    owner: str
    """Who owned the agent then: nobody else's visits use it."""
    url: str
    place: Place
    name: str
    sealed: bytes
    created_at: datetime
    used_at: datetime | None = None
    outcome: EntryOutcome | None = None
    """What came of it in the last visit that had it."""


class SealsSecrets(Protocol):
    """Seals secrets under a ring of keys."""

    def seal(self, data: bytes, associated: bytes) -> bytes:
        """The sealed form, bound to `associated`."""
        ...

    def open(self, sealed: bytes, associated: bytes) -> bytes:
        """The data; raises `ValueError` for anything not sealed for this place."""
        ...

    def is_current(self, sealed: bytes) -> bool:
        """Whether the first key of the ring sealed it."""
        ...


class DepositStore(Protocol):
    """Keeps sealed credentials. Methods raise `Unavailable`."""

    async def put(self, made: DepositedCredential, per_agent: int, per_owner: int) -> bool:
        """Store it in place of one for the same address; False where there would be too many.

        What former owners of the agent deposited is erased.
        """
        ...

    async def of_agent(
        self, subject_key: str, owner: str, before: datetime
    ) -> Sequence[DepositedCredential]:
        """The agent's, oldest first. What another owner deposited before then is erased."""
        ...

    async def remove(self, subject_key: str, credential_id: str) -> bool:
        """Whether there was one."""
        ...

    async def note(self, outcomes: Mapping[str, EntryOutcome], at: datetime) -> None:
        """Keep what came of them, by id."""
        ...

    async def after(self, last_id: str, at_most: int) -> Sequence[DepositedCredential]:
        """Those of all agents by id, from beyond `last_id`: to seal them again."""
        ...

    async def reseal(self, credential_id: str, old: bytes, sealed: bytes) -> None:
        """Replace its sealed form, unless it was changed meanwhile."""
        ...


class ProvenPaths(Protocol):
    """What evaluations found out of who controls which addresses. Methods raise `Unavailable`."""

    async def proven_paths(self, agent: str, since: datetime) -> Sequence[ControlScope]:
        """Addresses under the agent's proven and undisputed control, seen since then."""
        ...

    async def paths_of_others(
        self, agent: str, origin: str, at_most: int
    ) -> Sequence[ControlScope]:
        """Addresses at an origin that other agents were proven to control."""
        ...
