"""Logging in and out; dashboard sessions, which end at once in every process.

Source: conventions.md#account-security.

The audit trail records the first log-ins of a day one by one, and then each doubling of their
number, because guessing must not fill it. Each entry says how many there were. What an
administrator does is always recorded.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from assay.accounts.model import (
    DashboardSession,
    InvalidCredentials,
    Operator,
    SessionNotFound,
    TotpInvalid,
    TotpRequired,
    require_active,
)
from assay.accounts.password_proof import PasswordAttempt, PasswordProof
from assay.accounts.ports import Client, LoginRecord, LoginTokens
from assay.accounts.second_factor import SecondFactors
from assay.accounts.store_credentials import SqlSessionStore
from assay.accounts.store_operators import SqlOperatorStore
from assay.audit.service import TERMINAL, Action, Actor, AuditEntry, new_entry
from assay.common.addresses import caller_of
from assay.common.cache import BoundedMap
from assay.common.clock import Clock
from assay.common.costs import DAY_S
from assay.common.errors import TooMany
from assay.common.ids import new_id

RECORDED_EACH: Final = 5
"""Log-ins of one kind, account and network that are recorded one by one in a day."""

RECORDED_OF_ACCOUNT: Final = 100
"""Log-ins of one kind and account, from all networks, after which only doublings of their sum are
recorded."""

REMEMBERED_MAX: Final = 100_000


class LoginNotes:
    """Counts log-ins by kind, account and network, for a day each."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._counts: BoundedMap[tuple[str, str, str], tuple[int, int]] = BoundedMap(REMEMBERED_MAX)

    def count(self, kind: str, operator_id: str, client_address: str) -> int | None:
        """Count one log-in; return today's number if it is to be recorded, else None."""
        network = caller_of(client_address)
        number = self._next((kind, operator_id, network))
        of_account = self._next((kind, operator_id, ""))
        is_due = number <= RECORDED_EACH or _has_doubled(number)
        if is_due and (of_account <= RECORDED_OF_ACCOUNT or _has_doubled(of_account)):
            return number
        return of_account if _has_doubled(of_account) else None

    def _next(self, key: tuple[str, str, str]) -> int:
        day = int(self._clock.monotonic_s() // DAY_S)
        known = self._counts.get(key)
        number = 1 if known is None or known[0] != day else known[1] + 1
        self._counts.put(key, (day, number))
        return number


def _has_doubled(number: int) -> bool:
    return number & (number - 1) == 0


LOGIN_TTL: Final = timedelta(hours=12)
"""Lifetime of a session and of its token. Source: conventions.md#accounts."""

SESSIONS_MAX: Final = 100
"""Most sessions of one account; a log-in beyond them ends the oldest."""

TOKEN_CHARS_MAX: Final = 2048
"""Longest token: longer ones are not ours, and their signature is not checked."""

ENDED_REMEMBERED_MAX: Final = 100_000
"""Ended sessions that are known without asking the store; it is asked again about older ones."""

SUSPENDED_REMEMBERED_S: Final = 5.0
"""Seconds for which the session of a suspended account is refused without asking. It is valid again
once the account is."""

PURGE_EVERY_S: Final = 600.0


class Logins:
    """Begins, recognises and ends dashboard sessions.

    Every request asks the store for its session, so a session that any process ended is refused
    from then on. Once a look-up has found that, its token counts as a guess.
    """

    def __init__(
        self,
        sessions: SqlSessionStore,
        operators: SqlOperatorStore,
        proof: PasswordProof,
        factors: SecondFactors,
        tokens: LoginTokens,
        clock: Clock,
    ) -> None:
        self._sessions = sessions
        self._operators = operators
        self._proof = proof
        self._factors = factors
        self._tokens = tokens
        self._clock = clock
        self._used: dict[str, datetime] = {}
        self._ended: BoundedMap[str, bool] = BoundedMap(ENDED_REMEMBERED_MAX)
        self._suspended: BoundedMap[str, float] = BoundedMap(ENDED_REMEMBERED_MAX)
        self._notes = LoginNotes(clock)
        self._purge_at_s = clock.monotonic_s()

    async def login(
        self, email: str, password: str, code: str | None, client: Client
    ) -> tuple[Operator, str]:
        """Log in; return the account and a token that is valid for 12 hours.

        Raises `InvalidCredentials`, with equal words and time for an unknown e-mail address and a
        wrong password, `TotpRequired`, `TotpInvalid`, `TooMany` while a delay runs, and
        `AccountSuspended`.
        """
        proof = await self._proof.check(email, password, client)
        record = proof.record
        if record is None or not proof.holds:
            await self._note_failure(record, client)
            raise InvalidCredentials("The e-mail address or the password is wrong.")
        actor = Actor("operator", record.operator.id, client.address, client.request_id)
        try:
            await self._require_second_factor(proof, record, code, actor)
        except (TotpRequired, TooMany):
            self._proof.throttle.give_back(proof.attempt)
            raise
        self._proof.throttle.succeeded(proof.attempt)
        return await self._begin(record, client, actor)

    async def authenticate(self, token: str) -> tuple[Operator, str]:
        """Return the account of a dashboard token, as the store knows it now, and its session's id.

        Raises `InvalidCredentials` and `AccountSuspended`.
        """
        named = self._read(token)
        if named is None:
            raise InvalidCredentials("A valid dashboard token is needed: log in.")
        owner_id, session_id = named
        now = self._clock.now()
        operator = await self._sessions.owner(owner_id, session_id, now)
        if operator is None:
            self._ended.put(session_id, value=True)
            raise InvalidCredentials("A valid dashboard token is needed: log in.")
        if operator.is_suspended:
            self._suspended.put(session_id, self._clock.monotonic_s() + SUSPENDED_REMEMBERED_S)
        require_active(operator)
        self._used[session_id] = now
        return operator, session_id

    def named_by(self, token: str) -> tuple[str, str] | None:
        """Return the account named by a dashboard token's signature, and its session's id. No I/O.

        The token may be revoked, or its account suspended or gone, if no look-up has found that
        yet. Use the result only to decide whom a request counts for.
        """
        named = self._read(token)
        suspended_until_s = 0.0 if named is None else self._suspended.get(named[1]) or 0.0
        return named if self._clock.monotonic_s() >= suspended_until_s else None

    def _read(self, token: str) -> tuple[str, str] | None:
        named = self._tokens.read(token) if len(token) <= TOKEN_CHARS_MAX else None
        return None if named is None or named[1] in self._ended else named

    async def list(self, operator_id: str) -> Sequence[DashboardSession]:
        """Return the operator's sessions, newest first, at most `SESSIONS_MAX`."""
        await self.flush_last_used()
        return await self._sessions.list(operator_id, self._clock.now())

    async def end(self, operator_id: str, session_id: str, actor: Actor) -> None:
        """End a session at once, in every process. Raises `SessionNotFound`."""
        entry = new_entry(self._clock, actor, "session.ended", operator_id, session_id)
        if not await self._sessions.end(operator_id, session_id, entry):
            raise SessionNotFound("You have no session of this id.")

    async def end_all(
        self, operator_id: str, keep: str | None = None, actor: Actor = TERMINAL
    ) -> int:
        """End every session but `keep` at once, in every process; return how many there were."""
        entry = new_entry(self._clock, actor, "sessions.ended", operator_id)
        return await self._sessions.end_all(operator_id, keep, entry)

    async def flush_last_used(self) -> None:
        """Write when sessions were last used. A failure loses nothing."""
        batch, self._used = self._used, {}
        if not batch:
            return
        try:
            await self._sessions.touch(batch)
        except BaseException:
            self._used = batch | self._used
            raise

    async def purge(self) -> None:
        """Remove expired sessions and codes, every ten minutes."""
        now_s = self._clock.monotonic_s()
        if now_s >= self._purge_at_s:
            self._purge_at_s = now_s + PURGE_EVERY_S
            await self._sessions.purge(self._clock.now())

    async def _require_second_factor(
        self, proof: PasswordAttempt, record: LoginRecord, code: str | None, actor: Actor
    ) -> None:
        operator = record.operator
        if operator.is_suspended:
            await self._note(actor, "login.failed", operator.id, reason="suspended")
            self._proof.throttle.give_back(proof.attempt)
        require_active(operator)
        try:
            await self._factors.require(record, code, actor)
        except TotpInvalid:
            await self._note(actor, "login.failed", operator.id, reason="wrong code")
            raise

    async def _note_failure(self, record: LoginRecord | None, client: Client) -> None:
        """Record a failed log-in, of an unknown address too: the time must not differ."""
        actor = Actor("anonymous", None, client.address, client.request_id)
        operator_id = record.operator.id if record else ""
        why = "wrong password" if record else "unknown account"
        await self._note(actor, "login.failed", operator_id, reason=why)

    async def _note(self, actor: Actor, action: Action, operator_id: str, **details: str) -> None:
        entry = self._due(actor, action, operator_id, None, **details)
        if entry is not None:
            await self._operators.record(entry)

    def _due(
        self,
        actor: Actor,
        action: Action,
        operator_id: str,
        target_id: str | None,
        **details: str,
    ) -> AuditEntry | None:
        """Return the entry for the audit trail, or None if enough are recorded today."""
        kind = f"{action} {details.get('reason', '')}"
        attempts = self._notes.count(kind, operator_id, actor.client)
        if attempts is None:
            return None
        entry = new_entry(self._clock, actor, action, operator_id, target_id, **details)
        if attempts <= RECORDED_EACH:
            return entry
        return replace(entry, details={**entry.details, "attempts": attempts})

    async def _begin(
        self, record: LoginRecord, client: Client, actor: Actor
    ) -> tuple[Operator, str]:
        operator, now = record.operator, self._clock.now()
        session = DashboardSession(
            id=new_id(),
            operator_id=operator.id,
            created_at=now,
            used_at=now,
            expires_at=now + LOGIN_TTL,
            user_agent=client.shown_user_agent,
            client_address=client.address[:64],
        )
        entry = self._due(actor, "login.succeeded", operator.id, session.id)
        origin = self._proof.origins.of(client)
        begun = await self._sessions.begin(
            session, record.password_hash, origin, SESSIONS_MAX, entry
        )
        if not begun:
            raise InvalidCredentials("The e-mail address or the password is wrong.")
        return operator, self._tokens.issue(operator.id, session.id)
