"""What accounts need from outside."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from assay.accounts.clients import Hashes
from assay.accounts.model import AccountChange, ApiKey, Operator
from assay.audit.service import AuditEntry


@dataclass(frozen=True, slots=True)
class SignUp:
    """What has to hold, in the same transaction, for a stranger's account to be stored."""

    origin: Hashes
    """Keyed hashes of the network it comes from, 32 characters each."""
    around: Hashes
    """The same of the larger network around that, under the same keys."""
    since: datetime
    per_origin: int
    """Accounts one origin may have made since then, this one included."""
    per_network: int
    """Accounts of all origins in the larger network."""
    invite_hash: str | None = None
    """The invitation this account spends; None: none is needed."""


class OperatorStore(Protocol):
    """Operator accounts and their password hashes."""

    async def add(
        self,
        operator: Operator,
        password_hash: str,
        note: AuditEntry | None = None,
        sign_up: SignUp | None = None,
    ) -> None:
        """Store a new account.

        Raises `EmailTaken` (compared by lower case), `InviteInvalid`, and `TooMany` beyond a quota
        of its networks; then nothing is stored and no invitation spent.
        """
        ...

    async def find(self, operator_id: str) -> Operator | None:
        """The account of this id."""
        ...

    async def find_by_email(self, email: str) -> tuple[Operator, str] | None:
        """The account with this e-mail (compared by lower case) and its password hash."""
        ...

    async def list_for_admin(self) -> Sequence[Operator]:
        """Every account, oldest first."""
        ...

    async def rename(
        self, operator_id: str, name: str, at: datetime, note: AuditEntry | None = None
    ) -> Operator:
        """Change the name, and note both in `note`'s details. Raises `OperatorNotFound`."""
        ...

    async def change_for_admin(
        self, operator_id: str, change: AccountChange, at: datetime, note: AuditEntry
    ) -> Operator:
        """Change the account, and note what was before and is after in `note`'s details.

        Raises `OperatorNotFound`, and `LastAdmin` where nobody would be left to undo it; the
        terminal may.
        """
        ...

    async def note(self, note: AuditEntry) -> None:
        """Add to the audit trail what changes nothing else."""
        ...


class ApiKeyStore(Protocol):
    """API key records, found by the SHA-256 (64 hex digits) of the full key."""

    async def add(
        self, key: ApiKey, key_hash: str, note: AuditEntry | None = None, limit: int | None = None
    ) -> bool:
        """Store a new key; False when the operator has `limit` that are not revoked.

        Of revoked ones as many are kept, the newest.
        """
        ...

    async def find_by_hash(self, key_hash: str) -> ApiKey | None:
        """The key of this hash, revoked or not."""
        ...

    async def recent_hashes(self, limit: int) -> Sequence[str]:
        """The hashes of the keys in force that were used last, newest first."""
        ...

    async def list(self, operator_id: str) -> Sequence[ApiKey]:
        """The operator's keys, newest first."""
        ...

    async def revoke(self, operator_id: str, key_id: str, note: AuditEntry | None = None) -> bool:
        """Revoke; False when this operator has no key of this id. Revoking twice is no error."""
        ...

    async def touch(self, last_used: Mapping[str, datetime]) -> None:
        """Write down when keys (by id) were last used; never moves a time back."""
        ...


class AllowanceStore(Protocol):
    """How many metered calls an operator has used in a month (`YYYY-MM`, UTC)."""

    async def used(self, operator_id: str, month: str) -> int:
        """The count so far."""
        ...

    async def add(self, counts: Mapping[tuple[str, str], int]) -> Mapping[tuple[str, str], int]:
        """Add to the counts of (operator id, month) in one transaction; returns the new totals."""
        ...


@dataclass(frozen=True, slots=True)
class HashClient:
    """Whom a password is hashed for: they take turns."""

    caller: str
    """A network address or, for a known caller, the account."""
    is_known: bool = False
    """Whether it is the account's owner, as far as that is known beforehand."""
    network: str | None = None
    """The larger network around it, whose callers make room together; None: it is alone."""


TERMINAL_CLIENT: Final = HashClient("terminal", is_known=True)


class PasswordHasher(Protocol):
    """Slow, salted hashes; never on the event loop's thread, few at a time, callers by turns.

    Raises `TooMany` for a caller that has too many waiting, `Unavailable` when too many wait.
    """

    async def hash(self, password: str, client: HashClient = TERMINAL_CLIENT) -> str:
        """A self-describing hash."""
        ...

    async def verify(
        self, password_hash: str | None, password: str, client: HashClient = TERMINAL_CLIENT
    ) -> bool:
        """Whether they belong together. None costs the same time and is False."""
        ...


class LoginTokens(Protocol):
    """Dashboard JWTs: they name the account and its session, nothing else.

    Source: conventions.md#accounts.
    """

    def issue(self, operator_id: str, session_id: str) -> str:
        """A signed token, 12 hours."""
        ...

    def read(self, token: str) -> tuple[str, str] | None:
        """The operator id and session id of a token that holds, or None."""
        ...
