"""What visits say together of a service's function, of calls, and of what a hidden visit saw."""

from dataclasses import replace

from assay.evaluation.history import FirstLooks, pool
from assay.evaluation.visits import CheckOutcome, Label, Timing, VisitRecord
from tests.evaluation.unit.test_history import NOW, visit

URL = "https://agent.example/a2a"


def works(hours: float, state: str = "functional", timing: Timing = "scheduled") -> VisitRecord:
    return replace(visit(hours, timing, answers="passed"), states={URL: state})


def function(*visits: VisitRecord) -> str | None:
    return pool(visits, NOW).functions.get(URL)


def calls(hours: float, made: int, failed: int, timing: Timing = "scheduled") -> VisitRecord:
    return replace(visit(hours, timing, answers="passed"), calls=(made, failed))


def answers(*visits: VisitRecord) -> str:
    return pool(visits, NOW).pooled["calls_answered"].outcome


def test_function_falls_by_two_of_three_visits_and_rises_by_three() -> None:
    good = [works(n) for n in range(5)]
    one = works(5, "not_functional")
    assert function(*good, one) == "functional"
    down = [*good, one, works(6), works(7, "unfinished")]
    assert function(*down) == "unfinished"
    assert function(*down, works(8), works(9)) == "unfinished"
    assert function(*down, works(8), works(9), works(10)) == "functional"


def test_no_trigger_makes_a_service_functional_or_takes_its_function_by_being_refused() -> None:
    bad = works(0, "not_functional", "triggered")
    assert function(bad, *(works(n * 2, timing="triggered") for n in range(1, 50))) != "functional"
    refused = [works(n * 2, "refuses", "triggered") for n in range(1, 50)]
    assert function(works(0), *refused) == "functional"


def test_what_says_nothing_of_function_is_left_to_the_newest_visit() -> None:
    assert function(works(0), works(1, "closed")) is None


def test_calls_without_an_answer_count_over_three_visits() -> None:
    good = [calls(n, 10, 0) for n in range(3)]
    assert answers(*good, calls(3, 10, 2)) == "pass"
    fallen = [*good, calls(3, 10, 3), calls(4, 10, 3)]
    assert answers(*fallen) == "fail"
    assert answers(*fallen, calls(5, 10, 0), calls(6, 10, 0)) == "fail"
    assert answers(*fallen, *(calls(5 + n, 10, 0) for n in range(3))) == "pass"


def test_calls_that_others_timed_count_only_before_we_have_come() -> None:
    first = calls(0, 10, 9, "triggered")
    assert answers(first) == "fail"
    assert answers(first, calls(1, 10, 0)) == "pass"
    flood = [calls(2 + n * 2, 10, 10, "triggered") for n in range(40)]
    assert answers(calls(0, 10, 0), *flood) == "pass"


def leaking(hours: float, label: Label, outcome: CheckOutcome) -> VisitRecord:
    critical = ("leaks",) if outcome == "failed" else ()
    return visit(hours, label=label, critical=critical, leaks=outcome)


def test_what_an_unannounced_visit_found_no_announced_one_closes() -> None:
    found = leaking(0, "unannounced", "failed")
    said = [leaking(1 + n, "announced", "passed") for n in range(9)]
    hidden = [leaking(20 + n, "unannounced", "passed") for n in range(3)]
    assert pool([found, *said, *hidden[:2]], NOW).open_critical == ("leaks",)
    assert pool([found, *said, *hidden], NOW).open_critical == ()


def test_a_trigger_shows_nothing_new_of_an_agent_that_was_found_there() -> None:
    absent = visit(0, "triggered", reachable="blocked")
    first = replace(visit(1, "triggered", answers="passed"), facts={"uri": "u"})
    later = replace(visit(3, "triggered", answers="passed", more="passed"), facts={"uri": "u"})
    moved = replace(later, facts={"uri": "v"})
    assert "more" not in pool([absent, first, later], NOW).pooled
    assert "more" in pool([absent, first, moved], NOW).pooled
    assert "more" in pool([absent, first, replace(later, timing="scheduled")], NOW).pooled
    assert FirstLooks([absent]).take(first)
    assert not FirstLooks([absent, first]).take(later)


def test_what_fails_now_and_then_is_closed_by_more_passes_than_what_always_fails() -> None:
    sighting = {"check": "leaks", "severity": "critical", "sightings": 1}
    once = replace(visit(0, leaks="passed"), findings=(sighting,), outcomes={})
    again = replace(once, at=visit(3).at)
    chancy = [once, visit(1, leaks="passed"), visit(2, leaks="passed"), again]
    passes = [visit(4 + n, leaks="passed") for n in range(5)]
    assert pool([*chancy, *passes[:4]], NOW).open_critical == ("leaks",)
    assert pool([*chancy, *passes], NOW).open_critical == ()
