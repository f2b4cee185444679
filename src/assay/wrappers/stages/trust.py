"""Finds out who calls a wrapper, and whether it may (conventions.md#agent-identity, #wrapper)."""

from contextlib import suppress
from dataclasses import dataclass, replace

from assay.chains.model import Network, is_address
from assay.chains.networks import Networks
from assay.common.errors import ServiceError
from assay.evaluation.schedule import EnrolmentHolder, Enrolments
from assay.gate.model import COLD_PER_MINUTE, Decision, GateInput
from assay.gate.service import Asker, Gate
from assay.identity.model import (
    AgentHeaders,
    AgentPrincipal,
    AgentProof,
    DomainProof,
    IdentityRequired,
    canonical_address,
    controls,
    require_control,
)
from assay.identity.service import AgentIdentity, agent_address
from assay.identity.web_bot_auth import WebBotAuth, is_domain_signed
from assay.registries.model import Subject, subject_key
from assay.registries.subjects import named_agent_id
from assay.wrappers.model import (
    AdmittedAgent,
    AuthorizedRequest,
    IdentityProof,
    InboundRequest,
    NotRequired,
    RoutedRequest,
    TrustDenied,
)
from assay.wrappers.tier_terms import terms_for


@dataclass(frozen=True, slots=True)
class AgentClaim:
    """What a request claims about its caller, and the decision that let it through."""

    headers: AgentHeaders
    is_proven: bool
    subject_key: str
    asked: GateInput
    decision: Decision


