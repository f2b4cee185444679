"""Sentences that say how to prove a service's function. Pure."""

from collections.abc import Mapping
from typing import Final

from assay.common.json import JsonObject, is_array
from assay.evaluation.demands import Evidences, member, rows
from assay.evaluation.policy import LadderPolicy

UNFINISHED: Final = "unfinished"


def how_to_enter(
    seen: Evidences, services: Mapping[str, list[JsonObject]], best: Mapping[str, str]
) -> str:
    """Return how to open services that answer 401 or 403, if the best of their kind does."""
    entry = member(seen.behaviour, "entry")
    listed = entry.get("closed")
    closed = {str(one) for one in listed} if is_array(listed) else set[str]()
    wanted = sorted(
        str(row.get("service"))
        for kind, of_kind in services.items()
        if best[kind] in {"refuses", "closed"}
        for row in of_kind
        if str(row.get("service")) in closed
    )
    if not wanted:
        return ""
    used = rows(entry, "credentials") or []
    if any(row.get("outcome") == "refused" for row in used):
        said = "The credential that was deposited is refused: deposit one that holds"
    else:
        said = "Deposit a credential for evaluations"
    return (
        f"{said}, for {', '.join(wanted)}: as the agent's owner, by"
        " `POST /operator/agent/{agentId}/credentials` or `assay visits deposit`"
        " (docs/better-grade.md#services-behind-a-log-in)."
    )


def what_to_publish(services: Mapping[str, list[JsonObject]], best: Mapping[str, str]) -> str:
    """Return how to make an agent provable for which no answered input is known."""
    kinds = sorted(
        kind
        for kind, listed in services.items()
        if best[kind] == UNFINISHED and any(r.get("why") == "inputs_unknown" for r in listed)
    )
    wanted = dict.fromkeys(_TO_PUBLISH.get(kind, _VALUES) for kind in kinds)
    where = "In /.well-known/agent-registration.json on the service's host, publish "
    return f"{where}{'; '.join(wanted)}." if wanted else ""


_VALUES: Final = (
    "values that are found, two or more for each argument, by its name:"
    ' {"testInputs": {"orderId": ["A-17", "B-20"]}}'
)
_TO_PUBLISH: Final[Mapping[str, str]] = {
    "a2a": (
        "messages that it answers, two or more that differ only in their values:"
        ' {"testInputs": {"messages": ["Which bay holds A-17?", "Which bay holds B-20?"]}}'
    ),
}


def how_to_sell(policy: LadderPolicy) -> str:
    """Return how to prove a service that takes payment and offers nothing free."""
    return (
        "Serve an operation that is free, and list it beside the paid ones in the API's"
        " openapi.json, with values that it knows as testInputs in"
        " /.well-known/agent-registration.json; or let payments go to the registered agentWallet"
        f" until {policy.sold_clusters:g} independent payers were charged {policy.sold_usd:g} USD"
        f" together on {policy.sold_days:g} days within 30; or, where the operator of Assay pays"
        " for calls, ask at most 0.05 USD of a call to the agentWallet, prove control of every"
        " service, describe the paid operation's inputs, and be enrolled: two answers or more are"
        " bought once in 30 days."
    )
