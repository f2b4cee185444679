"""What accounts, sessions, single-use codes and second factors need from outside.

Also describes where a request comes from, and how that is remembered.
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
"""One value under every key of a ring: the first one is stored, all of them are searched for."""


@dataclass(frozen=True, slots=True)
class Client:
    """The sender of a request, as far as it is known."""

    address: str
    user_agent: str = ""
    request_id: str = ""

    @property
    def network(self) -> str:
        """Return the address, or the network of 64 bits of an IPv6 one."""
        return caller_of(self.address)

    @property
    def around(self) -> str:
        """Return the larger network around it (IPv4: /24, IPv6: /48)."""
        return network_around(self.address)

    @property
    def shown_user_agent(self) -> str:
        """Return the stored form of the `User-Agent`: short, without control characters."""
        plain = (c for c in self.user_agent if not unicodedata.category(c).startswith("C"))
        return "".join(plain)[:USER_AGENT_CHARS_MAX]


class Origins:
    """Keyed hashes of networks and mailboxes: equal for equal ones, meaningless without the key.

    Each has 32 hex digits.
    """

    def __init__(self, secrets: SecretRing) -> None:
        """Create it; values stored under a secret are found while the ring has that secret."""
        self._keys = [hashlib.sha256(b"assay.origin|" + one.encode()).digest() for one in secrets]

    def of(self, client: Client) -> Hashes:
        """Return the hashes of a client's network."""
        return self._hashes(client.network)

    def around(self, client: Client) -> Hashes:
        """Return the hashes of the larger network around it."""
        return self._hashes(f"around|{client.around}")

    def of_mailbox(self, email: str) -> Hashes:
        """Return the hashes of a mailbox: equal for all tags of one e-mail address.

        `Local+tag@Domain` counts as `local@domain`. Use it only for counting: mail is sent to the
        address as written.
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
    """Conditions that must hold in the transaction that stores a stranger's account."""

    origin: Hashes
    """Keyed hashes of the network that it comes from, 32 characters each."""
    around: Hashes
    """The same of the larger network around it, under the same keys."""
    since: datetime
    per_origin: int
    """Accounts that one origin may have created since then, this one included."""
    per_network: int
    """Accounts that all origins of the larger network may have created."""
    invite_hash: str | None = None
    """The invitation that this account spends; None if none is needed."""


@dataclass(frozen=True, slots=True)
class HashClient:
    """The caller that a password is hashed for; callers take turns."""

    caller: str
    """A network address or, for a known caller, the account."""
    is_known: bool = False
    """Whether it is the account's owner, as far as that is known before the check."""
    network: str | None = None
    """The larger network around it, whose callers share places; None: it is alone."""


TERMINAL_CLIENT: Final = HashClient("terminal", is_known=True)


class LoginTokens(Protocol):
    """Dashboard JWTs: they contain the account and its session, and nothing else.

    Source: conventions.md#accounts.
    """

    def issue(self, operator_id: str, session_id: str) -> str:
        """Return a signed token, valid for 12 hours."""
        ...

    def read(self, token: str) -> tuple[str, str] | None:
        """Return the operator id and session id of a valid token, or None."""
        ...


class CodeKind(StrEnum):
    """What a single-use code is for."""

    RESET = "reset"
    """A new password for its account."""
    VERIFY = "verify"
    """Confirms its account's e-mail address."""
    INVITE = "invite"
    """An account where sign-up is by invitation."""


class AskedBy(StrEnum):
    """Who asked for a code; each kind of asker has bounds of its own."""

    TERMINAL = "terminal"
    """The operator of the service."""
    OWNER = "owner"
    """Somebody in a network from which the account's owner has logged in."""
    STRANGER = "stranger"
    """Anybody else."""


@dataclass(frozen=True, slots=True)
class Code:
    """A single-use code; only its SHA-256 (64 hex digits) is stored."""

    code_hash: str
    kind: CodeKind
    operator_id: str | None
    """The account that it belongs to; None for an invitation."""
    email: str | None
    """The only address that it is valid for; None: any."""
    created_at: datetime
    expires_at: datetime
    asked_by: AskedBy = AskedBy.TERMINAL
    origin: Hashes = ()
    """Keyed hashes of the network that asked for it; empty if no network did."""
    mailbox: Hashes = ()
    """Keyed hashes of the mailbox that it is sent to, whatever tag the address has."""


