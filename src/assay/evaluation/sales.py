"""Adds on-chain settlements as proof of function to the sandbox's transcripts. Pure.

A visit pays nothing, so of a service that only sells it sees only the demand. The registry's signal
reads who was charged; its fact joins the transcript, and the row of evidence follows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from assay.common.json import JsonObject, is_array, is_object
from assay.evaluation.model import SignalName, SignalResult
from assay.evaluation.policy import LadderPolicy
from assay.evaluation.ports import Signal
from assay.probing.function.payment import with_settlements
from assay.probing.function.service import function_rows
from assay.probing.ports import Probe


def with_sales(
    collected: Sequence[SignalResult],
    sandbox: Signal,
    probes: Mapping[str, Probe],
    policy: LadderPolicy,
) -> tuple[SignalResult, ...]:
    """Return the results; services whose payee is the wallet get their settlements."""
    chain = next((c.evidence.data for c in collected if c.signal is SignalName.REGISTRY_8004), None)
    fact = _fact(chain, policy)
    return tuple(
        _judged(c, fact, sandbox, probes) if c.signal is SignalName.SANDBOX else c
        for c in collected
    )


def _fact(chain: JsonObject | None, policy: LadderPolicy) -> JsonObject:
    """Return the settlements and the demanded ones; `unread` if a chain was not fully read."""
    needs: JsonObject = {
        "clusters": policy.sold_clusters,
        "days": policy.sold_days,
        "usdNet": str(policy.sold_usd),
    }
    if chain is None or chain.get("stale"):
        return {"unread": 1, "needs": needs}
    found = chain.get("settlements")
    return {**(found if is_object(found) else {}), "needs": needs}


def _judged(
    one: SignalResult, fact: JsonObject, sandbox: Signal, probes: Mapping[str, Probe]
) -> SignalResult:
    listed = one.evidence.transcript.get("function")
    before = [row for row in listed if is_object(row)] if is_array(listed) else []
    after = with_settlements(before, fact)
    if after == before:
        return one
    evidence = replace(
        one.evidence,
        data={**one.evidence.data, "function": [*function_rows(after)]},
        transcript={**one.evidence.transcript, "function": [*after]},
    )
    return SignalResult(one.signal, evidence, sandbox.weigh(evidence, probes))
