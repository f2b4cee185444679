"""Statements over HTTP: one's own, and every one for an admin."""

import base64
import csv
import io
from collections.abc import AsyncGenerator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from sqlalchemy import update

from assay.accounts.model import Role
from assay.db.schema.payments import transfers
from assay.payments import transfers as payouts
from assay.payments.model import DirectFee, PaymentState
from assay.payments.outcomes import SettlementAttempt
from assay.payments.statement import NotOwed
from assay.payments.store_watches import SqlWatchStore
from assay.payments.watcher import plan_of
from tests.support.fakes.calls import claimed, payment
from tests.support.live_service import TestService, start_test_service

pytestmark = pytest.mark.slow

PLATFORM = "0x" + "aa" * 20
OWN = "0x" + "cc" * 20


@pytest.fixture
async def service(tmp_path: Path) -> AsyncGenerator[TestService]:
    async with start_test_service(
        tmp_path / "data", payout_address=PLATFORM, fee_rate="0.05"
    ) as opened:
        yield opened


async def sell(
    service: TestService, operator_id: str, amount: int, *, to_platform: bool, direct_fee: int = 0
) -> str:
    ledger = service.app.ledger
    made = payment(operator_id, "w", service.clock.now(), amount)
    if to_platform:
        made = replace(made, pay_to=PLATFORM, fee_rate=Decimal("0.05"))
    if direct_fee:
        fee = DirectFee(PLATFORM, direct_fee)
        made = replace(made, fee_rate=Decimal("0.05"), direct_fee=fee)
    attempt = SettlementAttempt("0x" + "ee" * 32)
    entry = await claimed(ledger, made)  # type: ignore[arg-type]
    paid = await ledger.move(entry, PaymentState.SETTLED, attempt=attempt)
    assert paid is not None
    await SqlWatchStore(service.app.database).plan([plan_of(paid, None)])  # it is final
    return entry.id


async def me(service: TestService, token: dict[str, str]) -> str:
    return (await service.http.get("/operator/me", headers=token)).json()["operator"]["id"]


async def test_a_statement_says_what_is_owed_and_to_whom(service: TestService) -> None:
    await service.operator()
    token = await service.token()
    operator_id = await me(service, token)
    bought = await sell(service, operator_id, 1_000_000, to_platform=True)
    await sell(service, operator_id, 500_000, to_platform=False)
    made = await service.app.transfers.refund(bought, 400_000)
    answer = await service.http.get("/operator/statement", headers=token)
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
            "directFee": "0.000000",
        }
    ]
    (shown,) = answer.json()["transfers"]
    assert (shown["id"], shown["state"], shown["amount"]) == (made.id, "open", "0.400000")
    assert (shown["paymentReference"], shown["transaction"]) == (bought, None)


async def test_a_fee_paid_beside_the_seller_is_no_part_of_what_is_owed(
    service: TestService,
) -> None:
    """Nobody may have it twice: neither by a payout, nor by a refund out of the balance."""
    await service.operator()
    token = await service.token()
    operator_id = await me(service, token)
    bought = await sell(service, operator_id, 1_000_000, to_platform=False, direct_fee=50_000)
    made = await service.app.transfers.refund(bought)
    assert (made.of_balance, made.sender, made.amount) == (False, OWN, 1_000_000)
    answer = await service.http.get("/operator/statement", headers=token)
    (line,) = answer.json()["lines"]
    shown = [line[name] for name in ("directPayments", "directReceived", "directFee", "fee")]
    assert shown == [1, "0.950000", "0.050000", "0.000000"]
    assert (line["payments"], line["received"], line["owed"]) == (0, "0.000000", "0.000000")
    with pytest.raises(NotOwed):
        await service.app.transfers.payout(operator_id, "eip155:8453", "0x" + "dd" * 20)


async def test_the_statement_as_a_file_is_the_statement(service: TestService) -> None:
    await service.operator()
    token = await service.token()
    await sell(service, await me(service, token), 1_000_000, to_platform=True)
    shown = (await service.http.get("/operator/statement", headers=token)).json()["lines"]
    answer = await service.http.get("/operator/statement/export", headers=token)
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert rows == [{name: str(value) for name, value in one.items()} for one in shown]


async def refunded(service: TestService, count: int) -> tuple[dict[str, str], list[str]]:
    """A seller's token, and the ids of so many refunds, newest first."""
    await service.operator()
    token = await service.token()
    operator_id = await me(service, token)
    made: list[str] = []
    for number in range(count):
        bought = await sell(service, operator_id, 1_000_000, to_platform=True)
        made.append((await service.app.transfers.refund(bought, 1_000 + number)).id)
        if number % 2:  # the others are of the same microsecond
            service.clock.move(1)
    shown = (await service.http.get("/operator/statement", headers=token)).json()
    assert {one["id"] for one in shown["transfers"]} == set(made)
    return token, [one["id"] for one in shown["transfers"]]


