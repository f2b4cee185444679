"""The whole flow of interface.md#agent-identity: from headers to a proven address, or a session.

Sessions: a proven address, for one hour, revocable.

Source: interface.md#states, #agent-identity; conventions.md#agent-identity.
"""

from assay.common.cache import BoundedMap, Cache
from assay.common.clock import Clock
from assay.common.costs import Cost, CostLedger
from assay.common.errors import Unauthorized
from assay.common.ids import new_id
from assay.common.shared_state import SharedState
from assay.identity.challenge import Challenges
from assay.identity.model import (
    SESSION_TTL,
    AgentHeaders,
    AgentPrincipal,
    ContractProof,
    IdentityRequired,
    KeyAgent,
    Session,
    canonical_address,
    is_evm,
)
from assay.identity.ports import KeyAgentStore, SessionTokens

TOKEN_CHARS_MAX = 500

CONFIRMED_S = 5.0
"""How long a confirmed session is accepted without asking the store: the longest a session revoked
by another process stays valid here without a change feed. Revocations by this process apply at
once."""

_CONFIRMED_MAX = 100_000


class Sessions:
    """Begins, recognises and revokes sessions."""

    def __init__(
        self, tokens: SessionTokens, state: SharedState, clock: Clock, grace_s: float = 0.0
    ) -> None:
        """While the store does not answer, sessions are accepted until they are `grace_s` old."""
        self._tokens = tokens
        self._state = state
        self._clock = clock
        self._confirmed: Cache[Session] = Cache(
            *(clock, CONFIRMED_S, _CONFIRMED_MAX), grace_s=grace_s, shares_first=False
        )
        self._by_id: BoundedMap[str, str] = BoundedMap(_CONFIRMED_MAX)

    def begin(self, address: str, contract: ContractProof | None = None) -> Session:
        """Begin a session of a lower-case address that has just proven itself."""
        expires = self._clock.now() + SESSION_TTL
        session_id = new_id()
        token = self._tokens.issue(session_id, address, expires, contract)
        return Session(session_id, address, expires, token, contract)

    def check_cached(self, address: str, token: str) -> Session | None:
        """Return the session if it was confirmed a moment ago. No I/O."""
        session = self._confirmed.fresh(token)
        if session is None or session.expires_at <= self._clock.now():
            return None
        return session if session.agent_address == address else None

    def owner_of(self, token: str) -> str | None:
        """Return the address of an authentic, unexpired, maybe revoked token, or None. No I/O."""
        if len(token) > TOKEN_CHARS_MAX:
            return None
        known, now = self._confirmed.last(token), self._clock.now()
        if known is not None and known.expires_at > now:
            return known.agent_address
        session = self._tokens.read(token, now)
        return None if session is None else session.agent_address

    async def check(self, address: str, token: str) -> Session | None:
        """Return the session of this address's valid, unrevoked token, or None."""
        if (known := self.check_cached(address, token)) is not None:
            return known
        session = self._read(address, token)
        if session is None:
            return None
        try:
            return await self._confirmed.ask(token, lambda: self._confirm(token, session))
        except _Revoked:
            return None

    async def revoke(self, address: str, token: str) -> None:
        """End a session: at once here, and durably for every process."""
        session = self._read(address, token)
        if session is not None:
            left_s = (session.expires_at - self._clock.now()).total_seconds()
            try:
                await self._state.put(_revoked(session.id), "1", max(1.0, left_s + 60))
            finally:  # it may be revoked even if the store's answer is lost
                self.forget(session.id)

    def forget(self, session_id: str) -> None:
        """Ask the store before this session is accepted again: it was revoked."""
        self._confirmed.remove(self._by_id.pop(session_id))

    def doubt(self) -> None:
        """Ask the store before any session is accepted again, as far as the store answers."""
        self._confirmed.doubt()

    def _read(self, address: str, token: str) -> Session | None:
        """Return the session of this address's authentic, unexpired, maybe revoked token."""
        if len(token) > TOKEN_CHARS_MAX:
            return None
        session = self._tokens.read(token, self._clock.now())
        return session if session is not None and session.agent_address == address else None

    async def _confirm(self, token: str, session: Session) -> Session:
        """Return the session. Raises `_Revoked`."""
        if await self._state.get(_revoked(session.id)) is not None:
            raise _Revoked("This session was revoked.")
        self._by_id.put(session.id, token)
        return session


