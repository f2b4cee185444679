"""Analytics over HTTP: by status, by shape, and only ever of the account that asks."""

import csv
import io
import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any
from uuid import RFC_4122, UUID

import pytest

from assay.analytics.model import CallLogEntry
from assay.payments.model import PaymentState
from tests.support.fakes.calls import PAYER, call, claimed, payment
from tests.support.fakes.ledger_moves import moved_on
from tests.support.live_service import OWNER_KEY, TestService, refused
from tests.support.wire_upstream import WireUpstream, wire_upstream

ROOT = "/operator/analytics"
GETS = ("stats", "revenue", "top-endpoints", "agents", "agents/7", "logs", "logs/export")


class Seller:
    """An operator with one wrapper, and calls that somebody made of it."""

    def __init__(self, service: TestService, email: str) -> None:
        self.service, self.email = service, email
        self.token: dict[str, str] = {}
        self.operator_id = self.wrapper_id = ""

    async def open(self) -> "Seller":
        await self.service.operator(self.email)
        self.token = await self.service.token(self.email)
        me = (await self.service.http.get("/operator/me", headers=self.token)).json()
        self.operator_id = me["operator"]["id"]
        body = {
            "path": "/quote",
            "pricePerCall": 0.5,
            "targetUrl": "http://127.0.0.1:8999",
            "payoutAddress": "0x" + "cc" * 20,
        }
        made = await self.service.http.post("/operator/endpoints", json=body, headers=self.token)
        self.wrapper_id = made.json()["id"]
        return self

    def called(self, **fields: Any) -> CallLogEntry:
        made = call(self.operator_id, self.wrapper_id, self.service.clock.now(), **fields)
        self.service.app.call_log.add(made)
        return made

    async def paid(
        self, amount: int, state: PaymentState = PaymentState.SETTLED, **fields: Any
    ) -> None:
        ledger, now = self.service.app.ledger, self.service.clock.now()
        entry = payment(self.operator_id, self.wrapper_id, now, amount)
        moved = await moved_on(ledger, await claimed(ledger, entry), state)  # type: ignore[arg-type]
        assert moved is not None
        self.called(payment_id=entry.id, payer=PAYER, **fields)

    async def get(self, path: str, **query: Any) -> Any:
        answer = await self.service.http.get(f"{ROOT}/{path}", params=query, headers=self.token)
        assert answer.status_code == 200, answer.text
        return answer.json()


@pytest.fixture
async def seller(service: TestService) -> Seller:
    return await Seller(service, "op@example.com").open()


async def test_without_a_dashboard_token_nothing_is_told(service: TestService) -> None:
    key = await service.operator()
    for path in GETS:
        refused(await service.http.get(f"{ROOT}/{path}"), 401, "unauthorized")
        refused(await service.http.get(f"{ROOT}/{path}", headers=key), 401, "unauthorized")


async def test_an_account_without_calls_has_zeros_and_no_errors(seller: Seller) -> None:
    assert await seller.get("stats") == {
        "totalCalls": 0,
        "totalRevenue": "0.000000",
        "uniqueAgents": 0,
        "avgResponseMs": 0,
        "errorRate": "0.0000",
        "callsToday": 0,
        "revenueToday": "0.000000",
        "funnel": {
            "paymentRequired": 0,
            "paid": 0,
            "settled": 0,
            "failed": 0,
            "deniedByTrust": 0,
            "deniedByLimit": 0,
            "wouldBeDeniedByTrust": 0,
        },
    }
    assert (await seller.get("top-endpoints"))["items"] == []
    empty = {"items": [], "total": 0, "limit": 50, "offset": 0, "nextCursor": None}
    assert await seller.get("agents") == {**empty, "agents": []}
    assert await seller.get("logs") == {**empty, "logs": [], "nextBefore": None}
    answer = await seller.service.http.get(f"{ROOT}/agents/7", headers=seller.token)
    refused(answer, 404, "agent_not_found")


async def test_money_is_exact_and_only_what_has_settled(seller: Seller) -> None:
    await seller.paid(100_000)
    await seller.paid(200_000)
    await seller.paid(1)
    await seller.paid(700_000, PaymentState.FAILED, status=402, outcome="payment_required")
    await seller.paid(900_000, PaymentState.PENDING, status=503, outcome="settlement_pending")
    seller.called(status=402, outcome="payment_required")
    stats = await seller.get("stats")
    assert stats["totalRevenue"] == stats["revenueToday"] == "0.300001"
    assert (stats["totalCalls"], stats["uniqueAgents"]) == (6, 1)
    assert stats["errorRate"] == "0.1667"
    assert stats["funnel"] == {
        "paymentRequired": 2,
        "paid": 5,
        "settled": 3,
        "failed": 1,
        "deniedByTrust": 0,
        "deniedByLimit": 0,
        "wouldBeDeniedByTrust": 0,
    }
    logs = (await seller.get("logs"))["logs"]
    assert [log["costCharged"] for log in logs] == [
        *("0.000000", "0.000000", "0.000000"),
        *("0.000001", "0.200000", "0.100000"),
    ]