async def test_payouts_and_refunds_are_read_in_pages_that_new_ones_do_not_shift(
    service: TestService,
) -> None:
    token, ids = await refunded(service, 5)
    path = "/operator/statement/transfers?limit=2"
    page = (await service.http.get(path, headers=token)).json()
    assert (page["total"], page["limit"], page["offset"]) == (5, 2, 0)
    seen = [one["id"] for one in page["items"]]
    service.clock.move(1)
    later = await sell(service, await me(service, token), 1_000_000, to_platform=True)
    await service.app.transfers.refund(later, 7)
    while page["nextCursor"] is not None:
        page = (await service.http.get(f"{path}&cursor={page['nextCursor']}", headers=token)).json()
        seen += [one["id"] for one in page["items"]]
    assert seen == ids
    statement = (await service.http.get("/operator/statement", headers=token)).json()
    assert statement["transfersTotal"] == 6
    answer = await service.http.get("/operator/statement/transfers?offset=4", headers=token)
    assert [one["id"] for one in answer.json()["items"]] == ids[3:]


async def test_payouts_and_refunds_as_a_file_are_the_rows_of_the_list(
    service: TestService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(payouts, "EXPORTED_AT_ONCE", 2)
    token, _ = await refunded(service, 5)
    listed = (await service.http.get("/operator/statement/transfers", headers=token)).json()
    path = "/operator/statement/transfers/export"
    answer = await service.http.get(path, headers=token)
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert "transfers.csv" in answer.headers["content-disposition"]
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert rows == [{name: value or "" for name, value in one.items()} for one in listed["items"]]
    some = (await service.http.get(f"{path}?limit=3", headers=token)).text
    cursor = (await service.http.get("/operator/statement/transfers?limit=3", headers=token)).json()
    rest = await service.http.get(f"{path}?cursor={cursor['nextCursor']}", headers=token)
    assert some + rest.text.partition("\r\n")[2] == answer.text
    assert (await service.http.get(f"{path}?limit=1000001", headers=token)).status_code == 400


async def test_no_page_begins_after_another_accounts_transfer(service: TestService) -> None:
    _, ids = await refunded(service, 1)
    await service.operator("other@example.com")
    other = await service.token("other@example.com")
    cursor = base64.urlsafe_b64encode(f"after:{ids[0]}".encode()).rstrip(b"=").decode()
    for path in ("/operator/statement/transfers", "/operator/statement/transfers/export"):
        assert ids[0] not in (await service.http.get(path, headers=other)).text
        for asked in (cursor, base64.urlsafe_b64encode(b"at:1").decode().rstrip("=")):
            answer = await service.http.get(f"{path}?cursor={asked}", headers=other)
            assert answer.status_code == (404 if asked == cursor else 400), answer.text


async def test_a_cell_that_a_spreadsheet_would_run_is_text(service: TestService) -> None:
    """Nobody chooses such a value today; a row that has one all the same is harmless."""
    token, ids = await refunded(service, 1)
    async with service.app.database.write() as connection:
        await connection.execute(update(transfers).values(recipient="=1+1"))
    answer = await service.http.get("/operator/statement/transfers/export", headers=token)
    (row,) = csv.DictReader(io.StringIO(answer.text))
    assert (row["id"], row["recipient"]) == (ids[0], "'=1+1")


async def test_nobody_sees_another_accounts_statement_but_an_admin(service: TestService) -> None:
    await service.operator()
    await sell(service, await me(service, await service.token()), 1_000_000, to_platform=True)
    await service.operator("other@example.com")
    other = await service.token("other@example.com")
    assert (await service.http.get("/operator/statement", headers=other)).json()["lines"] == []
    refused = await service.http.get("/operator/admin/statement", headers=other)
    assert refused.status_code == 403
    await service.app.operators.set_role_for_admin("other@example.com", Role.ADMIN)
    other = await service.token("other@example.com")
    shown = (await service.http.get("/operator/admin/statement", headers=other)).json()
    assert (shown["total"], shown["nextCursor"]) == (1, None)
    assert shown["items"][0]["owed"] == "0.950000"


async def test_a_wrapper_says_when_nobody_settles_who_is_paid_and_which_fee(
    service: TestService,
) -> None:
    await service.operator()
    token = await service.token()
    body = {"path": "/a", "pricePerCall": 0.01, "targetUrl": "http://127.0.0.1:8999/x"}
    made = (await service.http.post("/operator/endpoints", headers=token, json=body)).json()
    settling, payee = made["warnings"]
    assert "Nobody can settle payments on eip155:8453 now" in settling
    assert PLATFORM in payee
    assert "less its fee of 5 %" in payee
    own = {**body, "path": "/b", "payoutAddress": OWN}
    made = (await service.http.post("/operator/endpoints", headers=token, json=own)).json()
    assert [text for text in made["warnings"] if "fee of 5 %" in text and "directly" in text]
    free = {**body, "path": "/c", "pricePerCall": 0}
    made = (await service.http.post("/operator/endpoints", headers=token, json=free)).json()
    assert made["warnings"] == []


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({}, 0),
        ({"pricePerCall": 0.00002}, 0),
        ({"pricePerCall": 0.000019}, 1),
        ({"paymentProtocol": "x402", "paymentNetwork": "base-sepolia"}, 1),
    ],
)
async def test_a_wrapper_says_whether_the_fee_is_paid_beside_the_seller_or_not_collected(
    service: TestService, fields: dict[str, object], told: int
) -> None:
    warnings = await warnings_of(service, fields)
    fees = [text for text in warnings if "fee of 5 %" in text]
    assert sum("not collected" in text for text in fees) == told
    assert sum(f"go to this service's wallet {PLATFORM.lower()}" in text for text in fees) == (
        1 - told
    )


