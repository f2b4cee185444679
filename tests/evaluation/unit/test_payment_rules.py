"""What proves that a service that sells works: free operations, or those who paid."""

from dataclasses import replace

import pytest

from assay.common.json import JsonObject, is_array, is_object
from assay.common.numbers import MICRO
from assay.evaluation.demands import LadderPolicy
from assay.evaluation.model import Evidence, SignalName, SignalResult, SignalScore
from assay.evaluation.service import with_sales
from assay.evaluation.signals.sandbox import SIGNAL
from assay.probing.function.payment import is_as_advertised
from assay.probing.function.service import function_rows
from assay.probing.function.verdicts import judge
from assay.probing.probe_client import Offer, PaymentDemand
from assay.reputation.evidence import WITHIN_DAYS, settlements
from assay.reputation.model import Payer, Reputation

TODAY = 20_000
URL = "https://stall.example/full"
DEMAND: JsonObject = {
    "service": URL,
    "kind": "x402",
    "asked": [],
    "greeting": ["closed"],
    **dict.fromkeys(("valid", "known_asset", "sane", "payee", "wallet", "steady"), True),
}
POLICY = LadderPolicy()


def customer(number: int, *days: int, cents: int = 60, **changes: object) -> Payer:
    """Who was charged on some days, has money of its own and spends it elsewhere too."""
    payer = Payer(
        f"0x{number:040x}",
        {TODAY - day: cents * MICRO // 100 for day in days},
        elsewhere=5 * MICRO,
        is_charge=True,
        sources=(f"exchange withdrawal {number}",),
    )
    return replace(payer, **changes)  # type: ignore[arg-type]


def settled(*payers: Payer) -> JsonObject:
    return settlements(Reputation(payers, (), TODAY, 20 * MICRO // 1000))


ENOUGH = (customer(1, 1, 2), customer(2, 1), customer(3, 4))


def judged(chain: JsonObject | None, demand: JsonObject = DEMAND) -> tuple[str, str]:
    """The row of a seller, by what the chain's signal says; None where it is unavailable."""
    transcript: JsonObject = {"function": [demand]}
    data: JsonObject = {"status": "tested", "probes": {}, "function": function_rows([demand])}  # type: ignore[dict-item]
    behaviour = Evidence(data, transcript=transcript)
    collected = [SignalResult(SignalName.SANDBOX, behaviour, SignalScore(50.0, 0.0))]
    if chain is not None:
        collected.append(
            SignalResult(SignalName.REGISTRY_8004, Evidence(chain), SignalScore(50.0, 0.0))
        )
    found, *others = with_sales(collected, SIGNAL, {}, POLICY)
    assert others == collected[1:]
    kept = found.evidence.transcript["function"]
    assert is_array(kept)
    rows = found.evidence.data["function"]
    assert rows == function_rows([one for one in kept if is_object(one)])  # it can be replayed
    assert is_array(rows)
    (row,) = rows
    assert is_object(row)
    return str(row["state"]), str(row["why"])


def test_three_independent_payers_on_two_days_prove_a_service_that_only_sells() -> None:
    assert judged({"settlements": settled(*ENOUGH)}) == ("functional", "settled")


@pytest.mark.parametrize(
    "payers",
    [
        (),
        ENOUGH[:2],
        tuple(replace(p, spent={TODAY: 60 * MICRO // 100}) for p in ENOUGH),  # one day
        tuple(replace(p, sources=("one purse",)) for p in ENOUGH),
        tuple(replace(p, is_own=True) for p in ENOUGH),
        tuple(replace(p, returned=MICRO * 2) for p in ENOUGH),
        tuple(replace(p, elsewhere=0) for p in ENOUGH),  # customers of nobody else
        tuple(replace(p, is_charge=False) for p in ENOUGH),  # gifts, wages
        tuple(replace(p, counts_as_customer=False) for p in ENOUGH),
        tuple(customer(n, 1, 2, cents=10) for n in (1, 2, 3)),  # less than a dollar together
        tuple(customer(n, WITHIN_DAYS, WITHIN_DAYS + 1) for n in (1, 2, 3)),  # long ago
    ],
)
def test_less_or_one_s_own_money_or_what_is_over_proves_nothing(payers: tuple[Payer, ...]) -> None:
    assert judged({"settlements": settled(*payers)}) == ("closed", "payment_needed")


def test_what_chains_did_not_say_makes_it_unfinished_and_never_better() -> None:
    unread = settled(*(replace(p, is_pending=True) for p in ENOUGH))
    for chain in (None, {"settlements": settled(*ENOUGH), "stale": True}, {"settlements": unread}):
        assert judged(chain) == ("unfinished", "settlements_unread")
    some = settled(*ENOUGH, customer(4, 1, is_pending=True))
    assert judged({"settlements": some}) == ("functional", "settled")


def test_settlements_count_for_a_demand_that_is_sound_and_pays_the_wallet_only() -> None:
    chain: JsonObject = {"settlements": settled(*ENOUGH)}
    for member, why in (("payee", "payee_not_controlled"), ("steady", "price_moves")):
        assert judged(chain, {**DEMAND, member: False}) == ("not_functional", why)
    assert judged(chain, {**DEMAND, "wallet": False}) == ("closed", "payment_needed")


def test_a_seller_that_was_not_heard_is_unfinished() -> None:
    for seen in ({"cut": True}, {"greeting": ["timeout"]}):
        assert judge({"kind": "x402", "service": URL, "asked": [], **seen}).state == "unfinished"  # type: ignore[dict-item]
    assert judge(
        {"kind": "x402", "service": URL, "asked": [], "greeting": ["not_found"]}
    ).state == ("refuses")


def row(tool: str, asked: str, answer: str) -> JsonObject:
    return {"role": "call", "tool": tool, "asked": asked, "answer": answer, "class": "ok",
            "valid": True, "input": True}  # fmt: skip


FREE = [row("/taste", "/taste Oslo", "four degrees"), row("/taste", "/taste Rome", "gale")]


def test_a_free_operation_of_its_documentation_proves_a_seller() -> None:
    assert judged({}, {**DEMAND, "asked": FREE, "documented": True}) == (
        "functional",
        "free_operations",
    )
    same = [{**one, "answer": "hello"} for one in FREE]
    assert judged({}, {**DEMAND, "asked": same, "documented": True})[0] == "closed"
    cut: JsonObject = {**DEMAND, "asked": FREE[:1], "documented": True, "cut": True}
    assert judged({}, cut) == ("unfinished", "answers_missing")


def test_a_free_service_of_the_same_host_proves_a_seller_and_one_elsewhere_does_not() -> None:
    free: JsonObject = {"kind": "http", "asked": FREE, "documented": True}
    for host, state in (("stall.example", "functional"), ("famous.example", "closed")):
        sold, _ = function_rows([DEMAND, {**free, "service": f"https://{host}/openapi.json"}])
        assert sold["state"] == state


@pytest.mark.parametrize(
    ("document", "is_fair"),
    [
        (None, True),
        ({"paths": {"/full": {"get": {}}}}, True),
        ({"paths": {"/full": {"get": {"x-payment-info": {"price": "$0.50"}}}}}, True),
        ({"paths": {"/full": {"get": {"x-payment-info": {"price": "0.01"}}}}}, False),
        ({"paths": {"/taste": {"get": {"x-payment-info": {"maxPrice": 0.01}}}}}, False),
        ({"paths": {"/full": {"get": {"x-payment-info": {"price": "NaN"}}, "x": 1}}}, True),
        ({"paths": {"/full": []}}, True),
        ({"paths": {"/full": {"get": {"x-payment-info": {"price": {"amount": "0.02"}}}}}}, False),
        ({"paths": {"/full": {"get": {"x-payment-info": {"price": {"amount": "2"}}}}}}, True),
    ],
)
def test_a_call_costs_no_more_than_ten_times_what_is_advertised(
    document: JsonObject | None, *, is_fair: bool
) -> None:
    offer = Offer("base", "0x1", str(2 * MICRO), "0x2")
    assert (
        is_as_advertised(PaymentDemand((offer,), (), is_valid=True), document, "/full") is is_fair
    )