async def test_a_day_without_calls_is_zero_and_days_are_utc(seller: Seller) -> None:
    clock = seller.service.clock
    clock.set(clock.now().replace(hour=23, minute=59, second=59))
    await seller.paid(5_000_000)
    clock.move(2)
    seller.called()
    clock.move(2 * 86_400)
    seller.token = await seller.service.token()
    assert await seller.get("revenue", days=5) == [
        {"date": "2026-02-28", "revenue": "0.000000", "calls": 0},
        {"date": "2026-03-01", "revenue": "5.000000", "calls": 1},
        {"date": "2026-03-02", "revenue": "0.000000", "calls": 1},
        {"date": "2026-03-03", "revenue": "0.000000", "calls": 0},
        {"date": "2026-03-04", "revenue": "0.000000", "calls": 0},
    ]
    assert len(await seller.get("revenue")) == 30
    assert (await seller.get("stats"))["callsToday"] == 0


async def test_top_endpoints_are_ranked_by_calls(seller: Seller) -> None:
    http, token = seller.service.http, seller.token
    body = {
        "path": "/other",
        "method": "POST",
        "pricePerCall": 0,
        "targetUrl": "http://127.0.0.1:8999",
    }
    other = (await http.post("/operator/endpoints", json=body, headers=token)).json()["id"]
    for n in range(3):
        made = call(seller.operator_id, other, seller.service.clock.now(), latency_us=n * 1500)
        seller.service.app.call_log.add(made)
    await seller.paid(20_000, latency_us=7)
    found = (await seller.get("top-endpoints"))["items"]
    assert found == [
        {
            "endpointId": other,
            "path": "/other",
            "method": "POST",
            "calls": 3,
            "revenue": "0.000000",
            "avgResponseMs": 1.5,
            "errorRate": "0.0000",
            "wouldBeDenied": 0,
        },
        {
            "endpointId": seller.wrapper_id,
            "path": "/quote",
            "method": "GET",
            "calls": 1,
            "revenue": "0.020000",
            "avgResponseMs": 0.007,
            "errorRate": "0.0000",
            "wouldBeDenied": 0,
        },
    ]
    assert (await seller.get("top-endpoints", limit=1))["items"] == found[:1]
    await http.delete(f"/operator/endpoints/{other}", headers=token)
    assert (await seller.get("top-endpoints"))["items"] == found  # what it earned is not forgotten


async def test_agents_are_sorted_as_asked_and_paged(seller: Seller) -> None:
    clock = seller.service.clock
    for agent, calls, bad in (("7", 1, 0), ("8", 3, 1), ("9", 2, 2)):
        clock.move(1)
        for n in range(calls):
            seller.called(
                agent_id=agent,
                chain="local",
                tier="A" if n else "BA",
                route="prod",
                status=500 if n < bad else 200,
            )
    clock.move(1)
    await seller.paid(40)

    async def order(by: str) -> list[str]:
        return [a["agentId"] for a in (await seller.get("agents", sortBy=by))["agents"]]

    assert await order("lastSeen") == [PAYER, "9", "8", "7"]
    assert (await order("calls"))[:2] == ["8", "9"]
    assert (await order("errors"))[:2] == ["9", "8"]
    assert (await order("spent"))[0] == PAYER
    page = await seller.get("agents", sortBy="calls", limit=1, offset=1)
    assert (page["total"], page["limit"], page["offset"]) == (4, 1, 1)
    [nine] = page["agents"]
    assert nine["agentId"] == "9"
    assert (nine["totalCalls"], nine["errorCount"], nine["totalSpent"]) == (2, 2, "0.000000")
    assert (nine["tier"], nine["chains"], nine["avgResponseMs"]) == ("A", ["local"], 1)
    assert nine["firstSeen"] == nine["lastSeen"]


async def test_an_agent_in_detail(seller: Seller) -> None:
    for n in range(25):
        seller.called(agent_id="7", chain="local", request_id=str(n))
    seller.called(agent_id="8")
    found = await seller.get("agents/7")
    assert found["agentId"] == found["summary"]["agentId"] == "7"
    assert found["summary"]["totalCalls"] == 25
    assert [e["calls"] for e in found["endpoints"]] == [25]
    assert found["endpoints"][0]["endpointId"] == seller.wrapper_id
    assert [c["requestId"] for c in found["recentCalls"]] == [str(n) for n in range(24, 4, -1)]


