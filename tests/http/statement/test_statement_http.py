"""Statements over HTTP: one's own, and every one for an admin."""

import csv
import io
from collections.abc import AsyncGenerator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from assay.accounts.model import Role
from assay.payments.model import State
from assay.payments.outcomes import Attempt
from tests.fakes.calls import claimed, payment
from tests.http.house import House, open_house

PLATFORM = "0x" + "aa" * 20
OWN = "0x" + "cc" * 20


@pytest.fixture
async def house(tmp_path: Path) -> AsyncGenerator[House]:
    async with open_house(tmp_path / "data", payout_address=PLATFORM, fee_rate="0.05") as opened:
        yield opened


async def sell(house: House, operator_id: str, amount: int, *, to_platform: bool) -> str:
    ledger = house.app.ledger
    made = payment(operator_id, "w", house.clock.now(), amount)
    if to_platform:
        made = replace(made, pay_to=PLATFORM, fee_rate=Decimal("0.05"))
    attempt = Attempt("0x" + "ee" * 32)
    entry = await claimed(ledger, made)  # type: ignore[arg-type]
    assert await ledger.move(entry, State.SETTLED, attempt=attempt) is not None
    return entry.id


async def me(house: House, token: dict[str, str]) -> str:
    return (await house.http.get("/operator/me", headers=token)).json()["operator"]["id"]


async def test_a_statement_says_what_is_owed_and_to_whom(house: House) -> None:
    await house.operator()
    token = await house.token()
    operator_id = await me(house, token)
    bought = await sell(house, operator_id, 1_000_000, to_platform=True)
    await sell(house, operator_id, 500_000, to_platform=False)
    made = await house.app.transfers.refund(bought, 400_000)
    answer = await house.http.get("/operator/statement", headers=token)
    assert answer.status_code == 200, answer.text
    assert answer.json()["lines"] == [
        {
            "operatorId": operator_id,
            "network": "eip155:8453",
            "asset": "0x" + "aa" * 20,
            "payments": 1,
            "received": "1.000000",
            "fee": "0.030000",
            "refunded": "0.000000",
            "paidOut": "0.000000",
            "underWay": "0.400000",
            "owed": "0.570000",
            "directPayments": 1,
            "directReceived": "0.500000",
            "directRefunded": "0.000000",
        }
    ]
    (shown,) = answer.json()["transfers"]
    assert (shown["id"], shown["state"], shown["amount"]) == (made.id, "open", "0.400000")
    assert (shown["paymentReference"], shown["transaction"]) == (bought, None)


async def test_the_statement_as_a_file_is_the_statement(house: House) -> None:
    await house.operator()
    token = await house.token()
    await sell(house, await me(house, token), 1_000_000, to_platform=True)
    shown = (await house.http.get("/operator/statement", headers=token)).json()["lines"]
    answer = await house.http.get("/operator/statement/export", headers=token)
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert rows == [{name: str(value) for name, value in one.items()} for one in shown]


async def test_nobody_sees_another_accounts_statement_but_an_admin(house: House) -> None:
    await house.operator()
    await sell(house, await me(house, await house.token()), 1_000_000, to_platform=True)
    await house.operator("other@example.com")
    other = await house.token("other@example.com")
    assert (await house.http.get("/operator/statement", headers=other)).json()["lines"] == []
    refused = await house.http.get("/operator/admin/statement", headers=other)
    assert refused.status_code == 403
    await house.app.operators.set_role_for_admin("other@example.com", Role.ADMIN)
    other = await house.token("other@example.com")
    shown = (await house.http.get("/operator/admin/statement", headers=other)).json()
    assert (shown["total"], shown["nextCursor"]) == (1, None)
    assert shown["items"][0]["owed"] == "0.950000"


async def test_a_wrapper_says_when_nobody_settles_who_is_paid_and_which_fee(house: House) -> None:
    await house.operator()
    token = await house.token()
    body = {"path": "/a", "pricePerCall": 0.01, "targetUrl": "http://127.0.0.1:8999/x"}
    made = (await house.http.post("/operator/endpoints", headers=token, json=body)).json()
    settling, payee = made["warnings"]
    assert "Nobody can settle payments on eip155:8453 now" in settling
    assert PLATFORM in payee
    assert "less its fee of 5 %" in payee
    own = {**body, "path": "/b", "payoutAddress": OWN}
    made = (await house.http.post("/operator/endpoints", headers=token, json=own)).json()
    assert [text for text in made["warnings"] if "fee of 5 %" in text and "directly" in text]
    free = {**body, "path": "/c", "pricePerCall": 0}
    made = (await house.http.post("/operator/endpoints", headers=token, json=free)).json()
    assert made["warnings"] == []


@pytest.mark.parametrize(
    ("payee", "said"),
    [
        ("0x" + "00" * 18 + "dEaD", "nobody has the key"),
        ("0x" + "00" * 20, "nobody has the key"),
        ("0x833589fcd6edb6e08f4c7c32d4f71b54bda02913", "the contract of the asset"),
        ("0x036CbD53842c5426634e7929541eC2318f3dCF7e", "the contract of the asset"),
        ("0x5aaeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "checksum"),
    ],
)
async def test_money_that_would_be_lost_is_refused(house: House, payee: str, said: str) -> None:
    await house.operator()
    token = await house.token()
    body = {
        "path": "/a",
        "pricePerCall": 0.01,
        "targetUrl": "http://127.0.0.1:8999/x",
        "payoutAddress": payee,
    }
    answer = await house.http.post("/operator/endpoints", headers=token, json=body)
    assert answer.status_code == 400
    (problem,) = answer.json()["details"]
    assert problem["loc"] == ["body", "payoutAddress"]
    assert said in problem["message"]


@pytest.mark.parametrize("change", [str.lower, lambda text: "0x" + text[2:].upper(), str])
async def test_a_wallet_in_one_case_or_with_its_checksum_is_taken(
    house: House, change: object
) -> None:
    await house.operator()
    token = await house.token()
    payee = change("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed")  # type: ignore[operator]
    body = {
        "path": "/a",
        "pricePerCall": 0.01,
        "targetUrl": "http://127.0.0.1:8999/x",
        "payoutAddress": payee,
    }
    answer = await house.http.post("/operator/endpoints", headers=token, json=body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["payoutAddress"] == payee.lower()


@pytest.mark.parametrize(
    "settings",
    [
        {"payout_key": "0x12"},
        {"payout_key": "0x" + "11" * 32, "x402_private_key": "0x" + "11" * 32},
    ],
)
async def test_a_key_that_cannot_be_right_stops_the_start(
    tmp_path: Path, settings: dict[str, str]
) -> None:
    with pytest.raises(ValueError, match="ASSAY_PAYOUT_KEY"):
        async with open_house(tmp_path / "data", **settings):
            pass


async def test_a_wallet_of_the_service_that_nobody_owns_is_paid_by_nobody(tmp_path: Path) -> None:
    burnt = {"payout_address": "0x" + "00" * 18 + "dEaD"}
    async with open_house(tmp_path / "data", **burnt) as house:
        await house.operator()
        token = await house.token()
        body = {"path": "/a", "pricePerCall": 0.01, "targetUrl": "http://127.0.0.1:8999/x"}
        answer = await house.http.post("/operator/endpoints", headers=token, json=body)
        assert answer.status_code == 400
        free = {**body, "pricePerCall": 0}
        answer = await house.http.post("/operator/endpoints", headers=token, json=free)
        assert answer.status_code == 200
