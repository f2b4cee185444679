"""External dependencies of accounts, sessions, single-use codes and second factors.

Where a request to an account comes from, and how that is remembered.

What accounts need from outside.

What sessions, single-use codes and second factors need from outside.
"""

import hashlib
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, Literal, Protocol, TypeAlias

from assay.accounts.model import EndedCredentials, Operator
from assay.audit.service import AuditEntry
from assay.common.addresses import caller_of, network_around
from assay.common.keyring import SecretRing

USER_AGENT_CHARS_MAX: Final = 200

Hashes: TypeAlias = tuple[str, ...]
"""One thing under every key of a ring: the first one is stored, all of them are looked for."""


@dataclass(frozen=True, slots=True)
class Client:
    """The sender of a request, as far as that can be seen."""

    address: str
    user_agent: str = ""
    request_id: str = ""

    @property
    def network(self) -> str:
        """The address, or the network of 64 bits of an IPv6 one."""
        return caller_of(self.address)

    @property
    def around(self) -> str:
        """The larger network around it (IPv4: /24, IPv6: /48)."""
        return network_around(self.address)

    @property
    def shown_user_agent(self) -> str:
        """What is kept of the `User-Agent`: cut short, without control characters."""
        plain = (c for c in self.user_agent if not unicodedata.category(c).startswith("C"))
        return "".join(plain)[:USER_AGENT_CHARS_MAX]


class Origins:
    """Keyed hashes of networks and mailboxes: equal for equal ones, meaningless without the key.

    Each is 32 hex digits.
    """

    def __init__(self, secrets: SecretRing) -> None:
        """What is stored under any of the secrets is found for as long as the ring holds it."""
        self._keys = [hashlib.sha256(b"assay.origin|" + one.encode()).digest() for one in secrets]

    def of(self, client: Client) -> Hashes:
        """Of a client's network."""
        return self._hashes(client.network)

    def around(self, client: Client) -> Hashes:
        """Of the larger network around it."""
        return self._hashes(f"around|{client.around}")

    def of_mailbox(self, email: str) -> Hashes:
        """Of an e-mail address: equal for all tags of one mailbox.

        `Local+tag@Domain` counts as `local@domain`. For counting only: mail is sent as written.
        """
        local, _, domain = email.lower().rpartition("@")
        return self._hashes(f"mailbox|{local.partition('+')[0] or local}@{domain.rstrip('.')}")

    def _hashes(self, text: str) -> Hashes:
        shown = text.encode("utf-8", "surrogatepass")
        return tuple(
            hashlib.blake2b(shown, key=key, digest_size=16).hexdigest() for key in self._keys
        )


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
