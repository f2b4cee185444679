"""Whether a paid service asks for payment as x402 says, and of whom."""

import base64
import json

from assay.common.json import JsonObject
from assay.net.egress.ports import OutboundRequest
from assay.probing.ports import Finding, ProbeSession, Severity, probe
from assay.probing.probe_client import answer_class, as_json, ask, asked, canary, first
from assay.probing.session import VisitHttp


def _weigh_x402_challenge_valid(seen: JsonObject) -> Finding:
    if not seen["valid"]:
        return Finding("fail", "Its demand for payment lacks what a client needs to pay.")
    if not seen["consistent"]:
        return Finding("fail", "It asks different prices or payees for one and the same call.")
    return Finding("pass", "Its demand for payment is well-formed.")


@probe("x402_challenge_valid", "payment", Severity.MAJOR, weigh=_weigh_x402_challenge_valid)
async def x402_challenge_valid(visit: ProbeSession) -> JsonObject | None:
    """Requires scheme, network, asset, amount and payee of every offer, equal in both versions.

    Source: x402 specification, 1 and 2.
    """
    found = await asked(visit)
    return None if found is None else as_json(found)


def _weigh_x402_payee_own(seen: JsonObject) -> Finding:
    if seen["own"]:
        return Finding("pass", "Payments go to the agent's own wallet or its owner's.")
    return Finding("not_tested", "Payments go to an address the registry does not know.")


@probe("x402_payee_own", "payment", Severity.INFO, weigh=_weigh_x402_payee_own)
async def x402_payee_own(visit: ProbeSession) -> JsonObject | None:
    """Reports whether the payee is the agent's owner or wallet. Another payee is not a fault.

    Source: checks.md#payment-services.
    """
    found, agent = await asked(visit), visit.subject.agent
    if found is None or not found.is_valid or agent is None:
        return None
    return {"own": all(offer.pay_to in agent.controllers for offer in found.offers)}


def _weigh_x402_price_stable(seen: JsonObject) -> Finding:
    if seen["stable"]:
        return Finding("pass", "The same call costs the same a moment later.")
    return Finding("fail", "Price or payee change from one call to the next.")


@probe("x402_price_stable", "payment", Severity.MAJOR, weigh=_weigh_x402_price_stable)
async def x402_price_stable(visit: ProbeSession) -> JsonObject | None:
    """Requires the price and payee of the call before.

    Source: checks.md#payment-services.
    """
    before = await asked(visit)
    if before is None or not before.is_valid:
        return None
    after = await asked(visit, VisitHttp.FRESH)
    return {"stable": after is not None and after.offers == before.offers}


def _weigh_x402_garbage_refused(seen: JsonObject) -> Finding:
    if seen["answer"] == "ok":
        return Finding("fail", "It takes a payment that is none: nobody's payment is checked.")
    if seen["answer"] in {"broken", "timeout", "cut"}:
        return Finding("fail", "A payment that is none makes it crash or hang.")
    if seen["answer"] in {"closed", "refused"}:
        return Finding("pass", "A payment that is none is refused.")
    return Finding("not_tested", "What it does with a bad payment could not be judged.")


@probe("x402_garbage_refused", "payment", Severity.MAJOR, weigh=_weigh_x402_garbage_refused)
async def x402_garbage_refused(visit: ProbeSession) -> JsonObject | None:
    """Requires that a header that only looks like a payment buys nothing, and crashes nothing.

    Source: checks.md#payment-services.
    """
    service = first(visit, "http")
    if service is None or await asked(visit) is None:
        return None
    payment = {"x402Version": 1, "payload": {"signature": canary(visit, "payment")}}
    sent = base64.b64encode(json.dumps(payment).encode()).decode()
    request = OutboundRequest("GET", service.service.endpoint, {"x-payment": sent})
    return {"answer": answer_class(await ask(visit, request))}
