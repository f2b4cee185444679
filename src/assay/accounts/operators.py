"""Operator accounts: register, log in, know again (spec 4.6, 5.2; decisions, section 12)."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from assay.accounts import fields
from assay.accounts.api_keys import ApiKeys
from assay.accounts.audit import TERMINAL, Action, Actor, note
from assay.accounts.login_notes import NOTED_EACH, LoginNotes
from assay.accounts.model import (
    Change,
    InvalidCredentials,
    Operator,
    OperatorNotFound,
    OwnAccount,
    Plan,
    Role,
    require_active,
)
from assay.accounts.ports import LoginTokens, OperatorStore, PasswordHasher
from assay.accounts.throttle import LoginThrottle
from assay.kit.clock import Clock
from assay.kit.ids import new_id

FIRST_KEY_LABEL = "first key"

TOKEN_CHARS_MAX = 2048
"""Longer ones are not ours; no signature is computed for them."""

ANONYMOUS = Actor("anonymous")


class Operators:
    """The accounts of a service."""

    def __init__(  # noqa: PLR0913, PLR0917 - its ports, each by its own name
        self,
        store: OperatorStore,
        keys: ApiKeys,
        hasher: PasswordHasher,
        tokens: LoginTokens,
        clock: Clock,
        throttle: LoginThrottle,
        fee_rate: Decimal = Decimal("0.00"),
    ) -> None:
        self._store = store
        self._keys = keys
        self._hasher = hasher
        self._tokens = tokens
        self._clock = clock
        self._throttle = throttle
        self._fee_rate = fee_rate
        self._login_notes = LoginNotes(clock)

    async def register(
        self, email: str, password: str, name: str, actor: Actor = ANONYMOUS
    ) -> tuple[Operator, str]:
        """A new Free account and its first API key, in full, this once.

        Raises `InvalidRequest` or `EmailTaken`.
        """
        return await self._create(email, password, name, (Role.OPERATOR, Plan.FREE), actor)

    async def create_for_admin(
        self, email: str, password: str, name: str, role: Role, plan: Plan
    ) -> tuple[Operator, str]:
        """A new account of any role and plan, from the terminal. Raises as `register`."""
        return await self._create(email, password, name, (role, plan), TERMINAL)

    async def _create(
        self, email: str, password: str, name: str, kind: tuple[Role, Plan], actor: Actor
    ) -> tuple[Operator, str]:
        email, name = fields.email_address(email), fields.short_text("name", name)
        password_hash = await self._hasher.hash(fields.password(password))
        now, (role, plan) = self._clock.now(), kind
        operator = Operator(new_id(), email, name, role, plan, self._fee_rate, now, now)
        told = note(
            self._clock, actor, "account.registered", operator.id, role=role.value, plan=plan.value
        )
        await self._store.add(operator, password_hash, told)
        _, key = await self._keys.issue(operator.id, FIRST_KEY_LABEL, actor)
        return operator, key

    async def login(
        self, email: str, password: str, client_address: str, request_id: str = ""
    ) -> tuple[Operator, str]:
        """The account and a token of 12 hours.

        Raises `InvalidCredentials`, alike in words and time for an unknown e-mail address and a
        wrong password, `TooMany` while a delay runs, and `AccountSuspended`.
        """
        email = email.strip()[: fields.EMAIL_CHARS_MAX]
        self._throttle.check(email, client_address)
        found = await self._store.find_by_email(email)
        password_hash = found[1] if found else None
        holds = await self._hasher.verify(password_hash, password[: fields.PASSWORD_CHARS.stop])
        if found is None or not holds:
            self._throttle.failed(email, client_address)
            actor = Actor("anonymous", None, client_address, request_id)
            await self._note_failure(found[0].id if found else None, actor)
            raise InvalidCredentials("The e-mail address or the password is wrong.")
        self._throttle.succeeded(email, client_address)
        actor = Actor("operator", found[0].id, client_address, request_id)
        return await self._let_in(found[0], actor)

    async def _note_failure(self, operator_id: str | None, actor: Actor) -> None:
        """An unknown address leaves a note too: without one, it would be told by the time."""
        why = "wrong password" if operator_id else "unknown account"
        await self._note_login(actor, "login.failed", operator_id or "", reason=why)

    async def _note_login(
        self, actor: Actor, action: Action, operator_id: str, **details: str
    ) -> None:
        kind = f"{action} {details.get('reason', '')}"
        attempts = self._login_notes.count(kind, operator_id, actor.client)
        if attempts is not None:
            told = note(self._clock, actor, action, operator_id, **details)
            if attempts > NOTED_EACH:
                told = replace(told, details={**told.details, "attempts": attempts})
            await self._store.note(told)

    async def _let_in(self, operator: Operator, actor: Actor) -> tuple[Operator, str]:
        if operator.is_suspended:
            await self._note_login(actor, "login.failed", operator.id, reason="suspended")
        require_active(operator)
        await self._note_login(actor, "login.succeeded", operator.id)
        return operator, self._tokens.issue(operator.id)

    def owner_of(self, token: str) -> str | None:
        """Whose dashboard token this is by its signature alone, or None. No I/O.

        It may be revoked, its account gone: it says whom a request is counted for, no more.
        """
        return self._tokens.read(token) if len(token) <= TOKEN_CHARS_MAX else None

    async def authenticate(self, token: str) -> Operator:
        """Whose dashboard token this is, as the store knows the account now.

        Raises `InvalidCredentials` and `AccountSuspended`.
        """
        operator_id = self._tokens.read(token)
        operator = await self._store.find(operator_id) if operator_id else None
        if operator is None:
            raise InvalidCredentials("A valid dashboard token is needed: log in.")
        return require_active(operator)

    async def rename(self, operator_id: str, name: str, actor: Actor = TERMINAL) -> Operator:
        """Change the name. Raises `InvalidRequest`."""
        name = fields.short_text("name", name)
        told = note(self._clock, actor, "account.renamed", operator_id)
        operator = await self._store.rename(operator_id, name, self._clock.now(), told)
        self._keys.forget(operator_id)
        return operator

    async def list_for_admin(self) -> Sequence[Operator]:
        """Every account, oldest first."""
        return await self._store.list_for_admin()

    async def find_for_admin(self, who: str) -> Operator:
        """The account of an e-mail address or id. Raises `OperatorNotFound`."""
        operator = await self._store.find(await self._id_of(who))
        if operator is None:
            raise OperatorNotFound("There is no such account.")
        return operator

    async def set_plan_for_admin(self, who: str, plan: Plan) -> Operator:
        """Change the plan of an account named by id or e-mail. Raises `OperatorNotFound`."""
        return await self.change_for_admin(who, Change(plan=plan))

    async def set_role_for_admin(self, who: str, role: Role) -> Operator:
        """Change the role of an account named by id or e-mail. Raises `OperatorNotFound`."""
        return await self.change_for_admin(who, Change(role=role))

    async def suspend_for_admin(self, who: str, *, suspended: bool) -> Operator:
        """Suspend an account named by id or e-mail, or restore it. Raises `OperatorNotFound`.

        Other processes notice within `api_keys.REMEMBERED_S` seconds, a log-in at once.
        """
        return await self.change_for_admin(who, Change(suspended=suspended))

    async def change_for_admin(self, who: str, change: Change, actor: Actor = TERMINAL) -> Operator:
        """Change an account named by id or e-mail; it counts at once in this process.

        Raises `OperatorNotFound`, and `OwnAccount` for an admin that would lock itself out.
        """
        operator_id = await self._id_of(who)
        if operator_id == actor.operator_id and (change.suspended or change.role is Role.OPERATOR):
            raise OwnAccount("You cannot suspend your own account or take its role from it.")
        told = note(self._clock, actor, "account.changed", operator_id)
        operator = await self._store.change_for_admin(operator_id, change, self._clock.now(), told)
        self._keys.forget(operator_id)
        return operator

    async def _id_of(self, who: str) -> str:
        if "@" not in who:
            return who
        found = await self._store.find_by_email(who.strip())
        if found is None:
            raise OperatorNotFound("There is no account with this e-mail address.")
        return found[0].id
