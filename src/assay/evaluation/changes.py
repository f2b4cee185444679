"""Says in sentences what changed between two evaluations of one agent. Pure.

Signals of paid plans are never named, and nothing of their values is said.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from assay.evaluation.demands import RUNGS
from assay.evaluation.model import Evaluation, SignalName, SignalResult

SENTENCES_MAX = 6
NAMES_SHOWN = 4

_LEAST_MOVE: Final = 0.01
_OTHERS = "Evidence about its wallet, or about the people behind it, changed."


def changes(before: Evaluation, after: Evaluation) -> tuple[str, ...]:
    """Return why the newer evaluation differs, the weightiest first; empty if nothing changed.

    A score that changed always has a reason.
    """
    found = [
        *_of_rung(before, after),
        *_of_behaviour(before, after),
        *_of_reputation(before, after),
    ]
    if before.policy != after.policy:
        found.append("The rules of grading changed.")
    if not found and abs(before.score - after.score) >= _LEAST_MOVE:
        found.append(_OTHERS)
    return tuple(found[:SENTENCES_MAX])


def _of_rung(before: Evaluation, after: Evaluation) -> Iterator[str]:
    earlier, now = before.rung, after.rung
    if earlier is None or now is None or earlier == now:
        return
    if now > earlier:
        yield f"Rung {now} ({RUNGS[now]}) is proven now."
    else:
        yield f"Rung {earlier} ({RUNGS[earlier]}) is not proven any more."


def _of_behaviour(before: Evaluation, after: Evaluation) -> Iterator[str]:
    earlier, now = _result(before, SignalName.SANDBOX), _result(after, SignalName.SANDBOX)
    if now is None:
        if earlier is not None:
            yield "Its services could not be tested."
        return
    cap = now.weighed.cap
    cap_before = None if earlier is None else earlier.weighed.cap
    if cap is not None and cap != cap_before:
        yield f"A critical finding: {cap.reason}"
    elif cap is None and cap_before is not None:
        yield "No critical finding is open any more."
    checks: Mapping[str, str] = {} if earlier is None else earlier.weighed.checks
    said = list(_of_checks(checks, now.weighed.checks))
    yield from said
    if earlier is None:
        yield "Its services were tested for the first time."
    elif not said and abs(earlier.weighed.value - now.weighed.value) >= _LEAST_MOVE:
        yield f"Behaviour is worth {now.weighed.value:g} of 100, after {earlier.weighed.value:g}."
    elif not said and earlier.weighed.confidence != now.weighed.confidence:
        yield "More or fewer checks of its behaviour could be made."


def _of_checks(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    failed = sorted(n for n, s in after.items() if s == "failed" and before.get(n) != "failed")
    passed = sorted(n for n, s in after.items() if s == "passed" and before.get(n) == "failed")
    lost = sorted(n for n, s in before.items() if s != "not_made" and _is_unmade(after, n))
    new = sum(s == "passed" and before.get(n) not in ("passed", "failed") for n, s in after.items())
    if failed:
        yield f"Failed: {_names(failed)}."
    if passed:
        yield f"Passed again: {_names(passed)}."
    if new:
        yield f"{new} more {'check was' if new == 1 else 'checks were'} passed."
    if lost:
        yield f"Could not be checked: {_names(lost)}."


def _is_unmade(after: Mapping[str, str], name: str) -> bool:
    return after.get(name, "not_made") == "not_made"


def _names(names: list[str]) -> str:
    more = len(names) - NAMES_SHOWN
    return ", ".join(names[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _of_reputation(before: Evaluation, after: Evaluation) -> Iterator[str]:
    name = SignalName.REGISTRY_8004
    earlier, now = _result(before, name), _result(after, name)
    if now is None:
        if earlier is not None:
            yield "Its reputation could not be read."
        return
    if earlier is None:
        yield "Its reputation could be read again."
    elif earlier.weighed.cap is None and now.weighed.cap is not None:
        yield now.weighed.cap.reason
    elif (earlier.weighed.value, earlier.weighed.confidence) != (
        now.weighed.value,
        now.weighed.confidence,
    ):
        yield (
            f"Reputation is worth {now.weighed.value:g} of 100 with confidence"
            f" {now.weighed.confidence:.2f}, after {earlier.weighed.value:g} with"
            f" {earlier.weighed.confidence:.2f}."
        )


def _result(evaluation: Evaluation, name: SignalName) -> SignalResult | None:
    return next((c for c in evaluation.collected if c.signal is name), None)