class TrustStage:
    """Identifies the caller, compares it with the agent it names, and asks the gate."""

    def __init__(
        self,
        identity: AgentIdentity,
        gate: Gate,
        networks: Networks,
        proof: IdentityProof,
        web_bot_auth: WebBotAuth,
        enrolments: Enrolments | None = None,
    ) -> None:
        """Create it; agents that pass a paid wrapper are added to the schedule of `enrolments`."""
        self._enrolments = enrolments
        self._identity = identity
        self._web_bot_auth = web_bot_auth
        self._gate = gate
        self._networks = networks
        self._proof = proof

    def is_presented(self, matched: RoutedRequest) -> bool:
        """Return whether the caller names itself, so that it can be checked before it pays."""
        agent = matched.incoming.agent
        return matched.config.trust_enabled and (
            agent.session is not None
            or agent.signature is not None
            or self._is_asserted(matched)
            or is_domain_signed(agent, matched.incoming.agent_id)
        )

    async def speaker(self, incoming: InboundRequest) -> str | None:
        """Return the address of the request's session; None without a valid session."""
        return await self._identity.session_of(incoming.agent)

    def check_cached(
        self, matched: RoutedRequest
    ) -> tuple[AuthorizedRequest, AgentClaim | None] | None:
        """Return the request of an agent that passed a moment ago, or None. No I/O.

        It raises no refusals. Also returns the claim for `still_holds`; None if no trust is
        required.
        """
        config, incoming = matched.config, matched.incoming
        if not config.trust_enabled:
            return AuthorizedRequest(matched, NotRequired("")), None
        headers = incoming.agent
        principal = self._identity.prove_cached(headers)
        if principal is not None:
            address = principal.address
        elif (
            headers.address is not None
            and headers.session is None
            and headers.signature is None
            and "asserted" in {config.identity_proof, self._proof}
            and (asserted := canonical_address(headers.address)) is not None
        ):
            address = asserted
        else:
            return None
        try:
            network = self._network(incoming)
            agent_id = named_agent_id(network, incoming.agent_id, address)
        except ServiceError:
            return None
        if agent_id is None:
            return None
        asked = matched.route.gate_request
        decision = self._gate.assess_cached(network, agent_id, asked)
        contract = None if principal is None else principal.contract
        if (
            decision is None
            or not decision.allow
            or decision.is_throttled
            or not controls(address, decision.subject, contract)
        ):
            return None
        proven = principal is not None
        known = _known(decision, address, proven=proven)
        claim = AgentClaim(headers, proven, subject_key(network, agent_id), asked, decision)
        return AuthorizedRequest(_limited(matched, known), known), claim

    def still_holds(self, claim: AgentClaim | None) -> bool:
        """Return whether the same headers would be let through now by the same decision.

        It is checked for every request: it is False for a session that was revoked or has expired,
        and for an evaluation that is old or was replaced. No I/O.
        """
        if claim is None:
            return True
        if claim.is_proven and self._identity.prove_cached(claim.headers) is None:
            return False
        return self._gate.recall(claim.subject_key, claim.asked) is claim.decision

    async def check(self, matched: RoutedRequest, payer: str | None = None) -> AuthorizedRequest:
        """Return the request of an agent that passed.

        `payer` is an address that has signed a payment for this call: a proof if there is no
        session. Raises the refusals of `AgentIdentity.prove`, `IdentityMismatch`, `TrustDenied`,
        and those of `Gate.assess`. A wrapper that only observes raises none of them: a caller of
        whom nothing is proven then counts as nobody.
        """
        if not matched.config.trust_enabled:
            return AuthorizedRequest(matched, NotRequired(payer or ""))
        if matched.config.enforce == "enforce":
            return await self._checked(matched, payer)
        try:
            return await self._checked(matched, payer)
        except TrustDenied as refusal:
            why = str(refusal.extras.get("denialReason") or refusal.code)
            if refusal.known is not None:
                known = replace(refusal.known, would_deny=why)
                return AuthorizedRequest(_limited(matched, known), known)
            return AuthorizedRequest(matched, NotRequired(payer or "", why))
        except ServiceError as refusal:
            return AuthorizedRequest(matched, NotRequired(payer or "", refusal.code))

    async def _checked(self, matched: RoutedRequest, payer: str | None) -> AuthorizedRequest:
        """Return the request of an agent that passed; raise like `check` of an enforcing one."""
        incoming = matched.incoming
        network = self._network(incoming)
        address, proven, session, proof = await self._address(matched, network, payer)
        agent_id = named_agent_id(network, incoming.agent_id, address)
        if agent_id is None:
            raise IdentityRequired("Send x-agent-id or x-agent-address, and prove it.")
        request = matched.route.gate_request
        decision = self._gate.assess_cached(network, agent_id, request)
        if decision is None:
            # Before anything is sent to the agent's host; a bare header that only the wrapper's
            # owner accepts proves nothing to the service.
            def shows_control(subject: Subject) -> bool:
                _, is_proven = self._address_held(subject, address, payer, proof, proven=proven)
                return is_proven or (self._proof == "asserted" and address is not None)

            asker = Asker(matched.config.operator_id, shows_control)
            decision = await self._gate.assess(network, agent_id, request, asker)
            await self._have_visited(matched, decision)
        address, proven = self._address_held(decision.subject, address, payer, proof, proven=proven)
        known = _known(decision, address, proven=proven, session=session)
        if not decision.allow:
            raise _denied(decision, known)
        return AuthorizedRequest(_slowed(_limited(matched, known), decision), known)

    async def _have_visited(self, matched: RoutedRequest, decision: Decision) -> None:
        """Request visits of an agent that a paid wrapper let in after an evaluation."""
        config, subject = matched.config, decision.subject
        is_new = decision.allow and decision.sandbox_ran and subject.agent is not None
        if self._enrolments is None or not is_new or not config.price:
            return
        with suppress(ServiceError):  # it has a thousand already, or the store is down: ignore it
            await self._enrolments.enrol(EnrolmentHolder("seller", config.operator_id), subject)

    async def _address(
        self, matched: RoutedRequest, network: Network, payer: str | None
    ) -> tuple[str | None, bool, str | None, AgentProof | None]:
        """Return the caller's address or domain, whether it is proven, a new session, its proof."""
        incoming = matched.incoming
        headers = incoming.agent
        if is_domain_signed(headers, incoming.agent_id):
            return await self._domain(matched, network)
        principal: AgentPrincipal | None = self._identity.prove_cached(headers)
        if principal is not None:
            return principal.address, True, None, principal.contract
        presented = headers.session is not None or headers.signature is not None
        if self._is_asserted(matched) and not presented:
            return (agent_address(headers) if headers.address else None), False, None, None
        if payer is not None and not presented:
            return payer, True, None, None
        if headers.address is None and incoming.agent_id is None:
            raise IdentityRequired("Send x-agent-address, and x-agent-id for a registered agent.")
        principal = await self._identity.prove(headers)
        begun = principal.new_session
        return principal.address, True, begun.token if begun else None, principal.contract

    async def _domain(
        self, matched: RoutedRequest, network: Network
    ) -> tuple[str, bool, None, AgentProof]:
        """Return the domain whose key signed this request to the wrapper's public address."""
        incoming = matched.incoming
        agent_id = named_agent_id(network, incoming.agent_id, None)
        if agent_id is None:
            raise IdentityRequired("Send x-agent-id.")
        path = f"/wrap/{matched.config.operator_id}{incoming.path}"
        signed = self._web_bot_auth.request_of(
            incoming.method, path, incoming.query, incoming.headers
        )
        proof = await self._web_bot_auth.prove(signed, subject_key(network, agent_id))
        return proof.origin, True, None, proof

    def _is_asserted(self, matched: RoutedRequest) -> bool:
        """Return whether the caller names an agent, and is accepted without proof."""
        incoming = matched.incoming
        is_named = incoming.agent.address is not None or incoming.agent_id is not None
        return is_named and "asserted" in {matched.config.identity_proof, self._proof}

    @staticmethod
    def _address_held(
        subject: Subject,
        address: str | None,
        payer: str | None,
        proof: AgentProof | None,
        *,
        proven: bool,
    ) -> tuple[str, bool]:
        """Return the address that is accepted for the agent. Raises `IdentityMismatch`."""
        is_known = proven and address is not None and controls(address, subject, proof)
        if payer is not None and not is_known and controls(payer, subject):
            return payer, True
        if address is None:  # only an id was asserted: no address
            return subject.wallet, False
        require_control(address, subject, proof)
        # A domain's key proves no address: the registered one is shown.
        return (subject.wallet if isinstance(proof, DomainProof) else address), proven

    def _network(self, incoming: InboundRequest) -> Network:
        """Return the network by `x-chain` alone: the query belongs to the upstream."""
        if incoming.chain is None:
            return self._networks.default
        return self._networks.by_slug(incoming.chain[:64])