class _Revoked(Unauthorized):
    """The session was revoked."""


def _revoked(session_id: str) -> str:
    return f"session-revoked:{session_id}"


class AgentIdentity:
    """Proves which agent is calling."""

    def __init__(
        self,
        challenges: Challenges,
        sessions: Sessions,
        key_agents: KeyAgentStore,
        clock: Clock,
        costs: CostLedger,
    ) -> None:
        self._challenges = challenges
        self._sessions = sessions
        self._key_agents = key_agents
        self._clock = clock
        self._costs = costs

    def prove_cached(self, headers: AgentHeaders) -> AgentPrincipal | None:
        """Return the address of a session confirmed a moment ago, or None. No I/O."""
        if headers.address is None or headers.session is None:
            return None
        address = headers.address.lower() if is_evm(headers.address) else headers.address
        known = self._sessions.check_cached(address, headers.session)
        return AgentPrincipal(address, contract=known.contract) if known else None

    async def prove(self, headers: AgentHeaders) -> AgentPrincipal:
        """Return the address that proved itself, by a session or by a signed challenge.

        Raises `IdentityRequired`, `ChallengeRequired` (with a fresh challenge), `SignatureInvalid`,
        and like `answer`. A valid signature begins a session.
        """
        address = agent_address(headers)
        if headers.session and (known := await self._sessions.check(address, headers.session)):
            return AgentPrincipal(address, contract=known.contract)
        if headers.signature is None or headers.challenge is None:
            raise self._challenges.required(address)
        return await self.answer(address, headers.challenge, headers.signature)

    async def has_proven(self, address: str) -> bool:
        """Return whether the key agent of a lower-case address has ever proven itself."""
        return await self._key_agents.find(address) is not None

    async def session_of(self, headers: AgentHeaders) -> str | None:
        """Return the address of a valid session in the headers, or None.

        A signature beside it is not checked, because it can be used only once. If a contract proved
        the address, the result is None: the caller does not say for which chain.
        """
        if headers.address is None or headers.session is None:
            return None
        address = canonical_address(headers.address)
        if address is None:
            return None
        known = await self._sessions.check(address, headers.session)
        return address if known is not None and known.contract is None else None

    async def answer(self, address: str, challenge: str, signature: str) -> AgentPrincipal:
        """Accept the answer to a challenge of a canonical address.

        On Solana an address alone is not a key agent (interface.md#key-agents): it only acts for
        its agents. A new key agent is a row counted for the caller: raises `QuotaExceeded` beyond
        its quota.
        """
        contract = (await self._challenges.redeem(address, challenge, signature)).contract
        principal = AgentPrincipal(address, self._sessions.begin(address, contract), contract)
        is_key_agent = is_evm(address) and principal.is_key_agent
        if is_key_agent and not await self.has_proven(address):
            self._costs.require(Cost.ROWS)
            await self._key_agents.remember(KeyAgent(address, self._clock.now()))
            self._costs.charge(Cost.ROWS)
        return principal


def agent_address(headers: AgentHeaders) -> str:
    """Return the address a request names, in canonical form; raises `IdentityRequired`."""
    address = None if headers.address is None else canonical_address(headers.address)
    if address is None:
        raise IdentityRequired(
            "Send x-agent-address: 0x followed by 40 hexadecimal digits (on Solana a base-58"
            " public key), and prove it."
        )
    return address
