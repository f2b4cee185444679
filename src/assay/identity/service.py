"""The whole flow of interface.md#agent-identity: from headers to a proven address."""

from assay.common.clock import Clock
from assay.common.costs import Cost, CostLedger
from assay.identity.challenge import Challenges
from assay.identity.model import (
    AgentHeaders,
    AgentPrincipal,
    IdentityRequired,
    KeyAgent,
    canonical_address,
    is_evm,
)
from assay.identity.ports import KeyAgentStore
from assay.identity.session import Sessions


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
