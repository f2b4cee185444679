"""What sessions, single-use codes and second factors need from outside."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal, Protocol, TypeAlias

from assay.accounts.clients import Hashes
from assay.accounts.model import DashboardSession, EndedCredentials, Operator
from assay.audit.service import AuditEntry


class CodeKind(StrEnum):
    """What a single-use code is good for."""

    RESET = "reset"
    """A new password for its account."""
    VERIFY = "verify"
    """Confirms its account's e-mail address."""
    INVITE = "invite"
    """An account where sign-up is by invitation."""


class AskedBy(StrEnum):
    """Who asked for a code: each is bounded apart from the others."""

    TERMINAL = "terminal"
    """The service's owner."""
    OWNER = "owner"
    """Somebody in a network from which the account's owner has logged in."""
    STRANGER = "stranger"
    """Anybody else."""


@dataclass(frozen=True, slots=True)
class Code:
    """A single-use code; the code itself is never stored, only its SHA-256 (64 hex digits)."""

    code_hash: str
    kind: CodeKind
    operator_id: str | None
    """Whose it is; None: an invitation's."""
    email: str | None
    """The only address it is good for; None: any."""
    created_at: datetime
    expires_at: datetime
    asked_by: AskedBy = AskedBy.TERMINAL
    origin: Hashes = ()
    """Keyed hashes of the network that asked for it; (): no network did."""
    mailbox: Hashes = ()
    """Keyed hashes of the mailbox it is sent to, whatever tag its address has."""


Alike: TypeAlias = Literal["operator_id", "asked_by", "origin", "mailbox"]


@dataclass(frozen=True, slots=True)
class CodeBound:
    """At most so many codes of a kind since a moment that are alike in all of `alike`."""

    at_most: int
    since: datetime
    alike: tuple[Alike, ...]


@dataclass(frozen=True, slots=True)
class LoginRecord:
    """An account with what proves its owner."""

    operator: Operator
    password_hash: str
    sealed_totp: bytes | None
    """The sealed TOTP secret, confirmed or not."""
    totp_step: int | None
    """The time step of the last code that was taken; codes up to it are spent."""
    is_known_origin: bool
    """Whether a log-in has succeeded from this network before."""


class SessionStore(Protocol):
    """Dashboard sessions: a row each, gone when it ends."""

    async def begin(
        self,
        session: DashboardSession,
        password_hash: str,
        origin: Hashes,
        limit: int,
        note: AuditEntry | None,
    ) -> bool:
        """Store a session and that its origin is known; the oldest beyond `limit` end.

        False, and nothing stored, when the account's password is not that of the hash any more.
        """
        ...

    async def owner(self, operator_id: str, session_id: str, now: datetime) -> Operator | None:
        """The account of a session that has not ended."""
        ...

    async def list(self, operator_id: str, now: datetime) -> Sequence[DashboardSession]:
        """The operator's sessions that have not ended, newest first."""
        ...

    async def end(self, operator_id: str, session_id: str, note: AuditEntry) -> bool:
        """End a session; False when this operator has none of this id."""
        ...

    async def end_all(self, operator_id: str, keep: str | None, note: AuditEntry) -> int:
        """End the operator's sessions but `keep`; how many there were."""
        ...

    async def touch(self, last_used: Mapping[str, datetime]) -> None:
        """Write down when sessions (by id) were last used; never moves a time back."""
        ...

    async def purge(self, now: datetime) -> None:
        """Remove expired sessions and codes, a bounded number; codes are kept for a day at least.

        How many were issued of late is counted by rows.
        """
        ...


