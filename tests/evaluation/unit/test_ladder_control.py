"""What control found out, on the ladder: held at rung 0, followed, days since a transfer."""

import pytest

from assay.common.json import JsonObject, JsonValue
from assay.evaluation.demands import Demand, LadderPolicy
from assay.evaluation.ladder import LadderPlace, place
from tests.evaluation.unit.test_ladder import (
    CONTROLLED,
    CUSTOMERS,
    STEADY,
    URL,
    WORKS,
    behaviour,
    stands,
    why,
)

RIVAL = "eip155:1/7"
UNPROVEN: JsonObject = {
    "service": URL,
    "proof": None,
    "conflict": False,
    "publish": {
        "file": {"url": "https://agent.example/.well-known/x.json", "body": '{"a": 1}'},
        "record": {"name": "_x.agent.example", "type": "TXT", "value": "agent=1"},
    },
}


def demand(found: LadderPlace, name: str) -> Demand:
    return next(d for d in found.next_demands if d.name == name)


@pytest.mark.parametrize(
    ("code", "identity"),
    [
        ("clone", {"clone": {"agent": RIVAL, "likeness": 0.97}}),
        ("same_site", {"sameSite": [{"agent": RIVAL, "check": "no_poisoning", "by": "site"}]}),
        ("imitation", {"imitates": {"agent": RIVAL, "scored": True}}),
        ("reputation_follows", {"badReputation": [{"agent": RIVAL, "by": "address"}]}),
    ],
)
def test_whom_control_holds_back_is_on_rung_0_whatever_it_held(
    code: str, identity: JsonObject
) -> None:
    found = stands(behaviour(identity=identity, history={"heldRung": 2}))
    assert (found.rung, found.ceiling, why(found)) == (0, 64, [code])
    assert RIVAL in demand(found, code).asks
    assert demand(found, code).action
    assert found.faults


def test_a_copy_that_passed_an_unannounced_visit_and_a_shown_imitation_are_not_held_back() -> None:
    clone: JsonObject = {"clone": {"agent": RIVAL, "likeness": 0.97}}
    assert stands(behaviour(identity=clone, history={**STEADY, "unannounced": 1})).rung == 1
    assert stands(behaviour(identity={"imitates": {"agent": RIVAL, "scored": False}})).rung == 1


def test_what_robots_txt_closes_to_us_is_rung_0_with_the_lines_to_change() -> None:
    row: JsonObject = {"kind": "http", "endpoint": "https://agent.example/b", "state": "opted_out"}
    found = stands(behaviour(services=[row], history={"heldRung": 1}))
    assert (found.rung, why(found)) == (0, ["closed_by_robots"])
    assert "https://agent.example/robots.txt" in demand(found, "closed_by_robots").action
    assert not found.faults  # it is unknown, and not bad


def test_open_critical_findings_of_others_under_the_same_control_count_as_own() -> None:
    identity: JsonObject = {"inherited": [{"agent": RIVAL, "check": "no_poisoning", "by": "at"}]}
    found = stands(behaviour(identity=identity, history={"heldRung": 1}))
    assert (found.rung, why(found)) == (0, ["critical_finding"])
    assert RIVAL in demand(found, "no_critical_finding").asks
    assert found.faults


def test_after_a_transfer_rungs_2_to_4_count_no_day_before_it() -> None:
    chain: JsonObject = {"customers": CUSTOMERS}
    for days, rung in [(0, 1), (6, 1), (7, 2), (29, 2), (30, 3)]:
        seen = behaviour(history={**STEADY, "heldRung": 3}, identity={"heldDays": days})
        assert stands(seen, chain).rung == rung
    assert stands(behaviour(history=STEADY, identity={}), chain).rung == 3


def test_control_that_could_not_be_asked_for_is_unknown_and_not_missing() -> None:
    unasked: JsonObject = {**UNPROVEN, "unfinished": True}
    for control in ([unasked], [UNPROVEN, unasked]):
        new = stands(behaviour(control=control))
        assert (new.rung, new.is_unconfirmed) == (0, False)
        assert demand(new, "control").state == "unknown"
        held = stands(behaviour(control=control, history={"heldRung": 1}))
        assert (held.rung, held.is_unconfirmed) == (1, True)
    assert stands(behaviour(control=[UNPROVEN], history={"heldRung": 1})).rung == 0


def test_a_visit_that_was_cut_short_before_control_was_asked_takes_no_rung() -> None:
    cut: dict[str, JsonValue] = {"status": "inconclusive", "why": "egress_budget"}
    assert stands({**cut, "history": {"heldRung": 1}}).rung == 1
    assert stands({**cut, "function": [WORKS], "history": {"heldRung": 1}}).rung == 1
    assert stands(cut).rung == 0


def test_unproven_control_names_the_file_and_the_record_that_prove_it() -> None:
    action = demand(stands(behaviour(control=[UNPROVEN])), "control").action
    for part in ("https://agent.example/.well-known/x.json", '{"a": 1}', "_x.agent.example"):
        assert part in action
    assert "agent=1" in action


def test_a_claim_nobody_proved_takes_nothing_from_who_is_claimed() -> None:
    """A rival is only a row of the one who claims; the other's evidence has no word of it."""
    claims: JsonObject = {**CONTROLLED, "conflict": False, "with": []}
    assert stands(behaviour(control=[claims])).rung == 1


def test_two_conflicting_proofs_name_the_other_and_leave_both_where_they_were() -> None:
    row: JsonObject = {**CONTROLLED, "conflict": True, "with": [RIVAL]}
    new, held = (
        place(
            {"sandbox": behaviour(control=[row], **more)},
            frozenset(),
            LadderPolicy(),
            is_key_agent=False,
        )
        for more in ({}, {"history": {"heldRung": 1}})
    )
    assert (new.rung, held.rung) == (0, 1)
    assert RIVAL in demand(new, "control").asks


def test_where_no_record_can_be_set_the_file_alone_is_what_to_publish() -> None:
    file: JsonObject = {"url": "https://agent.example/.well-known/x.json", "body": "{}"}
    alone = {**UNPROVEN, "publish": {"file": file}}
    neither = {**UNPROVEN, "publish": {}}
    found = [stands(behaviour(function=[WORKS], control=[row])) for row in (alone, neither)]
    assert [demand(one, "control").action for one in found] == [
        "Serve https://agent.example/.well-known/x.json with {}.",
        "",
    ]
