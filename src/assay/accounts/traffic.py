"""Counts a request for its operator, for guesses at keys, or for its network address.

A valid credential is never counted for the address that it comes from, because strangers may use
that address too. This holds even when the credential is seen for the first time. Source:
conventions.md#open-endpoints.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from assay.accounts.api_keys import ApiKeys, key_digest
from assay.accounts.logins import Logins
from assay.accounts.model import API_KEY_PREFIX, AccountSuspended, InvalidCredentials, Operator
from assay.common.clock import Clock
from assay.common.errors import Unavailable
from assay.common.quota_lease import QuotaLease
from assay.http1.connections import ALWAYS_ANSWERED
from assay.server.rate_limits import RateLimit, RateLimitVerdict, caller_of, rate_limit
from assay.server.request_context import CREDENTIAL_IN_BODY, AsgiScope, RequestContext

UNLIMITED: Final = frozenset(
    {*(path.decode() for path in ALWAYS_ANSWERED), "/.well-known/security.txt"}
)
"""Paths that are answered from memory to everybody. Strangers must not fail a balancer's health
check, nor keep anybody from the keys that verify tokens."""

COURSE: Final = "/operator/sandbox/course/"
"""Below this path `Authorization` is part of a scenario, and no credential of ours."""


@dataclass(frozen=True, slots=True)
class TrafficDependencies:
    """What finds the owner of a credential, and the requests a minute of each kind of caller."""

    keys: ApiKeys
    logins: Logins
    agent_of: Callable[[str], str | None]
    """Returns the agent of an authentic session."""
    run_of: Callable[[str], str | None]
    """Returns the run of the course that the token of a step belongs to."""
    clock: Clock
    quota_lease: QuotaLease | None
    anonymous_per_minute: int
    keyed_per_minute: int
    guesses_per_minute: int


class Traffic:
    """The traffic limits of operators, of guesses at credentials, and of everybody else."""

    def __init__(self, needs: TrafficDependencies) -> None:
        self._keys, self._logins = needs.keys, needs.logins
        self._agent_of, self._run_of = needs.agent_of, needs.run_of
        clock, quota_lease = needs.clock, needs.quota_lease
        self._anonymous = rate_limit("anonymous", needs.anonymous_per_minute, clock, quota_lease)
        self._keyed = rate_limit("keyed", needs.keyed_per_minute, clock, quota_lease)
        self._guesses = rate_limit("guesses", needs.guesses_per_minute, clock, quota_lease)
        # As large as an operator's: their credential bounds these callers. This bounds how much
        # one address can have checked, or can get by creating agents, which costs nothing.
        self._presented = rate_limit("presented", needs.keyed_per_minute, clock, quota_lease)
        self._agents = rate_limit("agents", needs.anonymous_per_minute, clock, quota_lease)

    async def count(self, scope: AsgiScope, exchange: RequestContext) -> RateLimitVerdict:
        """Count the request for its caller; return whether it is allowed.

        An operator that is found on the way is put into the request context.
        """
        if _is_unlimited(scope, exchange):
            limit = self._anonymous.per_minute
            return RateLimitVerdict(allowed=True, limit=limit, remaining=limit, reset_s=0)
        token = _bearer(exchange)
        if token is None or scope["path"].startswith(COURSE):
            return await self._count_without_token(scope, exchange)
        digest = exchange.key_digest = key_digest(token)
        known = None if digest is None else self._keys.authenticate_cached(digest)
        if known is not None:
            exchange.account = known
            return await self._key(known, exchange)
        try:
            return await self._count_unknown(token, exchange)
        except Unavailable:  # unknown owner: operations that need it refuse
            return await _taken(self._anonymous, caller_of(exchange.client_address))

    async def _count_without_token(
        self, scope: AsgiScope, exchange: RequestContext
    ) -> RateLimitVerdict:
        """Count a request for its address, unless it has a credential of another kind."""
        caller = caller_of(exchange.client_address)
        if scope["method"] == "POST" and scope["path"] in CREDENTIAL_IN_BODY:
            return await _taken(self._presented, caller)
        verdict = await _taken(self._anonymous, caller)
        agent = None if verdict.allowed else self._agent(scope["path"], exchange)
        if agent is None:
            return verdict
        room = await _taken(self._presented, caller)
        if not room.allowed:
            return room
        verdict = await _taken(self._agents, agent)
        if not verdict.allowed:
            self._presented.give_back(caller)
        return verdict

    def _agent(self, path: str, exchange: RequestContext) -> str | None:
        """Return the agent of an authentic session, or the course run of a step's token.

        Either may be over: no store is asked.
        """
        session = exchange.headers.get("x-agent-session")
        agent = None if session is None else self._agent_of(session)
        if agent is None and path.startswith(COURSE):
            run = self._run_of(path.removeprefix(COURSE).partition("/")[0])
            return None if run is None else f"run {run}"
        return agent

    async def _token(self, token: str, exchange: RequestContext) -> RateLimitVerdict:
        """Count a request with a dashboard token by its signature; ask no store.

        Each token counts by itself, so a stolen and revoked one uses up nothing of its owner's
        other tokens or of the gate's. Once a look-up has found that it has ended, it counts as a
        guess.
        """
        named = self._logins.named_by(token)
        if named is None:
            return await self._guess(exchange)
        owner, session_id = named
        verdict = await _taken(self._keyed, f"session {session_id}")
        # A large body counts for the token's owner, so the token must be valid.
        if verdict.allowed and exchange.brings_much and not await self._holds(token):
            return await self._guess(exchange)
        exchange.counted_for = f"dashboard {owner}"
        return verdict

    async def _holds(self, token: str) -> bool:
        """Return whether a dashboard token is valid now. Raises `Unavailable`."""
        try:
            await self._logins.authenticate(token)
        except (InvalidCredentials, AccountSuspended):
            return False
        return True

    async def _count_unknown(self, token: str, exchange: RequestContext) -> RateLimitVerdict:
        """Count a request whose credential was not valid a moment ago.

        Raises `Unavailable` if the store does not answer.
        """
        if not token.startswith(API_KEY_PREFIX):
            return await self._token(token, exchange)
        digest = exchange.key_digest
        if digest is not None and self._keys.is_ours(token, digest):
            operator = await self._operator(token, exchange)
            return await (
                self._guess(exchange) if operator is None else self._key(operator, exchange)
            )
        verdict = await self._guess(exchange)  # before asking the store: guesses must not load it
        if not verdict.allowed:
            return verdict
        try:
            operator = await self._operator(token, exchange)
        except Unavailable:
            self._give_back(exchange)
            raise
        if operator is None:
            return verdict
        self._give_back(exchange)
        return await self._key(operator, exchange)

    async def _operator(self, token: str, exchange: RequestContext) -> Operator | None:
        try:
            operator = await self._keys.authenticate(token, None, exchange.key_digest)
        except (InvalidCredentials, AccountSuspended):
            return None
        exchange.account = operator
        return operator

    async def _key(self, operator: Operator, exchange: RequestContext) -> RateLimitVerdict:
        exchange.counted_for = operator.id
        return await _taken(self._keyed, operator.id)

    async def _guess(self, exchange: RequestContext) -> RateLimitVerdict:
        return await _taken(self._guesses, caller_of(exchange.client_address))

    def _give_back(self, exchange: RequestContext) -> None:
        self._guesses.give_back(caller_of(exchange.client_address))


async def _taken(limit: RateLimit, caller: str) -> RateLimitVerdict:
    return limit.take(caller) or await limit.admit(caller)


def _bearer(exchange: RequestContext) -> str | None:
    scheme, _, token = exchange.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def _is_unlimited(scope: AsgiScope, exchange: RequestContext) -> bool:
    """Return whether the request reads such a path without a body to wait for."""
    return (
        scope["path"] in UNLIMITED
        and scope["method"] in {"GET", "HEAD"}
        and "transfer-encoding" not in exchange.headers
        and exchange.headers.get("content-length", "0") == "0"
    )
