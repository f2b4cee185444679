"""Reads for control proofs what a visit offers: its budget, conversations and 402s."""

from collections.abc import Sequence
from dataclasses import dataclass

from assay.control.ports import Card, LookUpUnavailable, Tool
from assay.net.egress.ports import EgressError, EgressResponse, Failure, Limits, OutboundRequest
from assay.probing.ports import AgentCallFailed, BudgetExhausted, ProbeSession
from assay.probing.probe_client import ask
from assay.probing.x402_reader import read, unpaid

TOOLS_MAX = 200
TOOL_CHARS_MAX = 4_000


@dataclass(frozen=True, slots=True)
class VisitReader:
    """`net.egress.ports.EgressClient` and `control.ports.ServiceReader` over one visit."""

    visit: ProbeSession

    async def send(self, request: OutboundRequest, limits: Limits = Limits()) -> EgressResponse:  # noqa: B008 - frozen
        """Send like `EgressClient.send`.

        Beyond the visit's budget it fails with `Failure.BUDGET`.
        """
        try:
            return await self.visit.http.send(request, limits)
        except BudgetExhausted as error:
            raise EgressError(Failure.BUDGET, "the visit's budget is used up") from error

    async def card(self, endpoint: str) -> Card | None:
        """Implement `ServiceReader.card`; shares the probes' conversation."""
        try:
            async with self.visit.dialers.a2a(endpoint, self.visit.http) as conversation:
                return Card(conversation.card_url, conversation.card)
        except AgentCallFailed:
            return None
        except BudgetExhausted as error:
            raise LookUpUnavailable from error

    async def tools(self, endpoint: str) -> Sequence[Tool]:
        """Implement `ServiceReader.tools`."""
        try:
            async with self.visit.dialers.mcp(endpoint, self.visit.http) as conversation:
                listed = await conversation.list_tools()
        except AgentCallFailed:
            return ()
        except BudgetExhausted as error:
            raise LookUpUnavailable from error
        return [Tool(t.name[:200], t.description[:TOOL_CHARS_MAX]) for t in listed[:TOOLS_MAX]]

    async def payees(self, endpoint: str) -> frozenset[str]:
        """Implement `ServiceReader.payees`; only if every offer can be read."""
        try:
            sells = self.visit.spoken.get(endpoint) == "x402"
            asked = unpaid(self.visit, endpoint) if sells else self._get(endpoint)
            found = read(await asked)
        except BudgetExhausted as error:
            raise LookUpUnavailable from error
        if found is None or not found.is_valid:
            return frozenset()
        return frozenset(offer.pay_to for offer in found.offers)

    async def _get(self, url: str) -> EgressResponse | Failure:
        return await ask(self.visit, OutboundRequest("GET", url, {}))
