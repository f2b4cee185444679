"""Changes and resets passwords, and verifies e-mail addresses (conventions.md#account-security)."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from assay.accounts import model
from assay.accounts.api_keys import ApiKeys
from assay.accounts.mail import MailOutbox, reset_mail, verification_mail
from assay.accounts.model import EndedCredentials, MailDisabled, Operator, TokenInvalid
from assay.accounts.password_proof import Argon2PasswordHasher, PasswordProof, RequestQuota
from assay.accounts.ports import (
    AskedBy,
    Client,
    Code,
    CodeKind,
    CredentialStore,
    HashClient,
    Hashes,
    MailMessage,
)
from assay.accounts.second_factor import (
    RESET_TTL,
    VERIFY_TTL,
    code_hash,
    new_token,
    reset_bounds,
    verification_bounds,
)
from assay.audit.service import TERMINAL, Action, Actor, AuditEntry, new_entry
from assay.common.clock import Clock


@dataclass(frozen=True, slots=True)
class PasswordDependencies:
    """What passwords are stored and sent with."""

    store: CredentialStore
    hasher: Argon2PasswordHasher
    proof: PasswordProof
    keys: ApiKeys
    outbox: MailOutbox | None
    """None if this service sends no mail."""
    account_url: str
    """The page that accepts the tokens of links, which are in its fragment."""
    clock: Clock


class Passwords:
    """Changes passwords for callers who know the present one, or hold the owner's token."""

    def __init__(self, dependencies: PasswordDependencies) -> None:
        self._dependencies = dependencies
        self._requests = RequestQuota(dependencies.clock)
        self._guesses = RequestQuota(dependencies.clock)

    @property
    def sends_mail(self) -> bool:
        """Return whether this service sends mail."""
        return self._dependencies.outbox is not None

    async def change(  # noqa: PLR0913 - who, and both passwords
        self,
        operator: Operator,
        session_id: str,
        present: str,
        new: str,
        client: Client,
        actor: Actor,
        *,
        revoke_keys: bool = False,
    ) -> EndedCredentials:
        """Set a new password; every session but this one ends.

        Raises `InvalidRequest`, `PasswordWrong`, and `TooMany` during a delay.
        """
        model.password(new)
        await self._dependencies.proof.confirm(operator, present, client)
        hashed = await self._dependencies.hasher.hash(new, _owner(operator, client))
        ended = await self._dependencies.store.set_password(
            operator.id,
            hashed,
            self._dependencies.clock.now(),
            self._note(actor, "password.changed", operator.id),
            keep_session=session_id,
            revoke_keys=revoke_keys,
        )
        self._forget(operator)
        return ended

    async def set_for_admin(
        self, operator: Operator, new: str, *, revoke_keys: bool = False, actor: Actor = TERMINAL
    ) -> EndedCredentials:
        """Set a password without the present one; every session ends. Raises `InvalidRequest`."""
        hashed = await self._dependencies.hasher.hash(model.password(new))
        entry = self._note(actor, "password.changed", operator.id)
        now = self._dependencies.clock.now()
        ended = await self._dependencies.store.set_password(
            operator.id, hashed, now, entry, revoke_keys=revoke_keys
        )
        self._forget(operator)
        return ended

    def request_reset(self, email: str, client: Client) -> None:
        """Send a reset link to the account of this address, if it exists and is verified.

        Requests beyond `code_bounds` are dropped. The answer and its time are the same in every
        case. Raises `MailDisabled`, and `TooMany` for a network that asks too often.
        """
        outbox = self._outbox()
        self._requests.require(client.network)
        email = email.strip()[: model.EMAIL_CHARS_MAX]
        actor = Actor("anonymous", None, client.address, client.request_id)
        origin = self._dependencies.proof.origins.of(client)

        async def job() -> MailMessage | None:
            record = await self._dependencies.store.find_login(email, origin)
            operator = record.operator if record else None
            if operator is None or operator.is_suspended or operator.email_verified_at is None:
                return None
            is_known = record is not None and record.is_known_origin
            asked_by = AskedBy.OWNER if is_known else AskedBy.STRANGER
            link = await self._reset_link(operator, actor, asked_by, origin)
            return link and reset_mail(operator.email, *link)

        outbox.add(job, f"network {client.network}")

    async def reset_link_for_admin(
        self, operator: Operator, actor: Actor = TERMINAL
    ) -> tuple[str, datetime] | None:
        """Return a reset link and its end; None if there were too many recently."""
        return await self._reset_link(operator, actor, AskedBy.TERMINAL, ())

    async def reset(
        self, token: str, new: str, client: Client, *, revoke_keys: bool = False
    ) -> EndedCredentials:
        """Set a new password for the account of a reset token; every session of it ends.

        The second factor stays in force. Raises `InvalidRequest`, `TokenInvalid`, and `TooMany` for
        a network that guesses too often; a valid token is not a guess.
        """
        model.password(new)
        store, clock = self._dependencies.store, self._dependencies.clock
        hashed_token = code_hash(token)
        code = await store.find_code(hashed_token, CodeKind.RESET, clock.now())
        record = await store.login_of(code.operator_id) if code and code.operator_id else None
        if record is None or record.operator.is_suspended:
            raise self._not_good(client)
        operator = record.operator
        hashed = await self._dependencies.hasher.hash(new, _owner(operator, client))
        actor = Actor("operator", operator.id, client.address, client.request_id)
        entry = self._note(actor, "password.reset", operator.id)
        ended = await store.reset_password(
            operator.id, hashed_token, hashed, clock.now(), entry, revoke_keys=revoke_keys
        )
        if ended is None:
            raise self._not_good(client)
        # The holder of the owner's token is the owner: strangers' failures do not count.
        self._dependencies.proof.throttle.forgive(operator.email)
        await store.know_origin(
            operator.id, self._dependencies.proof.origins.of(client), clock.now()
        )
        self._forget(operator)
        return ended

    def request_verification(self, operator: Operator, client: Client) -> None:
        """Send a link that confirms the account's e-mail address. Raises `MailDisabled`.

        Requests beyond `code_bounds` are dropped.
        """
        origin = self._dependencies.proof.origins.of(client)

        async def job() -> MailMessage | None:
            token = new_token()
            code = replace(
                self._code(token, CodeKind.VERIFY, operator, VERIFY_TTL),
                asked_by=AskedBy.OWNER,
                origin=origin,
            )
            bounds = verification_bounds(code.created_at)
            if not await self._dependencies.store.issue_code(code, bounds, None):
                return None
            link = self._link("verify", token)
            return verification_mail(operator.email, link, code.expires_at)

        self._outbox().add(job, operator.id)

    async def verify_email(self, token: str, client: Client) -> None:
        """Confirm the address that a verification token was sent to. Raises like `reset`."""
        store, now = self._dependencies.store, self._dependencies.clock.now()
        hashed = code_hash(token)
        code = await store.find_code(hashed, CodeKind.VERIFY, now)
        if code is None or code.operator_id is None:
            raise self._not_good(client)
        actor = Actor("operator", code.operator_id, client.address, client.request_id)
        entry = self._note(actor, "email.verified", code.operator_id)
        if not await store.verify_email(code.operator_id, hashed, now, entry):
            raise self._not_good(client)

    async def _reset_link(
        self, operator: Operator, actor: Actor, asked_by: AskedBy, origin: Hashes
    ) -> tuple[str, datetime] | None:
        token = new_token()
        code = replace(
            self._code(token, CodeKind.RESET, operator, RESET_TTL),
            asked_by=asked_by,
            origin=origin,
        )
        entry = self._note(actor, "password.reset_link", operator.id)
        bounds = reset_bounds(asked_by, code.created_at)
        if not await self._dependencies.store.issue_code(code, bounds, entry):
            return None
        return self._link("reset", token), code.expires_at

    def _code(self, token: str, kind: CodeKind, operator: Operator, ttl: timedelta) -> Code:
        now, email = self._dependencies.clock.now(), operator.email
        mailbox = self._dependencies.proof.origins.of_mailbox(email)
        return Code(code_hash(token), kind, operator.id, email, now, now + ttl, mailbox=mailbox)

    def _link(self, name: str, token: str) -> str:
        """Return a link with the token in its fragment, which no browser sends or server logs."""
        return f"{self._dependencies.account_url}#{name}={token}"

    def _outbox(self) -> MailOutbox:
        if self._dependencies.outbox is None:
            raise MailDisabled("This service sends no mail: ask its operator.")
        return self._dependencies.outbox

    def _forget(self, operator: Operator) -> None:
        self._dependencies.keys.forget(operator.id)

    def _note(self, actor: Actor, action: Action, operator_id: str) -> AuditEntry:
        return new_entry(self._dependencies.clock, actor, action, operator_id)

    def _not_good(self, client: Client) -> TokenInvalid:
        """Return the refusal of a token. Raises `TooMany` for a network that guesses too often."""
        self._guesses.require(client.network)
        return TokenInvalid("The link is not good any more, or never was: ask for a new one.")


def _owner(operator: Operator, client: Client) -> HashClient:
    """Return the client as one that has proven to be the account's owner."""
    return HashClient(operator.id, is_known=True, network=client.around)
