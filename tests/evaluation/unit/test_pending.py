"""When a visit that was made counts as unfinished."""

import pytest

from assay.common.json import JsonObject
from assay.evaluation.accumulation import VisitHistory
from assay.evaluation.model import UNFINISHED, Evidence, SignalName, SignalResult, SignalScore
from assay.evaluation.visits import TRIGGERED
from tests.support.fakes.clock import FrozenClock


@pytest.mark.parametrize(
    ("state", "why", "pending"),
    [
        ("functional", "answers_vary", None),
        ("unfinished", "answers_missing", UNFINISHED),
        ("unfinished", "waiting_for_budget", None),
    ],
)
def test_services_whose_turn_is_later_leave_no_visit_unfinished(
    state: str, why: str, pending: str | None
) -> None:
    """Else an agent with more services than one visit proves would never be evaluated."""
    works: JsonObject = {"service": "https://a.test/1", "kind": "a2a", "state": "functional"}
    row: JsonObject = {"service": "https://a.test/2", "kind": "a2a", "state": state, "why": why}
    evidence = Evidence({"status": "tested", "function": [works, row]})
    collected = [SignalResult(SignalName.SANDBOX, evidence, SignalScore(50.0, 0.0))]
    history = VisitHistory(None, FrozenClock(), lambda *_: [])  # type: ignore[arg-type]
    assert history.pending(collected, {}, TRIGGERED) == pending