async def test_logs_are_filtered_by_agent_endpoint_and_days(seller: Seller) -> None:
    seller.called(agent_id="7", path="/old")
    seller.service.clock.move(2 * 86_400)
    seller.token = await seller.service.token()
    seller.called(agent_id="7", path="/new")
    seller.called(agent_id="8", path="/else")

    async def paths(**query: Any) -> list[str]:
        found = await seller.get("logs", **query)
        assert found["total"] == len(found["logs"])
        return [log["path"] for log in found["logs"]]

    assert await paths() == ["/else", "/new", "/old"]
    assert await paths(agentId="7") == ["/new", "/old"]
    assert await paths(agentId="7", days=2) == ["/new"]
    assert await paths(agentId="7", days=3) == ["/new", "/old"]
    assert await paths(endpointId=seller.wrapper_id, days=1) == ["/else", "/new"]
    assert await paths(endpointId="nothing") == []
    assert await paths(agentId="nobody", endpointId=seller.wrapper_id) == []


async def test_a_page_goes_on_where_the_last_one_ended(seller: Seller) -> None:
    for n in range(10):
        seller.called(request_id=str(n))
    first = await seller.get("logs", limit=4)
    seller.called(request_id="later")
    second = await seller.get("logs", limit=4, before=first["nextBefore"])
    third = await seller.get("logs", limit=4, before=second["nextBefore"])
    ids = [log["requestId"] for page in (first, second, third) for log in page["logs"]]
    assert ids == [str(n) for n in range(9, -1, -1)]
    assert third["nextBefore"] is None
    by_offset = await seller.get("logs", limit=4, offset=4)
    assert [log["requestId"] for log in by_offset["logs"]] == ["6", "5", "4", "3"]


async def test_a_row_says_all_there_is_to_say(seller: Seller) -> None:
    seller.service.clock.move(1e-6)
    seller.called(agent_id="7", chain="local", tier="AA", score=91.0, route="prod", latency_us=1234)
    [row] = (await seller.get("logs"))["logs"]
    assert row.pop("id")
    assert row == {
        "createdAt": "2026-03-01T12:00:00.000Z",
        "method": "GET",
        "path": "/quote",
        "endpointId": seller.wrapper_id,
        "agentId": "7",
        "chain": "local",
        "statusCode": 200,
        "responseMs": 1.234,
        "costCharged": "0.000000",
        "route": "prod",
        "tier": "AA",
        "outcome": "forwarded",
        "paymentReference": None,
        "transaction": None,
        "payer": None,
        "identityProven": False,
        "requestId": "r",
        "requestBytes": 0,
        "responseBytes": 0,
        "wouldHave": None,
        "wouldHaveReason": None,
    }


async def test_the_log_leaves_as_csv_without_formulas_and_as_json_lines(seller: Seller) -> None:
    seller.called(path='/a,"b"', agent_id="=cmd()")
    seller.called(path="/plain")
    http, token = seller.service.http, seller.token
    answer = await http.get(f"{ROOT}/logs/export", headers=token)
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert "calls.csv" in answer.headers["content-disposition"]
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [row["path"] for row in rows] == ["/plain", '/a,"b"']
    assert [row["agentId"] for row in rows] == ["", "'=cmd()"]
    lines = await http.get(f"{ROOT}/logs/export", headers=token, params={"format": "ndjson"})
    assert lines.headers["content-type"] == "application/x-ndjson"
    assert [json.loads(x) for x in lines.text.splitlines()] == (await seller.get("logs"))["logs"]
    some = {"format": "ndjson", "limit": 1, "agentId": "=cmd()"}
    one = await http.get(f"{ROOT}/logs/export", headers=token, params=some)
    assert [json.loads(x)["path"] for x in one.text.splitlines()] == ['/a,"b"']


async def test_an_export_of_many_pieces_is_whole_and_in_order(seller: Seller) -> None:
    for n in range(1203):
        seller.called(request_id=str(n))
    await seller.service.app.flush()
    wanted = {"format": "ndjson"}
    answer = await seller.service.http.get(
        f"{ROOT}/logs/export", headers=seller.token, params=wanted
    )
    ids = [json.loads(line)["requestId"] for line in answer.text.splitlines()]
    assert ids == [str(n) for n in range(1202, -1, -1)]


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("revenue", {"days": "0"}),
        ("revenue", {"days": "367"}),
        ("revenue", {"days": "x"}),
        ("top-endpoints", {"limit": "0"}),
        ("top-endpoints", {"limit": "501"}),
        ("agents", {"sortBy": "name"}),
        ("agents", {"offset": "-1"}),
        ("agents", {"offset": "100001"}),
        ("agents", {"limit": "501"}),
        ("logs", {"limit": "99999999999999999999999"}),
        ("logs", {"days": "-1"}),
        ("logs", {"days": "4000"}),
        ("logs", {"agentId": "x" * 101}),
        ("logs", {"agentId": ""}),
        ("logs", {"endpointId": "\x00"}),
        ("logs", {"before": "abc"}),
        ("logs", {"before": "7"}),
        ("logs", {"before": "{01a201e4-09d0-7692-b3f6-737951fd1d3b}"}),
        ("logs/export", {"format": "xml"}),
        ("logs/export", {"limit": "1000001"}),
    ],
)
async def test_queries_that_make_no_sense_are_refused(
    seller: Seller, path: str, query: dict[str, str]
) -> None:
    answer = await seller.service.http.get(f"{ROOT}/{path}", params=query, headers=seller.token)
    refused(answer, 400, "invalid_request")


