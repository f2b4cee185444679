"""The demands of rung 1 of a key agent. Pure."""

from assay.evaluation.demands import (
    CHAIN_SIGNAL,
    Demand,
    Evidences,
    at_least,
    member,
    no_critical_finding,
    number,
)
from assay.evaluation.policy import LadderPolicy


def caller(seen: Evidences, policy: LadderPolicy) -> list[Demand]:
    """Return the demands: the caller scenarios on several days, and one scarce proof."""
    conduct = member(seen.behaviour, "conduct")
    days = number(conduct, "passedDays")
    scarce = sorted(_scarce(seen, policy, number(conduct, "paidUsd")))
    unread = seen.of(CHAIN_SIGNAL).get("registrationUnread") is True
    has = "it has: " + ", ".join(scarce) if scarce else "there is none"
    return [
        at_least(
            1,
            "caller_suite",
            days,
            policy.caller_days,
            "days on which it passed the whole caller suite",
        ),
        Demand(
            1,
            "scarce_proof",
            "met" if scarce else "unknown" if unread else "missing",
            "A proof of personhood or an attestation that no other agent uses, a registration, or"
            f" {policy.caller_usd:g} USD paid to unrelated wrappers; {has}.",
            action="" if scarce else _SCARCE_ACTION,
        ),
        no_critical_finding(seen),
    ]


_SCARCE_ACTION = (
    "Register an agent with the key on a main network, or prove a human behind it, with a World ID"
    " of an orb or in Self's registry."
)


def _scarce(seen: Evidences, policy: LadderPolicy, paid_usd: float) -> set[str]:
    human, listed, attested = seen.of("personhood"), seen.of("self"), seen.of("attestation")
    found: set[str] = set()
    if isinstance(human.get("level"), str):
        found.add("personhood")  # One proof backs one agent: the store enforces that.
    if listed.get("holds") is True and number(listed, "agents") == 1:
        found.add("personhood")
    if attested.get("attested") is True and attested.get("sharedWith") == 0:
        found.add("attestation")
    chain = seen.of(CHAIN_SIGNAL)
    if chain.get("registered") is True or isinstance(chain.get("registration"), str):
        found.add("registration")
    if paid_usd >= policy.caller_usd:
        found.add("payments")
    return found
