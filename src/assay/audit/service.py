"""The trail of changes to accounts and credentials; only old failed log-ins are removed.

An entry is written in the transaction of the change it records, so that neither exists without the
other.
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
    "key.gate_policies_set",
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
    """The party that acts: an account and its address, or a user of the service's own terminal."""

    kind: ActorKind
    operator_id: str | None = None
    client: str = ""
    request_id: str = ""


TERMINAL: Final = Actor("terminal")


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """An entry of the trail. `details` contain no secrets."""

    id: str
    at: datetime
    actor: Actor
    action: Action
    operator_id: str
    """The account it concerns."""
    target: str
    """The object changed: the id of a key, an endpoint, a registration; else the account's own."""
    details: JsonObject


class AuditEntryNotFound(NotFound):
    """The trail has no entry with this id."""

    code = "note_not_found"


class AuditStore(Protocol):
    """Stores the trail. Entries are never changed, and only failed log-ins are ever removed."""

    async def page_for_admin(
        self, operator_id: str | None, before: str | None, limit: int, offset: int = 0
    ) -> Sequence[AuditEntry]:
        """Return entries, newest first: of one account or of all, older than the entry `before`.

        Raises `AuditEntryNotFound` if there is no entry with that id.
        """
        ...

    async def count_for_admin(self, operator_id: str | None) -> int:
        """Return the number of entries, of one account or of all."""
        ...


def new_entry(
    clock: Clock,
    actor: Actor,
    action: Action,
    operator_id: str,
    target: str | None = None,
    **details: str | bool | None,
) -> AuditEntry:
    """Return an entry for a change made now."""
    return AuditEntry(
        new_id(), clock.now(), actor, action, operator_id, target or operator_id, dict(details)
    )
