"""Operator accounts: who may open one, and how they are created, renamed and changed.

Source: interface.md#dashboard; conventions.md#accounts, #bounds-on-strangers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final, Literal, TypeAlias

from assay.accounts import model
from assay.accounts.api_keys import ApiKeys
from assay.accounts.model import (
    AccountChange,
    InviteInvalid,
    Operator,
    OperatorNotFound,
    OwnAccount,
    Plan,
    Role,
    SignUpClosed,
)
from assay.accounts.password_proof import Argon2PasswordHasher
from assay.accounts.ports import (
    TERMINAL_CLIENT,
    Client,
    Code,
    CodeKind,
    CredentialStore,
    HashClient,
    Origins,
    SignUp,
)
from assay.accounts.second_factor import INVITE_TTL, code_hash, new_token
from assay.accounts.store_operators import SqlOperatorStore
from assay.audit.service import TERMINAL, Actor, AuditEntry, new_entry
from assay.common.clock import Clock
from assay.common.ids import new_id

FIRST_KEY_LABEL = "first key"

ANONYMOUS = Actor("anonymous")


class Operators:
    """The accounts of a service."""

    def __init__(
        self,
        store: SqlOperatorStore,
        keys: ApiKeys,
        hasher: Argon2PasswordHasher,
        clock: Clock,
        fee_rate: Decimal = Decimal("0.00"),
    ) -> None:
        self._store = store
        self._keys = keys
        self._hasher = hasher
        self._clock = clock
        self._fee_rate = fee_rate

    async def register(
        self,
        email: str,
        password: str,
        name: str,
        actor: Actor = ANONYMOUS,
        *,
        sign_up: SignUp | None = None,
        client: HashClient = TERMINAL_CLIENT,
    ) -> tuple[Operator, str]:
        """Create a Free account and its first API key; return the key in full, once.

        Raises `InvalidRequest`, `EmailTaken`, and with `sign_up` like `SqlOperatorStore.add`.
        """
        operator = self._new(email, name, Role.OPERATOR, Plan.FREE)
        password_hash = await self._hasher.hash(model.password(password), client)
        return await self._add(operator, password_hash, actor, sign_up)

    async def create_for_admin(
        self, email: str, password: str, name: str, role: Role, plan: Plan
    ) -> tuple[Operator, str]:
        """Create an account of any role and plan, from the terminal. Raises like `register`."""
        operator = self._new(email, name, role, plan)
        password_hash = await self._hasher.hash(model.password(password))
        return await self._add(operator, password_hash, TERMINAL, None)

    def _new(self, email: str, name: str, role: Role, plan: Plan) -> Operator:
        email, name = model.email_address(email), model.short_text("name", name)
        now = self._clock.now()
        return Operator(new_id(), email, name, role, plan, self._fee_rate, now, now)

    async def _add(
        self, operator: Operator, password_hash: str, actor: Actor, sign_up: SignUp | None
    ) -> tuple[Operator, str]:
        entry = new_entry(
            *(self._clock, actor, "account.registered", operator.id),
            role=operator.role.value,
            plan=operator.plan.value,
        )
        await self._store.add(operator, password_hash, entry, sign_up)
        _, key = await self._keys.issue(operator.id, FIRST_KEY_LABEL, actor)
        return operator, key

    async def rename(self, operator_id: str, name: str, actor: Actor = TERMINAL) -> Operator:
        """Change the name. Raises `InvalidRequest`."""
        name = model.short_text("name", name)
        entry = new_entry(self._clock, actor, "account.renamed", operator_id)
        operator = await self._store.rename(operator_id, name, self._clock.now(), entry)
        self._keys.forget(operator_id)
        return operator

    async def record(self, entry: AuditEntry) -> None:
        """Add an entry to the audit trail that changes nothing else."""
        await self._store.record(entry)

    async def list_for_admin(self) -> Sequence[Operator]:
        """Return every account, oldest first."""
        return await self._store.list_for_admin()

    async def find_for_admin(self, who: str) -> Operator:
        """Return the account of an e-mail address or id. Raises `OperatorNotFound`."""
        operator = await self._store.find(await self._id_of(who))
        if operator is None:
            raise OperatorNotFound("There is no such account.")
        return operator

    async def set_plan_for_admin(self, who: str, plan: Plan) -> Operator:
        """Change the plan of an account named by id or e-mail. Raises `OperatorNotFound`."""
        return await self.change_for_admin(who, AccountChange(plan=plan))

    async def set_role_for_admin(self, who: str, role: Role) -> Operator:
        """Change the role of an account named by id or e-mail. Raises `OperatorNotFound`."""
        return await self.change_for_admin(who, AccountChange(role=role))

    async def suspend_for_admin(self, who: str, *, suspended: bool) -> Operator:
        """Suspend an account, named by id or e-mail, or restore it. Raises `OperatorNotFound`.

        Other processes notice within `api_keys.REMEMBERED_S` seconds; a log-in notices at once.
        """
        return await self.change_for_admin(who, AccountChange(suspended=suspended))

    async def change_for_admin(
        self, who: str, change: AccountChange, actor: Actor = TERMINAL
    ) -> Operator:
        """Change an account, named by id or e-mail; it counts at once in this process.

        Raises `OperatorNotFound`, `OwnAccount` for an admin that would lock itself out, and
        `LastAdmin`.
        """
        operator_id = await self._id_of(who)
        if operator_id == actor.operator_id and (change.suspended or change.role is Role.OPERATOR):
            raise OwnAccount("You cannot suspend your own account or take its role from it.")
        entry = new_entry(self._clock, actor, "account.changed", operator_id)
        operator = await self._store.change_for_admin(operator_id, change, self._clock.now(), entry)
        self._keys.forget(operator_id)
        return operator

    async def _id_of(self, who: str) -> str:
        if "@" not in who:
            return who
        found = await self._store.find_by_email(who.strip())
        if found is None:
            raise OperatorNotFound("There is no account with this e-mail address.")
        return found[0].id


SignUpPolicy: TypeAlias = Literal["open", "invite", "closed"]

QUOTA_WINDOW: Final = timedelta(days=1)
"""In any such period, one network opens at most as many accounts as its quota."""


@dataclass(frozen=True, slots=True)
class SignUpRules:
    """What the operator of the service has configured."""

    policy: SignUpPolicy
    per_origin: int
    """Accounts of one address (IPv6: one /64) in a day."""
    per_network: int
    """Accounts of one network (IPv4: /24, IPv6: /48) in a day."""


class SignUps:
    """Opens accounts for callers who may have one."""

    def __init__(
        self,
        operators: Operators,
        store: CredentialStore,
        origins: Origins,
        rules: SignUpRules,
        clock: Clock,
    ) -> None:
        self._operators = operators
        self._store = store
        self._origins = origins
        self._rules = rules
        self._clock = clock

    async def register(
        self, new: tuple[str, str, str], invite: str | None, client: Client
    ) -> tuple[Operator, str]:
        """Create a Free account and its first API key; return the key in full, once.

        Raises `SignUpClosed`, `InviteInvalid`, `TooMany` beyond the quota, and like
        `Operators.register`.
        """
        now = self._clock.now()
        sign_up = SignUp(
            origin=self._origins.of(client),
            around=self._origins.around(client),
            since=now - QUOTA_WINDOW,
            per_origin=self._rules.per_origin,
            per_network=self._rules.per_network,
            invite_hash=await self._invitation(invite, now),
        )
        actor = Actor("anonymous", None, client.address, client.request_id)
        caller = HashClient(client.network, network=client.around)
        return await self._operators.register(*new, actor, sign_up=sign_up, client=caller)

    async def invite_for_admin(
        self, email: str | None, actor: Actor = TERMINAL
    ) -> tuple[str, datetime]:
        """Return an invitation, valid once within a week, and its end. Raises `InvalidRequest`."""
        address = None if email is None else model.email_address(email)
        token, now = new_token(), self._clock.now()
        code = Code(code_hash(token), CodeKind.INVITE, None, address, now, now + INVITE_TTL)
        entry = new_entry(self._clock, actor, "account.invited", "")
        await self._store.issue_code(code, (), entry)
        return token, code.expires_at

    async def _invitation(self, invite: str | None, now: datetime) -> str | None:
        """Return the hash of the invitation; it is checked before a password is hashed for it."""
        policy = self._rules.policy
        if policy == "open":
            return None
        if policy == "closed" or invite is None:
            raise SignUpClosed("Nobody can register here without being invited.")
        hashed = code_hash(invite)
        if await self._store.find_code(hashed, CodeKind.INVITE, now) is None:
            raise InviteInvalid("The invitation is not good any more, or never was.")
        return hashed
