"""Who may open an account: everybody, holders of an invitation, or nobody.

Source: conventions.md#bounds-on-strangers.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal, TypeAlias

from assay.accounts import fields
from assay.accounts.clients import Client, Origins
from assay.accounts.codes import INVITE_TTL, code_hash, new_token
from assay.accounts.credential_ports import Code, CodeKind, CredentialStore
from assay.accounts.model import InviteInvalid, Operator, SignUpClosed
from assay.accounts.operators import Operators
from assay.accounts.ports import HashClient, SignUp
from assay.audit.service import TERMINAL, Actor, note
from assay.common.clock import Clock

SignUpPolicy: TypeAlias = Literal["open", "invite", "closed"]

QUOTA_WINDOW: Final = timedelta(days=1)
"""In any such time one network opens no more accounts than its quota."""


@dataclass(frozen=True, slots=True)
class SignUpRules:
    """What the service's owner has decided."""

    policy: SignUpPolicy
    per_origin: int
    """Accounts of one address (IPv6: one /64) in a day."""
    per_network: int
    """Accounts of one network (IPv4: /24, IPv6: /48) in a day."""


class SignUps:
    """Opens accounts for those who may have one."""

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
        """A Free account of (e-mail, password, name), and its first API key, in full, this once.

        Raises `SignUpClosed`, `InviteInvalid`, `TooMany` beyond the quota, and as
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
        """An invitation, good once within a week, and until when. Raises `InvalidRequest`."""
        address = None if email is None else fields.email_address(email)
        token, now = new_token(), self._clock.now()
        code = Code(code_hash(token), CodeKind.INVITE, None, address, now, now + INVITE_TTL)
        entry = note(self._clock, actor, "account.invited", "")
        await self._store.issue_code(code, (), entry)
        return token, code.expires_at

    async def _invitation(self, invite: str | None, now: datetime) -> str | None:
        """The hash of the invitation to spend; looked at before a password is hashed for it."""
        policy = self._rules.policy
        if policy == "open":
            return None
        if policy == "closed" or invite is None:
            raise SignUpClosed("Nobody can register here without being invited.")
        hashed = code_hash(invite)
        if await self._store.find_code(hashed, CodeKind.INVITE, now) is None:
            raise InviteInvalid("The invitation is not good any more, or never was.")
        return hashed