Alike: TypeAlias = Literal["operator_id", "asked_by", "origin", "mailbox"]


@dataclass(frozen=True, slots=True)
class CodeBound:
    """Most codes of a kind since a moment that are alike in all of `alike`."""

    limit: int
    since: datetime
    alike: tuple[Alike, ...]


@dataclass(frozen=True, slots=True)
class LoginRecord:
    """An account with the data that proves its owner."""

    operator: Operator
    password_hash: str
    sealed_totp: bytes | None
    """The sealed TOTP secret, confirmed or not."""
    totp_step: int | None
    """The time step of the last accepted code; codes up to it are spent."""
    is_known_origin: bool
    """Whether a log-in has succeeded from this network before."""


class CredentialStore(Protocol):
    """Passwords, second factors and codes of accounts. It does not find deleted accounts."""

    async def find_login(self, email: str, origin: Hashes) -> LoginRecord | None:
        """Return the account with this e-mail (compared by lower case)."""
        ...

    async def login_of(self, operator_id: str) -> LoginRecord | None:
        """Return the account of this id; `is_known_origin` is True."""
        ...

    async def set_password(
        self, operator_id: str, password_hash: str, at: datetime, entry: AuditEntry, *,
        keep_session: str | None = None, revoke_keys: bool = False,
    ) -> EndedCredentials:  # fmt: skip
        """Change the password; end every session but one, and spend reset codes.

        Raises `OperatorNotFound`.
        """
        ...

    async def reset_password(
        self, operator_id: str, code_hash: str, password_hash: str, at: datetime,
        entry: AuditEntry, *, revoke_keys: bool = False,
    ) -> EndedCredentials | None:  # fmt: skip
        """Spend a reset code and change the password; return None if the code is invalid.

        Of two concurrent calls with one code, one succeeds.
        """
        ...

    async def know_origin(self, operator_id: str, origin: Hashes, at: datetime) -> None:
        """Remember a network of the owner's."""
        ...

    async def issue_code(
        self, code: Code, bounds: Sequence[CodeBound], entry: AuditEntry | None
    ) -> bool:
        """Store a code. A verification spends earlier ones of its account, a reset does not.

        Returns False and stores nothing if a bound is reached, also with concurrent calls.
        """
        ...

    async def find_code(self, code_hash: str, kind: CodeKind, now: datetime) -> Code | None:
        """Return a code that is neither spent nor expired."""
        ...

    async def verify_email(
        self, operator_id: str, code_hash: str, at: datetime, entry: AuditEntry
    ) -> bool:
        """Spend a verification code and mark its address verified; return whether it was.

        An address that has changed since is not verified.
        """
        ...

    async def begin_totp(self, operator_id: str, sealed: bytes) -> bool:
        """Store an unconfirmed secret; return False if one is in force."""
        ...

    async def confirm_totp(
        self, operator_id: str, sealed: bytes, step: int, recovery: Sequence[str], at: datetime,
        entry: AuditEntry,
    ) -> bool:  # fmt: skip
        """Put the stored secret in force, with hashed recovery codes.

        Returns False if one is in force, or if the stored one is not `sealed` any more.
        """
        ...

    async def take_totp_step(self, operator_id: str, step: int) -> bool:
        """Spend the codes up to a time step; return False if that step is spent already."""
        ...

    async def take_recovery_code(self, operator_id: str, code_hash: str, entry: AuditEntry) -> bool:
        """Spend a recovery code; return False if there is no such code."""
        ...

    async def set_recovery_codes(
        self, operator_id: str, recovery: Sequence[str], entry: AuditEntry
    ) -> None:
        """Replace every recovery code."""
        ...

    async def recovery_codes_left(self, operator_id: str) -> int:
        """Return how many recovery codes are unspent."""
        ...

    async def end_totp(self, operator_id: str, entry: AuditEntry) -> bool:
        """Remove second factor and recovery codes; return False if none is in force."""
        ...

    async def reseal_totp(
        self, operator_id: str, old: bytes, sealed: bytes, entry: AuditEntry
    ) -> None:
        """Replace the sealed secret if it is still the old one."""
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
        """Give the mail to the server. Raises `Unavailable`."""
        ...
