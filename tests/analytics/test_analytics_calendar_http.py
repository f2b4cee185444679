"""UTC days at their exact borders: the last microsecond of one, the first of the next."""

from datetime import UTC, datetime, timedelta

import pytest

from assay.payments.model import PaymentState
from tests.analytics.test_analytics_http import Seller
from tests.support.fakes.calls import PAYER, claimed, payment
from tests.support.live_service import TestService

MOMENT = timedelta(microseconds=1)

MIDNIGHTS = [
    datetime(2026, 3, 29, tzinfo=UTC),  # clocks in Europe go forward at 01:00 UTC
    datetime(2026, 4, 1, tzinfo=UTC),
    datetime(2027, 1, 1, tzinfo=UTC),
    datetime(2027, 3, 1, tzinfo=UTC),
    datetime(2028, 2, 29, tzinfo=UTC),
    datetime(2028, 3, 1, tzinfo=UTC),
    datetime(2100, 3, 1, tzinfo=UTC),
]


@pytest.fixture
async def seller(service: TestService) -> Seller:
    return await Seller(service, "op@example.com").open()


async def at(seller: Seller, moment: datetime) -> None:
    seller.service.clock.set(moment)
    seller.token = await seller.service.token()


async def paths(seller: Seller, **query: object) -> list[str]:
    found = await seller.get("logs", **query)
    assert found["total"] == len(found["logs"])
    return [log["path"] for log in found["logs"]]


@pytest.mark.parametrize("midnight", MIDNIGHTS, ids=str)
async def test_calls_and_money_are_of_the_day_whose_microsecond_they_are(
    seller: Seller, midnight: datetime
) -> None:
    await at(seller, midnight - MOMENT)
    await seller.paid(3_000_000, path="/last")
    before = await seller.get("stats")
    assert (before["callsToday"], before["revenueToday"]) == (1, "3.000000")
    await at(seller, midnight)
    after = await seller.get("stats")
    assert (after["callsToday"], after["revenueToday"]) == (0, "0.000000")
    assert (after["totalCalls"], after["totalRevenue"]) == (1, "3.000000")
    await seller.paid(1, path="/first")
    seller.called(path="/second")
    after = await seller.get("stats")
    assert (after["callsToday"], after["revenueToday"]) == (2, "0.000001")
    yesterday = (midnight - MOMENT).date().isoformat()
    assert await seller.get("revenue", days=2) == [
        {"date": yesterday, "revenue": "3.000000", "calls": 1},
        {"date": midnight.date().isoformat(), "revenue": "0.000001", "calls": 2},
    ]


@pytest.mark.parametrize("midnight", MIDNIGHTS, ids=str)
async def test_days_of_the_log_begin_and_end_at_midnight(
    seller: Seller, midnight: datetime
) -> None:
    for name, moment in {
        "/a": midnight - timedelta(days=1) - MOMENT,
        "/b": midnight - timedelta(days=1),
        "/c": midnight - MOMENT,
        "/d": midnight,
    }.items():
        await at(seller, moment)
        seller.called(path=name, agent_id="7")
    endpoint = {"endpointId": seller.wrapper_id}
    for filters in ({}, {"agentId": "7"}, endpoint, {"agentId": "7", **endpoint}):
        assert await paths(seller, days=1, **filters) == ["/d"]
        assert await paths(seller, days=2, **filters) == ["/d", "/c", "/b"]
        assert await paths(seller, days=3, **filters) == ["/d", "/c", "/b", "/a"]
    await at(seller, midnight + timedelta(days=1) - MOMENT)
    assert await paths(seller, days=1) == ["/d"]
    await at(seller, midnight + timedelta(days=1))
    assert await paths(seller, days=1) == []
    assert await paths(seller, days=2) == ["/d"]
    exported = await seller.service.http.get(
        "/operator/analytics/logs/export", params={"days": 3}, headers=seller.token
    )
    assert len(exported.text.splitlines()) == 1 + 3


