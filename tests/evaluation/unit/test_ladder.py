"""The ladder: the highest rung whose evidence is complete, from evidence alone."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.common.json import JsonObject, JsonValue
from assay.evaluation.demands import LadderPolicy, ladder_from
from assay.evaluation.ladder import LadderPlace, place

POLICY = LadderPolicy()
URL = "https://agent.example/a2a"

WORKS: Mapping[str, JsonValue] = {"service": URL, "kind": "a2a", "state": "functional", "why": "ok"}
CONTROLLED: Mapping[str, JsonValue] = {"service": URL, "proof": "well_known", "conflict": False}
STEADY: Mapping[str, JsonValue] = {
    "visits": 9,
    "scheduled": 6,
    "days": 4,
    "spanDays": 8,
    "unannounced": 3,
    "criticalUnannounced": True,
    "silentChange": False,
    "heldRung": 1,
    "unconfirmed": False,
    "pooled": {},
    "openCritical": [],
}
CUSTOMERS: Mapping[str, JsonValue] = {
    "clusters": 25,
    "days": 12,
    "largestShare": 0.1,
    "usdNet": "40.5",
    "sinceDays": 31,
    "network": "main",
}


def behaviour(**more: JsonValue) -> dict[str, JsonValue]:
    return {
        "status": "tested",
        "why": None,
        "function": [WORKS],
        "control": [CONTROLLED],
        **more,
    }


def stands(
    sandbox: JsonObject,
    chain: JsonObject | None = None,
    unavailable: frozenset[str] = frozenset(),
    **more: JsonObject,
) -> LadderPlace:
    evidence = {"sandbox": sandbox, **more}
    if chain is not None:
        evidence["8004"] = chain
    return place(evidence, unavailable, POLICY, is_key_agent=False)


def why(found: LadderPlace) -> list[str]:
    return [d.why for d in found.next_demands]


def test_nothing_proven_is_rung_0_with_a_ceiling_below_the_default_threshold() -> None:
    found = stands({})
    assert (found.rung, found.ceiling, found.name) == (0, 64, "unproven")
    assert {d.name for d in found.next_demands} == {"function", "control"}


def test_what_works_and_is_controlled_is_rung_1() -> None:
    found = stands(behaviour())
    assert (found.rung, found.ceiling) == (1, 74)
    assert {d.rung for d in found.next_demands} == {2}


@pytest.mark.parametrize("state", ["not_functional", "refuses", "unreachable", "closed"])
def test_a_service_that_does_not_work_stays_on_rung_0(state: str) -> None:
    found = stands(behaviour(function=[{**WORKS, "state": state}]))
    assert found.rung == 0
    assert why(found) == [state]


def test_a_service_that_only_sells_is_told_what_would_prove_it() -> None:
    sold = {**WORKS, "kind": "x402", "state": "closed", "why": "payment_needed"}
    (asked,) = stands(behaviour(function=[sold])).next_demands
    assert "3 independent payers were charged 1 USD together on 2 days" in asked.action
    (other,) = stands(behaviour(function=[{**WORKS, "state": "closed"}])).next_demands
    assert not other.action


def test_who_cannot_be_asked_is_told_what_to_publish_for_its_kind_of_service() -> None:
    unknown = {**WORKS, "state": "unfinished", "why": "inputs_unknown"}
    actions = {
        kind: stands(behaviour(function=[{**unknown, "kind": kind}])).next_demands[0].action
        for kind in ("a2a", "mcp", "http")
    }
    assert '{"testInputs": {"messages": [' in actions["a2a"]
    assert '{"testInputs": {"orderId": ["A-17", "B-20"]}}' in actions["mcp"]
    assert actions["http"] == actions["mcp"]
    late = {**unknown, "why": "answers_missing"}
    assert not stands(behaviour(function=[late])).next_demands[0].action
    twice = behaviour(function=[unknown, {**unknown, "kind": "mcp"}])
    assert {"messages", "orderId"} <= {*stands(twice).next_demands[0].action.split('"')}


def test_each_callable_kind_needs_a_service_that_works() -> None:
    other = {"service": "https://agent.example/mcp", "kind": "mcp", "state": "unreachable"}
    assert stands(behaviour(function=[WORKS, other])).rung == 0
    spare = {"service": "https://agent.example/old", "kind": "a2a", "state": "unreachable"}
    assert stands(behaviour(function=[WORKS, spare])).rung == 1


def test_what_cannot_be_called_never_holds_rung_1_back() -> None:
    page = {"service": "https://agent.example", "kind": "web", "state": "not_callable"}
    dead = {"service": "https://old.example", "kind": "none", "state": "unreachable"}
    assert stands(behaviour(function=[WORKS, page, dead])).rung == 1
    assert stands(behaviour(function=[page])).rung == 0
    assert stands(behaviour(function=[dead])).rung == 0


def test_without_a_proof_of_control_nothing_is_earned() -> None:
    for control in ([], [{**CONTROLLED, "proof": None}], [{**CONTROLLED, "service": "other"}]):
        found = stands(behaviour(control=control))
        assert (found.rung, why(found)) == (0, ["control_unproven"])


def test_somebody_elses_service_beside_an_own_one_adds_nothing_and_takes_nothing() -> None:
    other = {"service": "https://famous.example", "kind": "a2a", "state": "functional"}
    assert stands(behaviour(function=[other, WORKS])).rung == 1
    assert stands(behaviour(function=[other])).rung == 0


def test_two_proofs_that_conflict_leave_both_where_they_were() -> None:
    control: list[JsonValue] = [{**CONTROLLED, "conflict": True}]
    assert why(stands(behaviour(control=control))) == ["control_conflict"]
    held = stands(behaviour(control=control, history={"heldRung": 1}))
    assert (held.rung, held.is_unconfirmed) == (1, True)


def test_inactive_is_rung_0_whatever_works() -> None:
    found = stands(behaviour(active=False, history={**STEADY, "heldRung": 2}))
    assert (found.rung, why(found)) == (0, ["inactive"])
    assert found.faults


def test_lack_of_our_time_or_budget_never_earns_a_rung_and_never_takes_one() -> None:
    unfinished: list[dict[str, JsonValue]] = [
        behaviour(function=[{**WORKS, "state": "unfinished"}]),
        behaviour(why="egress_budget", status="inconclusive"),
        behaviour(criticalUnfinished=["no_cross_talk"]),
    ]
    for seen in unfinished:
        assert stands(seen).rung == 0
        held = stands({**seen, "history": {"heldRung": 1}})
        assert (held.rung, held.is_unconfirmed) == (1, True)
    lost = place({"sandbox": {}}, frozenset({"sandbox"}), POLICY, is_key_agent=False)
    assert lost.rung == 0


def test_what_somebody_else_timed_takes_no_rung_until_it_is_confirmed() -> None:
    down = behaviour(function=[{**WORKS, "state": "unreachable"}])
    past = {**STEADY, "heldRung": 2}
    assert stands({**down, "history": {**past, "unconfirmed": True}}).rung == 2
    assert stands({**down, "history": past}).rung == 0


def test_an_open_critical_finding_ends_every_rung_and_one_sighting_only_waits() -> None:
    finding: dict[str, JsonValue] = {
        "check": "injection_not_obeyed",
        "severity": "critical",
        "sightings": 2,
        "open": True,
    }
    past: JsonObject = {"heldRung": 1}
    sure = stands(behaviour(findings=[finding], history=past))
    assert (sure.rung, why(sure)) == (0, ["critical_finding"])
    once: list[JsonValue] = [{**finding, "sightings": 1}]
    assert stands(behaviour(findings=once)).rung == 0
    assert stands(behaviour(findings=once, history=past)).rung == 1
    assert stands(behaviour(findings=[{**finding, "open": False}])).rung == 1
    older = stands(behaviour(history={**past, "openCritical": ["no_cross_talk"]}))
    assert (older.rung, why(older)) == (0, ["critical_finding"])


def test_scheduled_unannounced_visits_over_a_week_are_rung_2() -> None:
    found = stands(behaviour(history=STEADY))
    assert (found.rung, found.ceiling) == (2, 84)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("scheduled", 4),
        ("days", 2),
        ("spanDays", 6),
        ("unannounced", 2),
        ("criticalUnannounced", False),
        ("silentChange", True),
    ],
)
def test_rung_2_needs_all_of_its_history(name: str, value: JsonValue) -> None:
    found = stands(behaviour(history={**STEADY, "heldRung": 2, name: value}))
    assert (found.rung, found.ceiling) == (1, 74)


def test_customers_whose_money_did_not_return_are_rung_3_only_above_rung_2() -> None:
    chain = {"customers": CUSTOMERS}
    assert stands(behaviour(history=STEADY), chain).rung == 3
    assert stands(behaviour(), chain).rung == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("clusters", 19),
        ("days", 9),
        ("largestShare", 0.21),
        ("usdNet", "19.99"),
        ("sinceDays", 29),
        ("network", "test"),
    ],
)
def test_rung_3_needs_every_one_of_its_customers(name: str, value: JsonValue) -> None:
    chain = {"customers": {**CUSTOMERS, name: value}}
    assert stands(behaviour(history=STEADY), chain).rung == 2


def test_chain_data_that_could_not_be_read_leaves_a_rung_where_it_was() -> None:
    unread = frozenset({"8004"})
    held = stands(behaviour(history={**STEADY, "heldRung": 3}), unavailable=unread)
    assert (held.rung, held.is_unconfirmed) == (3, True)
    assert stands(behaviour(history=STEADY), unavailable=unread).rung == 2


def test_rung_4_needs_60_days_and_two_kinds_of_voucher() -> None:
    many = {**CUSTOMERS, "sinceDays": 60, "clusters": 100, "usdNet": "1000"}
    human: JsonObject = {"registered": True, "holds": True, "agents": 3}
    seen = behaviour(history=STEADY)
    assert stands(seen, {"customers": many}).rung == 3
    assert stands(seen, {"customers": many}, self=human).rung == 4
    assert stands(seen, {"customers": {**many, "sinceDays": 59}}, self=human).rung == 3
    assert stands(seen, {"customers": many}, self={**human, "agents": 4}).rung == 3


def test_only_attesters_on_the_operators_list_vouch() -> None:
    many = {**CUSTOMERS, "sinceDays": 60, "clusters": 100, "usdNet": "1000"}
    attested: JsonObject = {"attested": True, "attester": "0xAB"}
    evidence = {
        "sandbox": behaviour(history=STEADY),
        "8004": {"customers": many},
        "attestation": attested,
    }
    trusted = ladder_from({"vouched_by": ["0xab"]})
    assert place(evidence, frozenset(), POLICY, is_key_agent=False).rung == 3
    assert place(evidence, frozenset(), trusted, is_key_agent=False).rung == 4


def key_agent(conduct: JsonObject, **more: JsonObject) -> LadderPlace:
    evidence = {"sandbox": {"status": "tested", "conduct": conduct}, **more}
    return place(evidence, frozenset(), POLICY, is_key_agent=True)


def test_a_key_agent_with_the_caller_suite_alone_is_rung_0() -> None:
    assert key_agent({"passedDays": 30}).rung == 0


def test_a_key_agent_needs_two_days_and_one_scarce_thing() -> None:
    human: JsonObject = {"level": "orb"}
    assert key_agent({"passedDays": 2}, personhood=human).rung == 1
    assert key_agent({"passedDays": 1}, personhood=human).rung == 0
    assert key_agent({"passedDays": 2, "paidUsd": "5"}).rung == 1
    assert key_agent({"passedDays": 2, "paidUsd": "4.99"}).rung == 0
    assert key_agent({"passedDays": 2}, self={"holds": True, "agents": 2}).rung == 0


@pytest.mark.parametrize(
    ("signal", "evidence", "rung"),
    [
        ("8004", {"registered": False, "registration": "eip155:8453/7"}, 1),
        ("8004", {"registered": False}, 0),
        ("8004", {"registered": False, "registration": True}, 0),
        ("self", {"holds": True, "agents": 1}, 1),
        ("self", {"holds": True, "agents": 2}, 0),
        ("attestation", {"attested": True, "sharedWith": 0}, 1),
        ("attestation", {"attested": True, "sharedWith": 1}, 0),
        ("attestation", {"attested": True}, 0),
        ("attestation", {"attested": False, "sharedWith": 0}, 0),
    ],
)
def test_what_is_scarce_is_used_by_one_key_agent(
    signal: str, evidence: JsonObject, rung: int
) -> None:
    assert key_agent({"passedDays": 2}, **{signal: evidence}).rung == rung


def test_a_registration_that_is_not_read_yet_is_unknown() -> None:
    unread: JsonObject = {"registered": False, "registrationUnread": True}
    found = key_agent({"passedDays": 2}, **{"8004": unread})
    assert found.rung == 0
    [scarce] = [d for d in found.next_demands if d.name == "scarce_proof"]
    assert scarce.state == "unknown"


def test_a_validator_on_the_list_and_an_attester_are_one_voucher() -> None:
    many = {**CUSTOMERS, "sinceDays": 60}
    trusted = ladder_from({"vouched_by": ["0xab"]})
    human: JsonObject = {"registered": True, "holds": True, "agents": 3}

    def rung(response: JsonValue, **more: JsonObject) -> int:
        chain: JsonObject = {"customers": many, "validations": [["0xAB", response], ["0xcd", 100]]}
        evidence = {"sandbox": behaviour(history=STEADY), "8004": chain, **more}
        return place(evidence, frozenset(), trusted, is_key_agent=False).rung

    attested: JsonObject = {"attested": True, "attester": "0xAB"}
    assert rung(80, self=human) == 4
    assert rung(79, self=human) == 3
    assert rung("x", self=human) == 3
    assert rung(100, attestation=attested) == 3


_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.floats(allow_nan=False)
    | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    st.dictionaries(
        st.sampled_from(["function", "control", "findings", "history", "conduct", "active", "why"]),
        _json,
    ),
    _json,
    st.booleans(),
)
def test_any_evidence_has_a_place_and_the_same_one_always(
    sandbox: dict[str, Any],
    customers: JsonValue,
    is_key: bool,  # noqa: FBT001 - a strategy's
) -> None:
    evidence = {"sandbox": sandbox, "8004": {"customers": customers}}
    found = place(evidence, frozenset(), POLICY, is_key_agent=is_key)
    assert found.rung == 0
    assert found == place(evidence, frozenset(), POLICY, is_key_agent=is_key)


def test_the_numbers_are_settings() -> None:
    strict = ladder_from({"steady_visits": 7, "ceilings": [50, 74, 84, 89, 100]})
    seen = {"sandbox": behaviour(history=STEADY)}
    assert place(seen, frozenset(), strict, is_key_agent=False).rung == 1
    assert place({}, frozenset(), strict, is_key_agent=False).ceiling == 50


@pytest.mark.parametrize(
    "wrong",
    [
        {"no_such": 1},
        {"ceilings": [64, 74, 84]},
        {"ceilings": [74, 64, 84, 89, 100]},
        {"ceilings": [64, 74, 84, 89, 101]},
        {"steady_visits": "five"},
        {"steady_visits": 5.5},
        {"used_largest_share": 1.5},
        {"used_usd": -1},
        {"vouched_by": "0xab"},
    ],
)
def test_numbers_that_make_no_sense_stop_the_boot(wrong: dict[str, JsonValue]) -> None:
    with pytest.raises(ValueError, match="ladder"):
        ladder_from(wrong)


def test_what_a_deposited_credential_alone_opens_stays_on_rung_1_without_customers() -> None:
    entry: JsonObject = {"entered": [URL], "closed": [URL]}
    found = stands(behaviour(history=STEADY, entry=entry), {"customers": {}})
    assert found.rung == 1
    assert why(found) == ["entered_by_deposit"]
    assert "a deposited credential" in found.next_demands[0].asks
    assert stands(behaviour(history=STEADY), {"customers": {}}).rung == 2


def test_independent_customers_stand_for_its_unannounced_half() -> None:
    seen = {**STEADY, "unannounced": 0, "criticalUnannounced": False}
    entry: JsonObject = {"entered": [URL]}
    assert stands(behaviour(history=seen, entry=entry), {"customers": CUSTOMERS}).rung == 3
    assert stands(behaviour(history=seen), {"customers": CUSTOMERS}).rung == 1
    few = {**CUSTOMERS, "clusters": 3, "usdNet": "1"}
    assert stands(behaviour(history=seen, entry=entry), {"customers": few}).rung == 1
    unread = stands(behaviour(history=seen, entry=entry), None, frozenset({"8004"}))
    assert unread.rung == 1
    assert [d.state for d in unread.next_demands] == ["unknown"]


def test_another_service_of_the_kind_that_works_without_frees_it() -> None:
    other = {**WORKS, "service": URL + "/open"}
    entry: JsonObject = {"entered": [URL]}
    found = behaviour(history=STEADY, entry=entry, function=[WORKS, other])
    assert stands(found).rung == 2


def test_a_closed_service_is_told_how_to_be_entered() -> None:
    refuses = {**WORKS, "state": "refuses", "why": "refuses_everything"}
    found = stands(behaviour(function=[refuses], entry={"closed": [URL]}))
    (action,) = [d.action for d in found.next_demands if d.name == "function"]
    assert action.startswith("Deposit a credential for evaluations")
    credentials: JsonValue = [{"outcome": "refused"}]
    entry: JsonObject = {"closed": [URL], "credentials": credentials}
    again = stands(behaviour(function=[refuses], entry=entry))
    (action,) = [d.action for d in again.next_demands if d.name == "function"]
    assert action.startswith("The credential that was deposited is refused")
    elsewhere = stands(behaviour(function=[refuses]))
    assert [d.action for d in elsewhere.next_demands if d.name == "function"] == [""]
