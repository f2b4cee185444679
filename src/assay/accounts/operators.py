"""Operator accounts: made, renamed, and changed by admins.

Source: interface.md#dashboard; conventions.md#accounts.
"""

from collections.abc import Sequence
from decimal import Decimal

from assay.accounts import fields
from assay.accounts.api_keys import ApiKeys
from assay.accounts.model import (
    AccountChange,
    Operator,
    OperatorNotFound,
    OwnAccount,
    Plan,
    Role,
)
from assay.accounts.ports import (
    TERMINAL_CLIENT,
    HashClient,
    OperatorStore,
    PasswordHasher,
    SignUp,
)
from assay.audit.service import TERMINAL, Actor, AuditEntry, note
from assay.common.clock import Clock
from assay.common.ids import new_id

FIRST_KEY_LABEL = "first key"

ANONYMOUS = Actor("anonymous")


class Operators:
    """The accounts of a service."""

    def __init__(
        self,
        store: OperatorStore,
        keys: ApiKeys,
        hasher: PasswordHasher,
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
        """A new Free account and its first API key, in full, this once.

        Raises `InvalidRequest`, `EmailTaken`, and with `sign_up` as `OperatorStore.add`.
        """
        operator = self._new(email, name, Role.OPERATOR, Plan.FREE)
        password_hash = await self._hasher.hash(fields.password(password), client)
        return await self._add(operator, password_hash, actor, sign_up)

    async def create_for_admin(
        self, email: str, password: str, name: str, role: Role, plan: Plan
    ) -> tuple[Operator, str]:
        """A new account of any role and plan, from the terminal. Raises as `register`."""
        operator = self._new(email, name, role, plan)
        password_hash = await self._hasher.hash(fields.password(password))
        return await self._add(operator, password_hash, TERMINAL, None)

    def _new(self, email: str, name: str, role: Role, plan: Plan) -> Operator:
        email, name = fields.email_address(email), fields.short_text("name", name)
        now = self._clock.now()
        return Operator(new_id(), email, name, role, plan, self._fee_rate, now, now)

    async def _add(
        self, operator: Operator, password_hash: str, actor: Actor, sign_up: SignUp | None
    ) -> tuple[Operator, str]:
        entry = note(
            *(self._clock, actor, "account.registered", operator.id),
            role=operator.role.value,
            plan=operator.plan.value,
        )
        await self._store.add(operator, password_hash, entry, sign_up)
        _, key = await self._keys.issue(operator.id, FIRST_KEY_LABEL, actor)
        return operator, key

    async def rename(self, operator_id: str, name: str, actor: Actor = TERMINAL) -> Operator:
        """Change the name. Raises `InvalidRequest`."""
        name = fields.short_text("name", name)
        entry = note(self._clock, actor, "account.renamed", operator_id)
        operator = await self._store.rename(operator_id, name, self._clock.now(), entry)
        self._keys.forget(operator_id)
        return operator

    async def note(self, entry: AuditEntry) -> None:
        """Add to the audit trail what changes nothing else."""
        await self._store.note(entry)

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
        return await self.change_for_admin(who, AccountChange(plan=plan))

    async def set_role_for_admin(self, who: str, role: Role) -> Operator:
        """Change the role of an account named by id or e-mail. Raises `OperatorNotFound`."""
        return await self.change_for_admin(who, AccountChange(role=role))

    async def suspend_for_admin(self, who: str, *, suspended: bool) -> Operator:
        """Suspend an account named by id or e-mail, or restore it. Raises `OperatorNotFound`.

        Other processes notice within `api_keys.REMEMBERED_S` seconds, a log-in at once.
        """
        return await self.change_for_admin(who, AccountChange(suspended=suspended))

    async def change_for_admin(
        self, who: str, change: AccountChange, actor: Actor = TERMINAL
    ) -> Operator:
        """Change an account named by id or e-mail; it counts at once in this process.

        Raises `OperatorNotFound`, `OwnAccount` for an admin that would lock itself out, and
        `LastAdmin`.
        """
        operator_id = await self._id_of(who)
        if operator_id == actor.operator_id and (change.suspended or change.role is Role.OPERATOR):
            raise OwnAccount("You cannot suspend your own account or take its role from it.")
        entry = note(self._clock, actor, "account.changed", operator_id)
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