async def test_a_year_has_every_day_once_the_leap_day_too(seller: Seller) -> None:
    await at(seller, datetime(2028, 2, 29, 12, tzinfo=UTC))
    await seller.paid(7)
    await at(seller, datetime(2028, 12, 31, 23, 59, 59, 999_999, UTC))
    await seller.paid(9)
    days = await seller.get("revenue", days=366)
    dates = [day["date"] for day in days]
    assert (dates[0], dates[-1], len(set(dates))) == ("2028-01-01", "2028-12-31", 366)
    assert dates == sorted(dates)
    earned = {day["date"]: day["revenue"] for day in days if day["calls"]}
    assert earned == {"2028-02-29": "0.000007", "2028-12-31": "0.000009"}
    assert all(d["revenue"] == "0.000000" for d in days if not d["calls"])
    await at(seller, datetime(2029, 1, 1, tzinfo=UTC))
    days = await seller.get("revenue", days=366)
    assert (days[0]["date"], days[-1]["date"]) == ("2028-01-02", "2029-01-01")
    assert (days[-1]["calls"], days[-2]["calls"]) == (0, 1)


async def test_a_year_without_a_leap_day_has_none(seller: Seller) -> None:
    await at(seller, datetime(2027, 3, 1, tzinfo=UTC))
    dates = [day["date"] for day in await seller.get("revenue", days=3)]
    assert dates == ["2027-02-27", "2027-02-28", "2027-03-01"]


async def test_a_call_before_midnight_whose_money_settles_after_it(seller: Seller) -> None:
    """The call is of one day and the revenue of the next, and the sums agree."""
    midnight = datetime(2027, 1, 1, tzinfo=UTC)
    await at(seller, midnight - MOMENT)
    ledger = seller.service.app.ledger
    made = payment(seller.operator_id, seller.wrapper_id, seller.service.clock.now(), 250_000)
    entry = await claimed(ledger, made)  # type: ignore[arg-type]
    seller.called(payment_id=entry.id, payer=PAYER)
    await at(seller, midnight)
    assert await ledger.move(entry, PaymentState.SETTLED) is not None
    stats = await seller.get("stats")
    assert (stats["callsToday"], stats["revenueToday"]) == (0, "0.250000")
    assert await seller.get("revenue", days=2) == [
        {"date": "2026-12-31", "revenue": "0.000000", "calls": 1},
        {"date": "2027-01-01", "revenue": "0.250000", "calls": 0},
    ]
    [log] = (await seller.get("logs", days=2))["logs"]
    assert log["costCharged"] == "0.250000"
    assert await paths(seller, days=1) == []


async def test_an_agents_first_and_last_day_are_its_own(seller: Seller) -> None:
    midnight = datetime(2028, 3, 1, tzinfo=UTC)
    await at(seller, midnight - MOMENT)
    seller.called(agent_id="7")
    await at(seller, midnight)
    seller.called(agent_id="7")
    [agent] = (await seller.get("agents"))["agents"]
    assert agent["firstSeen"] == "2028-02-29T23:59:59.999Z"
    assert agent["lastSeen"] == "2028-03-01T00:00:00.000Z"


async def test_a_call_logged_late_is_of_the_day_on_which_it_was_made(seller: Seller) -> None:
    """It waits in memory for a second; midnight passes meanwhile."""
    midnight = datetime(2026, 6, 1, tzinfo=UTC)
    await at(seller, midnight - MOMENT)
    seller.called()
    seller.service.clock.move(0.5)
    stats = await seller.get("stats")
    assert (stats["totalCalls"], stats["callsToday"]) == (1, 0)


async def test_the_platforms_today_is_the_same_day(seller: Seller) -> None:
    midnight = datetime(2027, 1, 1, tzinfo=UTC)
    await at(seller, midnight - MOMENT)
    await seller.paid(5)
    overview = seller.service.app.admin
    assert (await overview.stats()).today.revenue == 5
    await at(seller, midnight)
    found = await overview.stats()
    assert (found.today.calls, found.today.revenue, found.total.revenue) == (0, 0, 5)
