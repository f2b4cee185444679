"""Rung 1 of an agent with services: function, control, and no critical finding. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from assay.common.json import JsonObject, is_array
from assay.control import rules
from assay.control.rules import CONTROL_CONFLICT, CONTROL_UNPROVEN
from assay.evaluation.actions import UNFINISHED, how_to_enter, how_to_sell, what_to_publish
from assay.evaluation.demands import Demand, Evidences, State, member, no_critical_finding, rows
from assay.evaluation.policy import LadderPolicy

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