class CredentialStore(Protocol):
    """Passwords, second factors and codes of accounts. Deleted accounts are not found."""

    async def find_login(self, email: str, origin: Hashes) -> LoginRecord | None:
        """The account with this e-mail (compared by lower case)."""
        ...

    async def login_of(self, operator_id: str) -> LoginRecord | None:
        """The account of this id; `is_known_origin` is True."""
        ...

    async def set_password(
        self, operator_id: str, password_hash: str, at: datetime, note: AuditEntry, *,
        keep_session: str | None = None, revoke_keys: bool = False,
    ) -> EndedCredentials:  # fmt: skip
        """Change the password; ends every session but one, and spends reset codes.

        Raises `OperatorNotFound`.
        """
        ...

    async def reset_password(
        self, operator_id: str, code_hash: str, password_hash: str, at: datetime,
        note: AuditEntry, *, revoke_keys: bool = False,
    ) -> EndedCredentials | None:  # fmt: skip
        """Spend a reset code and change its account's password; None when it is not good.

        Of two at once with one code, one succeeds.
        """
        ...

    async def know_origin(self, operator_id: str, origin: Hashes, at: datetime) -> None:
        """Remember a network of the owner's."""
        ...

    async def issue_code(
        self, code: Code, bounds: Sequence[CodeBound], note: AuditEntry | None
    ) -> bool:
        """Store a code. A verification spends earlier ones of its account, a reset does not.

        False, and nothing stored, when one of the bounds is reached: also by several at once.
        """
        ...

    async def find_code(self, code_hash: str, kind: CodeKind, now: datetime) -> Code | None:
        """A code that is neither spent nor expired."""
        ...

    async def verify_email(
        self, operator_id: str, code_hash: str, at: datetime, note: AuditEntry
    ) -> bool:
        """Spend a verification code; its account's address is verified if it is still the same."""
        ...

    async def begin_totp(self, operator_id: str, sealed: bytes) -> bool:
        """Store a secret that is yet to be confirmed; False when one is in force."""
        ...

    async def confirm_totp(
        self, operator_id: str, sealed: bytes, step: int, recovery: Sequence[str], at: datetime,
        note: AuditEntry,
    ) -> bool:  # fmt: skip
        """Put the stored secret in force, with hashed recovery codes.

        False when one is, or when the stored one is not `sealed` any more.
        """
        ...

    async def take_totp_step(self, operator_id: str, step: int) -> bool:
        """Spend the codes up to a time step; False when that step is spent already."""
        ...

    async def take_recovery_code(self, operator_id: str, code_hash: str, note: AuditEntry) -> bool:
        """Spend a recovery code; False when it is not there."""
        ...

    async def set_recovery_codes(
        self, operator_id: str, recovery: Sequence[str], note: AuditEntry
    ) -> None:
        """Replace every recovery code."""
        ...

    async def recovery_codes_left(self, operator_id: str) -> int:
        """How many recovery codes are unspent."""
        ...

    async def end_totp(self, operator_id: str, note: AuditEntry) -> bool:
        """Remove second factor and recovery codes; False when there is none in force."""
        ...

    async def reseal_totp(
        self, operator_id: str, old: bytes, sealed: bytes, note: AuditEntry
    ) -> None:
        """Replace the sealed secret, if it is still the old one."""
        ...


class SecondFactor(Protocol):
    """Time-based one-time codes (RFC 6238)."""

    def new_secret(self) -> bytes:
        """A secret of 160 bits."""
        ...

    def uri(self, secret: bytes, email: str) -> str:
        """The `otpauth://` URI an authenticator application takes."""
        ...

    def step_of(self, secret: bytes, code: str, now: datetime) -> int | None:
        """The time step whose code this is, of the present one and its neighbours; or None."""
        ...


class AccountSecrets(Protocol):
    """Secrets at rest, sealed for their place."""

    def seal(self, data: bytes, associated: bytes) -> bytes:
        """The sealed form."""
        ...

    def open(self, sealed: bytes, associated: bytes) -> bytes:
        """The data; raises `ValueError`."""
        ...

    def is_current(self, sealed: bytes) -> bool:
        """Whether the newest key sealed it."""
        ...


@dataclass(frozen=True, slots=True)
class MailMessage:
    """A mail in plain text."""

    to: str
    subject: str
    text: str


class Mailer(Protocol):
    """Sends mail."""

    async def send(self, message: MailMessage) -> None:
        """Hand the mail to the server. Raises `Unavailable`."""
        ...