def _limited(matched: RoutedRequest, known: AdmittedAgent) -> RoutedRequest:
    """Return the request with the rate limit of a proven agent's tier."""
    terms = terms_for(matched.config.pricing, known.tier if known.proven else None)
    if terms is None or terms.rate_limit is None or known.would_deny is not None:
        return matched
    config = replace(matched.config, rate_limit=terms.rate_limit)
    return RoutedRequest(matched.incoming, replace(matched.route, config=config))


def _slowed(matched: RoutedRequest, decision: Decision) -> RoutedRequest:
    """Return the request with the limit of unproven agents, unless its own is lower."""
    if not decision.is_throttled:
        return matched
    limit = min(matched.config.rate_limit or COLD_PER_MINUTE, COLD_PER_MINUTE)
    config = replace(matched.config, rate_limit=limit)
    return RoutedRequest(matched.incoming, replace(matched.route, config=config))


def _known(
    decision: Decision, address: str, *, proven: bool, session: str | None = None
) -> AdmittedAgent:
    """Return the agent by its own id, with its assessment, whatever name the call used."""
    agent_id = decision.subject.agent_id
    return AdmittedAgent(
        agent_id=agent_id,
        address=address,
        proven=proven,
        tier=decision.grade.tier,
        score=decision.score.value,
        session=session,
        chain=None if is_address(agent_id) else decision.subject.network.slug,
        route=decision.grade.route,
        rung=decision.score.place.rung,
        evaluation_id=decision.evaluation.id,
    )


def _denied(decision: Decision, known: AdmittedAgent) -> TrustDenied:
    """Return the refusal, with the agent."""
    refusal = TrustDenied.of(decision)
    refusal.known = known
    return refusal
