"""Who did what to accounts and their credentials: a trail that only old failed log-ins leave.

A note is written in the transaction of what it tells, so that neither is there without the other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, Protocol

from assay.common.clock import Clock
from assay.common.errors import NotFound
from assay.common.ids import new_id
from assay.common.json import JsonObject

ActorKind = Literal["operator", "admin", "terminal", "anonymous"]

Action = Literal[
    "account.registered",
    "account.changed",
    "account.renamed",
    "account.invited",
    "account.exported",
    "account.deleted",
    "login.succeeded",
    "login.failed",
    "session.ended",
    "sessions.ended",
    "password.changed",
    "password.reset",
    "password.reset_link",
    "email.verified",
    "totp.enabled",
    "totp.disabled",
    "totp.resealed",
    "recovery_codes.issued",
    "recovery_code.used",
    "key.issued",
    "key.revoked",
    "gas.credited",
    "endpoint.created",
    "endpoint.changed",
    "endpoint.deactivated",
    "endpoint.resealed",
    "payout.requested",
    "refund.requested",
    "transfer.recorded",
    "transfer.cancelled",
    "webhook.registered",
    "webhook.removed",
    "webhook.resealed",
]


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts: an account and from where, or whoever has the service's own terminal."""

    kind: ActorKind
    operator_id: str | None = None
    client: str = ""
    request_id: str = ""


TERMINAL: Final = Actor("terminal")


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One line of the trail. `details` hold no secrets."""

    id: str
    at: datetime
    actor: Actor
    action: Action
    operator_id: str
    """Whose account it concerns."""
    target: str
    """What of it: the id of a key, an endpoint, a registration; else the account's own."""
    details: JsonObject


class NoteNotFound(NotFound):
    """The trail has no note of this id."""

    code = "note_not_found"


class AuditStore(Protocol):
    """The trail. Nothing changes a note, and only a failed log-in is ever removed."""

    async def page_for_admin(
        self, operator_id: str | None, before: str | None, at_most: int, offset: int = 0
    ) -> Sequence[AuditEntry]:
        """Notes, newest first: of one account or of all, older than the note of that id.

        Raises `NoteNotFound` when there is none of that id.
        """
        ...

    async def count_for_admin(self, operator_id: str | None) -> int:
        """How many there are, of one account or of all."""
        ...


def note(
    clock: Clock,
    actor: Actor,
    action: Action,
    operator_id: str,
    target: str | None = None,
    **details: str | bool | None,
) -> AuditEntry:
    """A note of something done now."""
    return AuditEntry(
        new_id(), clock.now(), actor, action, operator_id, target or operator_id, dict(details)
    )
