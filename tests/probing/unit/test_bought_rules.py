"""What answers that were bought prove of a service that sells. Pure."""

import pytest

from assay.common.json import JsonObject
from assay.probing.function.payment import with_settlements
from assay.probing.function.service import function_rows
from assay.probing.function.verdicts import judge
from tests.evaluation.unit.test_payment_rules import DEMAND

SOLD: JsonObject = {
    "clusters": 9,
    "days": 9,
    "usdNet": "9",
    "needs": {"clusters": 3, "days": 2, "usdNet": "1"},
}


def answer(asked: str, said: str, found: str = "ok") -> JsonObject:
    return {
        "role": "call",
        "tool": "/height",
        "asked": f'/height {{"city": "{asked}"}}',
        "answer": said,
        "class": found,
        "valid": found == "ok",
        "input": True,
    }


def judged(*rows: JsonObject, **more: object) -> tuple[str, str]:
    bought: JsonObject = {"service": "s", "kind": "http", "asked": [*rows], **more}  # type: ignore[dict-item]
    found = judge({**DEMAND, "bought": bought})
    return found.state, found.why


OSLO, ROME = answer("Oslo", "23 metres"), answer("Rome", "37 metres")


def test_answers_that_differ_as_inputs_do_prove_it() -> None:
    assert judged(OSLO, ROME) == ("functional", "bought")
    assert judged(OSLO, ROME, OSLO, ROME) == ("functional", "bought")


@pytest.mark.parametrize(
    ("rows", "taken", "verdict"),
    [
        ((OSLO,), 10_000, ("closed", "payment_needed")),  # one answer may be a template
        ((answer("Oslo", "high"), answer("Rome", "high")), 2, ("not_functional", "same_answer")),
        ((answer("Oslo", "Oslo"), answer("Rome", "Rome")), 2, ("not_functional", "same_answer")),
        ((OSLO, ROME, answer("Oslo", "911 feet")), 3, ("not_functional", "made_up")),
        ((answer("Oslo", "", "broken"),), 10_000, ("not_functional", "paid_for_nothing")),
        ((answer("Oslo", "", "broken"),), 0, ("closed", "payment_needed")),
        ((answer("Oslo", "", "closed"),), 0, ("closed", "payment_needed")),
        ((answer("Oslo", "", "timeout"),), 0, ("closed", "payment_needed")),
        ((), 0, ("closed", "payment_needed")),
    ],
)
def test_less_proves_nothing_and_money_for_nothing_counts_against_it(
    rows: tuple[JsonObject, ...], taken: int, verdict: tuple[str, str]
) -> None:
    assert judged(*rows, taken=taken) == verdict


def test_a_purchase_never_takes_from_a_seller_what_its_customers_prove() -> None:
    failed: JsonObject = {"service": "s", "kind": "http", "asked": [], "taken": 10_000}
    (seller,) = with_settlements([{**DEMAND, "bought": failed}], SOLD)
    assert judge(seller).why == "settled"


@pytest.mark.parametrize(
    ("seen", "rows", "document", "state"),
    [
        ([], (OSLO, ROME), "d", "functional"),
        ([], (OSLO, ROME), "another", "refuses"),
        ([], (OSLO,), "d", "refuses"),
        ([answer("Oslo", "high"), answer("Rome", "high")], (OSLO, ROME), "d", "not_functional"),
    ],
)
def test_a_document_works_where_what_it_lists_was_bought(
    seen: list[JsonObject], rows: tuple[JsonObject, ...], document: str, state: str
) -> None:
    """Unless something that it lists was answered wrongly for nothing."""
    bought: JsonObject = {"service": "s", "kind": "http", "asked": [*rows], "document": document}
    paper: JsonObject = {
        "service": "d",
        "kind": "http",
        "documented": True,
        "asked": [*(seen or [answer("Oslo", "", "closed")])],
    }
    _, found = function_rows([{**DEMAND, "bought": bought}, paper])
    assert found["state"] == state


def test_what_was_bought_counts_for_a_sound_demand_only() -> None:
    bought: JsonObject = {"service": "s", "kind": "http", "asked": [OSLO, ROME]}
    for member, why in (("payee", "payee_not_controlled"), ("steady", "price_moves")):
        found = judge({**DEMAND, member: False, "bought": bought})
        assert (found.state, found.why) == ("not_functional", why)