async def test_ids_are_uuids_of_version_7_and_count_nobodys_calls(seller: Seller) -> None:
    other = await Seller(seller.service, "other@example.com").open()
    seller.service.clock.move(0.000999)
    made: list[tuple[str, str]] = []
    for n in range(20):
        seller.called(request_id=str(n))
        for _ in range(n):
            other.called()
    logs = (await seller.get("logs"))["logs"]
    again = (await seller.get("logs"))["logs"]
    made = [(log["id"], log["requestId"]) for log in logs]
    assert made == [(log["id"], log["requestId"]) for log in again]
    ids = [UUID(one) for one, _ in made]
    assert {(one.version, one.variant) for one in ids} == {(7, RFC_4122)}
    assert len({one.int & (1 << 62) - 1 for one in ids}) == 20
    at_ms = round(seller.service.clock.now().timestamp() * 1000)
    assert {one.int >> 80 for one in ids} == {at_ms - 1, at_ms} & {one.int >> 80 for one in ids}
    gaps = [b.int - a.int for a, b in pairwise(ids)]
    assert any(gap > 0 for gap in gaps)  # not in the order of any counter
    assert any(gap < 0 for gap in gaps)
    for one, request_id in made:
        page = await seller.get("logs", before=one.upper())
        assert [log["requestId"] for log in page["logs"]] == [
            str(n) for n in range(int(request_id) - 1, -1, -1)
        ]


async def test_a_page_before_a_call_that_is_not_there_is_not_found(seller: Seller) -> None:
    for path in ("logs", "logs/export"):
        asked = {"before": "01a201e4-09d0-7692-b3f6-737951fd1d3b"}
        answer = await seller.service.http.get(f"{ROOT}/{path}", params=asked, headers=seller.token)
        refused(answer, 404, "call_not_found")


async def test_an_operator_sees_nothing_of_another(seller: Seller) -> None:
    await seller.paid(1_000_000, agent_id="7")
    other = await Seller(seller.service, "other@example.com").open()
    other.called(agent_id="7", path="/mine")
    mine = (await seller.get("logs"))["logs"][0]["id"]
    assert (await other.get("stats"))["totalRevenue"] == "0.000000"
    assert [log["path"] for log in (await other.get("logs", agentId="7"))["logs"]] == ["/mine"]
    assert (await other.get("logs", endpointId=seller.wrapper_id))["logs"] == []
    assert (await other.get("agents/7"))["summary"]["totalCalls"] == 1
    assert [e["endpointId"] for e in (await other.get("top-endpoints"))["items"]] == [
        other.wrapper_id
    ]
    asked = {"before": mine}
    answer = await other.service.http.get(f"{ROOT}/logs", params=asked, headers=other.token)
    refused(answer, 404, "call_not_found")


@pytest.fixture
def up() -> Iterator[WireUpstream]:
    with wire_upstream() as running:
        yield running


async def test_a_real_call_is_counted_at_once_with_its_agent_chain_and_route(
    seller: Seller, up: WireUpstream
) -> None:
    http, service = seller.service.http, seller.service
    body = {"path": "/real", "pricePerCall": 0, "targetUrl": up.url, "trustEnabled": True}
    for path, score in (("/real", 0), ("/strict", 99)):
        body |= {"path": path, "minScore": score}
        await http.post("/operator/endpoints", json=body, headers=seller.token)
    who = {**await service.session(OWNER_KEY), "x-agent-id": "7"}
    url = f"/wrap/{seller.operator_id}"
    assert (await http.get(f"{url}/real", headers=who)).status_code == 200
    refused(await http.get(f"{url}/strict", headers=who), 403, "trust_denied")
    stats = await seller.get("stats")
    assert (stats["totalCalls"], stats["uniqueAgents"]) == (2, 1)
    assert stats["funnel"]["deniedByTrust"] == 1
    denied, served = (await seller.get("logs", agentId="7"))["logs"]
    assert (denied["outcome"], served["outcome"]) == ("trust_denied", "forwarded")
    assert served["chain"] == denied["chain"] == "local"
    assert served["tier"] == denied["tier"]
    assert served["route"] in {"prod", "prod_throttled", "sandbox", "sandbox_only"}