@pytest.mark.parametrize("payout", [None, "0x" + "00" * 18 + "dEaD"])
async def test_no_fee_is_sent_to_a_platform_without_a_wallet(
    tmp_path: Path, payout: str | None
) -> None:
    given = {} if payout is None else {"payout_address": payout}
    async with start_test_service(tmp_path / "data", fee_rate="0.05", **given) as service:
        said = await warnings_of(service, {})
        assert sum("fee of 5 % of your account is not collected" in text for text in said) == 1


async def warnings_of(service: TestService, fields: dict[str, object]) -> list[str]:
    """What is said to who makes a wrapper that is paid over MPP, to a wallet of its own."""
    await service.operator()
    body = {
        "path": "/mpp",
        "pricePerCall": 0.01,
        "targetUrl": "http://127.0.0.1:8999/x",
        "payoutAddress": OWN,
        "paymentProtocol": "mpp",
        "paymentNetwork": "tempo-moderato",
        **fields,
    }
    made = await service.http.post("/operator/endpoints", headers=await service.token(), json=body)
    assert made.status_code == 200, made.text
    return made.json()["warnings"]


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
async def test_money_that_would_be_lost_is_refused(
    service: TestService, payee: str, said: str
) -> None:
    await service.operator()
    token = await service.token()
    body = {
        "path": "/a",
        "pricePerCall": 0.01,
        "targetUrl": "http://127.0.0.1:8999/x",
        "payoutAddress": payee,
    }
    answer = await service.http.post("/operator/endpoints", headers=token, json=body)
    assert answer.status_code == 400
    (problem,) = answer.json()["details"]
    assert problem["loc"] == ["body", "payoutAddress"]
    assert said in problem["message"]


@pytest.mark.parametrize("change", [str.lower, lambda text: "0x" + text[2:].upper(), str])
async def test_a_wallet_in_one_case_or_with_its_checksum_is_taken(
    service: TestService, change: object
) -> None:
    await service.operator()
    token = await service.token()
    payee = change("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed")  # type: ignore[operator]
    body = {
        "path": "/a",
        "pricePerCall": 0.01,
        "targetUrl": "http://127.0.0.1:8999/x",
        "payoutAddress": payee,
    }
    answer = await service.http.post("/operator/endpoints", headers=token, json=body)
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
        async with start_test_service(tmp_path / "data", **settings):
            pass


async def test_a_wallet_of_the_service_that_nobody_owns_is_paid_by_nobody(tmp_path: Path) -> None:
    burnt = {"payout_address": "0x" + "00" * 18 + "dEaD"}
    async with start_test_service(tmp_path / "data", **burnt) as service:
        await service.operator()
        token = await service.token()
        body = {"path": "/a", "pricePerCall": 0.01, "targetUrl": "http://127.0.0.1:8999/x"}
        answer = await service.http.post("/operator/endpoints", headers=token, json=body)
        assert answer.status_code == 400
        free = {**body, "pricePerCall": 0}
        answer = await service.http.post("/operator/endpoints", headers=token, json=free)
        assert answer.status_code == 200
