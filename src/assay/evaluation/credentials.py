"""Credentials that an agent's owner deposits, so that services behind a log-in can be evaluated.

A deposited credential, its refusals, and the interface of its store.

They are sealed at rest, opened only for visits, and sent only to the address they were deposited
for.
Source: evidence.md#services-behind-a-log-in; ADR 0039.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol
from urllib.parse import quote

from assay.common.clock import Clock
from assay.common.errors import Conflict, InvalidRequest, NotFound, Problem, Unavailable
from assay.common.ids import new_id
from assay.common.keyring import SecretBox
from assay.control.scope import ControlScope, document_scope, scope_of
from assay.net.egress.redaction import Place, name_problem, value_problem
from assay.probing.declared_services import declared_services
from assay.probing.deposited_access import EntryOutcome, EvaluationCredential, is_safe_way
from assay.registries.model import Subject


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

    async def after(self, last_id: str, limit: int) -> Sequence[DepositedCredential]:
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

    async def paths_of_others(self, agent: str, origin: str, limit: int) -> Sequence[ControlScope]:
        """Return addresses at an origin that other agents were proven to control."""
        ...


PER_AGENT_MAX: Final = 4
PER_OWNER_MAX: Final = 20
"""Most credentials of one agent, and of all agents of one owner."""

URL_CHARS_MAX: Final = 300

CONTROL_COUNTS: Final = timedelta(days=30)
"""Largest age of the evaluation that proved control of the address a credential is sent to."""

KEPT_UNUSED: Final = timedelta(days=90)
"""A credential that no visit used for this long is erased."""

OWNER_KNOWN: Final = timedelta(minutes=1)
"""Largest age of the known owner of an agent: an older view must not erase newer deposits."""

OTHERS_MAX: Final = 200
"""Addresses of other agents below one of ours; if there are more, nothing is sent."""


class ServiceCredentials:
    """Stores deposits, and opens them for visits; implements `EvaluationCredentials`."""

    def __init__(
        self,
        store: DepositStore,
        secrets: SecretBox,
        control: ProvenPaths,
        clock: Clock,
        is_ours: Callable[[str], bool],
    ) -> None:
        """Create it; `is_ours` tells whether a value is a credential for this service itself."""
        self._store = store
        self._secrets = secrets
        self._control = control
        self._clock = clock
        self._is_ours = is_ours

    async def deposit(self, subject: Subject, asked: NewCredential) -> DepositedCredential:
        """Store a credential for one of the agent's services, replacing an earlier one.

        Raises `InvalidRequest` naming every problem, `ControlUnproven` and
        `CredentialLimitReached`. The caller must already be authorised for the agent.
        """
        agent = subject.agent
        scope = scope_of(asked.url) if len(asked.url) <= URL_CHARS_MAX else None
        problems = self._problems(subject, asked, scope)
        if problems or scope is None or agent is None:
            details = [Problem(("body", name), said) for name, said in problems]
            raise InvalidRequest("The credential cannot be deposited like this.", details=details)
        if await self._others(subject, scope) is None:
            raise ControlUnproven(
                "Control of this address is not proven by an evaluation of the last 30 days:"
                " publish the proof that `improve` names, and have the agent evaluated."
            )
        made_id, now = new_id(), self._clock.now()
        place = _place(made_id, subject.key, agent.owner)
        made = DepositedCredential(
            *(made_id, subject.key, subject.network.slug, subject.agent_id, agent.owner),
            *(_url(scope), asked.place, asked.name),
            self._secrets.seal(asked.value.encode("ascii"), place),
            now,
        )
        if not await self._store.put(made, PER_AGENT_MAX, PER_OWNER_MAX):
            raise CredentialLimitReached(
                f"At most {PER_AGENT_MAX} credentials of an agent and {PER_OWNER_MAX} of an owner"
                " are kept: delete one first."
            )
        return made

    async def list(self, subject: Subject) -> Sequence[DepositedCredential]:
        """Return the agent's credentials, oldest first, without their values."""
        agent = subject.agent
        if agent is None:
            return []
        before = self._clock.now() - OWNER_KNOWN
        return await self._store.of_agent(subject.key, agent.owner, before)

    async def remove(self, subject: Subject, credential_id: str) -> None:
        """Erase one. Raises `CredentialNotFound`."""
        if not await self._store.remove(subject.key, credential_id):
            raise CredentialNotFound("The agent has no credential of this id.")

    async def usable(self, subject: Subject) -> Sequence[EvaluationCredential]:
        """Return those for services that the agent declares and controls now. Never raises."""
        try:
            found = [await self._opened(subject, one) for one in await self.list(subject)]
        except Unavailable:
            return ()  # Then the visit uses no credential.
        return [one for one in found if one is not None]

    async def note(self, subject: Subject, outcomes: Mapping[str, EntryOutcome]) -> None:
        """Record their results in a visit. Never raises."""
        del subject
        if outcomes:
            with suppress(Unavailable):
                await self._store.note(outcomes, self._clock.now())

    async def reseal(self) -> int:
        """Seal again what an older key of the ring sealed; return how many there were."""
        count, last = 0, ""
        while rows := await self._store.after(last, OTHERS_MAX):
            last = rows[-1].id
            for one in rows:
                if not self._secrets.is_current(one.sealed):
                    place = _place(one.id, one.subject_key, one.owner)
                    again = self._secrets.seal(self._secrets.open(one.sealed, place), place)
                    await self._store.reseal(one.id, one.sealed, again)
                    count += 1
        return count

    def _problems(
        self, subject: Subject, asked: NewCredential, scope: ControlScope | None
    ) -> Sequence[tuple[str, str]]:
        found = [
            ("url", _url_problem(subject, scope)),
            ("name", name_problem(asked.place, asked.name)),
            ("value", value_problem(asked.place, asked.name, asked.value)),
        ]
        if found[2][1] is None and self._is_ours(asked.value):
            found.append(("value", "is a credential for this service, which nobody else receives"))
        return [(name, said) for name, said in found if said is not None]

    async def _others(
        self, subject: Subject, scope: ControlScope
    ) -> tuple[ControlScope, ...] | None:
        """Return addresses of others below `scope`; None if its control is not proven.

        On a shared host the longest proven path wins.
        """
        since = self._clock.now() - CONTROL_COUNTS
        own = [s for s in await self._control.proven_paths(subject.key, since) if s.covers(scope)]
        if not own:
            return None
        deepest = max(len(one.segments) for one in own)
        at = await self._control.paths_of_others(subject.key, scope.origin, OTHERS_MAX + 1)
        if len(at) > OTHERS_MAX or any(
            len(one.segments) > deepest and one.covers(scope) for one in at
        ):
            return None
        return tuple(one for one in at if scope.covers(one) and len(one.segments) > deepest)

    async def _opened(
        self, subject: Subject, kept: DepositedCredential
    ) -> EvaluationCredential | None:
        scope = scope_of(kept.url)
        if scope is None or _url_problem(subject, scope) is not None:
            return None
        others = await self._others(subject, scope)
        if others is None:
            return None
        try:
            place = _place(kept.id, kept.subject_key, kept.owner)
            value = self._secrets.open(kept.sealed, place).decode("ascii")
        except ValueError:
            return None  # Sealed by a removed key: the owner must deposit it again.
        return EvaluationCredential(kept.id, scope, kept.place, kept.name, value, others)


def _url_problem(subject: Subject, scope: ControlScope | None) -> str | None:
    """Return why nothing can be deposited for an address, or None."""
    if scope is None or scope.is_exact:
        return f"must be an http(s) address of at most {URL_CHARS_MAX} characters, without a query"
    if not is_safe_way(scope):
        return "must be https: a credential is never sent in the clear"
    declared = (document_scope(v.service.endpoint) for v in declared_services(subject)[0])
    if not any(one is not None and one.origin == scope.origin for one in declared):
        return "is at the host of no service that the registration file declares"
    return None


def _url(scope: ControlScope) -> str:
    """Return the address in its canonical spelling."""
    path = "/".join(quote(segment, safe="") for segment in scope.segments)
    return f"{scope.shown_origin}/{path}"


def _place(credential_id: str, subject_key: str, owner: str) -> bytes:
    """Return the associated data that a sealed credential is bound to."""
    return f"service credential/{credential_id}/{subject_key}/{owner}".encode()
