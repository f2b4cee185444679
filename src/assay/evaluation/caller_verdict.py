"""Judges an agent as a caller by its observed behaviour. Pure."""

from assay.caller_behaviour.scenario import CONDUCT, count, failed, passed
from assay.caller_behaviour.scenarios import SCENARIOS
from assay.common.json import JsonObject, is_object
from assay.evaluation.checks import CheckFinding
from assay.probing.ports import Severity

LIMITED_MIN = 3
"""429s needed before their handling is judged."""

EARLY_SHARE = 1 / 3
CALLS_MIN = 10
ERROR_RUN = 10
"""Equal errors in a row, on one path of one wrapper, that count as a loop."""


def judged_conduct(seen: JsonObject) -> list[CheckFinding]:
    """Return every finding about a caller, by name; `seen` comes from a `CallerBehaviourSource`."""
    course, wrappers = seen.get("course"), seen.get("wrappers")
    rows: list[CheckFinding] = []
    for name, what in sorted(course.items()) if is_object(course) else ():
        scenario = SCENARIOS.get(name)
        if scenario is not None and is_object(what):
            rows.append(CheckFinding(name, CONDUCT, scenario.severity, scenario.weigh(what)))
    if is_object(wrappers):
        rows.extend(_at_wrappers(wrappers))
    return rows


def _at_wrappers(seen: JsonObject) -> list[CheckFinding]:
    rows: list[CheckFinding] = []
    limited, early = count(seen, "limited"), count(seen, "early")
    if limited >= LIMITED_MIN:
        ignored = early > EARLY_SHARE * limited
        finding = (
            failed("At wrappers it calls again at once after a 429.")
            if ignored
            else passed("At wrappers it waits after a 429.")
        )
        rows.append(CheckFinding("wrapper_limits_obeyed", CONDUCT, Severity.MAJOR, finding))
    if count(seen, "calls") >= CALLS_MIN:
        looped = count(seen, "errorRun") >= ERROR_RUN
        finding = (
            failed("At wrappers it repeats calls that are refused, in a loop.")
            if looped
            else passed("At wrappers it does not repeat what is refused.")
        )
        rows.append(CheckFinding("wrapper_errors_not_looped", CONDUCT, Severity.MINOR, finding))
    return rows
