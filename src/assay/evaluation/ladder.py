"""The ladder: the highest rung whose evidence is complete bounds an agent's grade. Pure.

Sentences that say how to prove a service's function.

Rung 1 of an agent with services: function, control, and no critical finding.

The demands of rung 1 of a key agent.

Every rung is a list of demands. A demand is `met`, `missing`, or `unknown` if lack of our time,
budget or chain data prevented an answer. An unknown demand never earns a rung and never takes a
held one away. Source: docs/grades.md#the-ladder; ADR 0024.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from assay.common.json import JsonObject, is_array
from assay.control import rules
from assay.control.rules import CONTROL_CONFLICT, CONTROL_UNPROVEN
from assay.evaluation.demands import (
    CHAIN_SIGNAL,
    RUNGS,
    Demand,
    Evidences,
    LadderPolicy,
    State,
    at_least,
    member,
    no_critical_finding,
    number,
    rows,
    steady,
    used,
    vouched,
)

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


_CUT: Final = frozenset({"egress_budget", "out_of_time"})
"""Reasons of ours why a visit is not complete."""

_SOFTENED: Final = frozenset({"unreachable", "refuses", "not_functional"})
"""States that count only once confirmed, if another party timed the visit."""

_SAYS: Final[Mapping[str, str]] = {
    "functional": "works",
    "not_functional": "does not do what it says",
    "refuses": "refuses every request",
    "unreachable": "cannot be reached",
    "unfinished": "has not been tested to the end",
    "closed": "works only with credentials or payment that Assay lacks",
}

_WORST: Final[tuple[State, ...]] = ("missing", "unknown", "met")

_BEST_FIRST: Final = tuple(_SAYS)


def functional(seen: Evidences, policy: LadderPolicy) -> list[Demand]:
    """Require a working, controlled service of each callable kind, and no critical finding."""
    services = _callable(function_rows(seen.behaviour))
    return [
        _active(seen),
        _complete(seen),
        _function(seen, services, policy),
        _control(seen, services or {}),
        *_unreliable(seen),
        *_ceiling_demands(seen),
        no_critical_finding(seen),
    ]


def function_rows(behaviour: JsonObject) -> list[JsonObject] | None:
    """Return services with their state of function, by all visits together if there are several.

    None if no visit checked.
    """
    listed = rows(behaviour, "function")
    pooled = member(member(behaviour, "history"), "functions")
    if listed is None:
        return None
    return [{**r, "state": pooled.get(str(r.get("service")), r.get("state"))} for r in listed]


def _active(seen: Evidences) -> Demand:
    is_inactive = seen.behaviour.get("active") is False
    return Demand(
        1,
        "active",
        "missing" if is_inactive else "met",
        "The registration file does not say `active: false`.",
        "inactive" if is_inactive else "",
        is_fault=is_inactive,
    )


def _complete(seen: Evidences) -> Demand:
    """Require that the visit ended by itself, and every critical check reached a verdict."""
    asks = "A visit that was not cut short, with every critical check made"
    if _is_cut(seen):
        return Demand(1, "visit_complete", "unknown", f"{asks}.", "cut_short")
    finished = member(member(seen.history, "pooled"), "finished")
    if finished.get("outcome") == "fail":
        text = f"{asks}; several could not be."
        return Demand(1, "visit_complete", "missing", text, UNFINISHED)
    waiting = seen.behaviour.get("criticalUnfinished")
    if is_array(waiting) and waiting:
        listed = ", ".join(sorted(str(name) for name in waiting))
        return Demand(1, "visit_complete", "unknown", f"{asks}: {listed}.", UNFINISHED)
    return Demand(1, "visit_complete", "met", f"{asks}.")


def _unreliable(seen: Evidences) -> list[Demand]:
    """Return the missing demand if visits left too many calls without an answer."""
    answers = member(member(seen.history, "pooled"), "calls_answered")
    if answers.get("outcome") != "fail":
        return []
    text = "Its services answer nearly all calls; in visits of the last weeks they did not."
    return [Demand(1, "calls_answered", "missing", text, "calls_unanswered", is_fault=True)]


def _is_cut(seen: Evidences) -> bool:
    return "sandbox" in seen.unavailable or str(seen.behaviour.get("why")) in _CUT


def _ceiling_demands(seen: Evidences) -> list[Demand]:
    """Return what keeps an agent on rung 0 whatever works: copies, or services closed to us."""
    faults = rules.ceiling_reasons(seen.behaviour)
    reasons = [*faults, *rules.closed_to_us(seen.behaviour)]
    return [
        Demand(1, r.code, "missing", r.sentence, r.code, is_fault=r in faults, action=r.action)
        for r in reasons
    ]


def _callable(listed: list[JsonObject] | None) -> Mapping[str, list[JsonObject]] | None:
    """Return services by kind, without those that cannot be called; None if no visit checked.

    Services without a known protocol form a kind of their own only if nothing else is declared.
    """
    if listed is None:
        return None
    kinds: dict[str, list[JsonObject]] = {}
    for row in listed:
        if row.get("state") != "not_callable" and row.get("kind") != "web":
            kinds.setdefault(str(row.get("kind")), []).append(row)
    if len(kinds) > 1:
        kinds.pop("none", None)
    return kinds


def _function(
    seen: Evidences, services: Mapping[str, list[JsonObject]] | None, policy: LadderPolicy
) -> Demand:
    asks = "One service of each callable kind does what it says"
    if services is None:
        state = "unknown" if _is_cut(seen) else "missing"
        return Demand(1, "function", state, f"{asks}.", "not_tested")
    if not services:
        text = f"{asks}; it declares none that can be called."
        return Demand(1, "function", "missing", text, "no_service")
    best = {kind: _best(listed) for kind, listed in sorted(services.items())}
    said = ", ".join(f"{kind} {_SAYS.get(state, state)}" for kind, state in best.items())
    soft = seen.history.get("unconfirmed") is True
    states: dict[str, State] = {kind: _state(state, soft=soft) for kind, state in best.items()}
    worst = _worst(states.values())
    why = next((best[kind] for kind, state in states.items() if state == worst), "")
    return Demand(
        1,
        "function",
        worst,
        f"{asks}: {said}.",
        "" if worst == "met" else why,
        is_fault=worst == "missing" and "not_functional" in best.values(),
        action=how_to_sell(policy)
        if best.get("x402") == "closed"
        else how_to_enter(seen, services, best) or what_to_publish(services, best),
    )


def _best(listed: Sequence[JsonObject]) -> str:
    """Return the best state of a kind: a failing service beside a working one costs only points."""
    states = {str(row.get("state")) for row in listed}
    if UNFINISHED in states and "functional" not in states:
        return UNFINISHED
    return next((state for state in _BEST_FIRST if state in states), "not_functional")


def _state(state: str, *, soft: bool) -> State:
    if state == "functional":
        return "met"
    if state == UNFINISHED or (soft and state in _SOFTENED):
        return "unknown"
    return "missing"


def _worst(states: Iterable[State]) -> State:
    return min(states, key=_WORST.index)


def _control(seen: Evidences, services: Mapping[str, list[JsonObject]]) -> Demand:
    """Require that for each kind, a service that counts has proven control."""
    asks = "Control of the services that count is proven"
    listed = rows(seen.behaviour, "control")
    if not services or listed is None:
        state: State = "unknown" if _is_cut(seen) else "missing"
        text = f"{asks}; there is none."
        return Demand(1, "control", state, text, CONTROL_UNPROVEN)
    proofs = {str(row.get("service")): row for row in listed}
    best = [_best_proof(of_kind, proofs) for _, of_kind in sorted(services.items())]
    state, why, said = min(
        (_CONTROL[_stands(row)] for row in best), key=lambda found: _WORST.index(found[0])
    )
    shown = [row for row in best if _CONTROL[_stands(row)][1] == why]
    of = ", ".join(dict.fromkeys(str(row.get("service")) for row in shown))
    return Demand(
        1,
        "control",
        state,
        f"{asks}." if state == "met" else f"{asks}; {said}: {of}{_others(shown)}.",
        why,
        action="" if state == "met" else _publish(shown),
    )


def _best_proof(of_kind: Sequence[JsonObject], proofs: Mapping[str, JsonObject]) -> JsonObject:
    """Return the control of the service that counts: of those that work, the best proven one."""
    counting = [row for row in of_kind if row.get("state") == "functional"] or of_kind
    names = [str(row.get("service")) for row in counting]
    return min((proofs.get(n, {"service": n}) for n in names), key=lambda r: _BY.index(_stands(r)))


def _stands(row: JsonObject) -> str:
    if row.get("conflict") is True:
        return "conflict"
    if isinstance(row.get("proof"), str):
        return "proven"
    return UNFINISHED if row.get("unfinished") is True else "unproven"


_BY: Final = ("proven", "conflict", UNFINISHED, "unproven")
_CONTROL: Final[Mapping[str, tuple[State, str, str]]] = {
    "proven": ("met", "", ""),
    "conflict": ("unknown", CONTROL_CONFLICT, "two proofs contradict each other"),
    UNFINISHED: ("unknown", UNFINISHED, "it could not be asked for now"),
    "unproven": ("missing", CONTROL_UNPROVEN, "it is not for"),
}


def _others(shown: Iterable[JsonObject]) -> str:
    """Return the agents with which a proof conflicts."""
    named = [one for row in shown if is_array(listed := row.get("with")) for one in listed]
    return f" (also for {', '.join(map(str, named))})" if named else ""


def _publish(shown: Iterable[JsonObject]) -> str:
    """Return the files or records that prove control."""
    said: dict[str, None] = {}
    for row in shown:
        file, record = (member(member(row, "publish"), name) for name in ("file", "record"))
        if file:
            either = f"Serve {file.get('url')} with {file.get('body')}"
            if record:
                either += f", or set the {record.get('type')} record {record.get('name')} to"
                either += f' "{record.get("value")}"'
            said[f"{either}."] = None
    return " ".join(said)


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


@dataclass(frozen=True, slots=True)
class LadderPlace:
    """An agent's rung, and the reasons."""

    rung: int
    """0 to 4; its name is `policy.RUNGS[rung]`."""
    ceiling: float
    """Highest score on this rung."""
    is_unconfirmed: bool
    """Whether the rung was held before, and the current evidence about it is unknown."""
    demands: tuple[Demand, ...]
    """The demands of every rung, in order."""

    @property
    def name(self) -> str:
        """Return the rung's name."""
        return RUNGS[self.rung]

    @property
    def next_demands(self) -> tuple[Demand, ...]:
        """Return the missing demands of the next rung; empty on the highest."""
        return tuple(d for d in self.demands if d.rung == self.rung + 1 and d.state != "met")

    @property
    def faults(self) -> tuple[Demand, ...]:
        """Return demands that are unmet because of known faults of the agent."""
        return tuple(d for d in self.demands if d.is_fault)


HIGHEST: Final = len(RUNGS) - 1


def place(
    evidence: Mapping[str, JsonObject],
    unavailable: frozenset[str],
    policy: LadderPolicy,
    *,
    is_key_agent: bool,
) -> LadderPlace:
    """Return the rung that `evidence` (by signal) proves, whatever signals a caller selected.

    `unavailable` are the signals that could not be collected: they prove nothing, and take nothing
    away.
    """
    seen = Evidences(evidence, unavailable)
    first = caller(seen, policy) if is_key_agent else functional(seen, policy)
    demands = (*first, *steady(seen, policy), *used(seen, policy), *vouched(seen, policy))
    rung = 0
    while rung < HIGHEST and _is_complete(demands, rung + 1, seen.reached_rung):
        rung += 1
    unconfirmed = any(d.state == "unknown" for d in demands if d.rung <= rung)
    return LadderPlace(rung, policy.ceilings[rung], unconfirmed, demands)


def _is_complete(demands: Sequence[Demand], rung: int, reached: int) -> bool:
    states = {d.state for d in demands if d.rung == rung}
    return "missing" not in states and ("unknown" not in states or reached >= rung)
