"""An unproven receiver gets no more than its domain's budget, whoever registers it how often."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from assay.common.egress_budget import RESERVED, egress_use
from assay.net.egress.ports import EgressError, Limits, OutboundRequest
from assay.webhooks.model import DeliveryState
from tests.support.house import House, open_house
from tests.support.raw_server import RawServer, Request, keeps_open, plain, serving

OTHERS = ("a@example.com", "b@example.com", "c@example.com")


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(tmp_path / "data", egress_budget_private=True) as opened:
        yield opened


async def registered(house: House, who: dict[str, str], *urls: str) -> list[dict[str, str]]:
    made: list[dict[str, str]] = []
    for url in urls:
        body = {"event": "evaluation_complete", "url": url}
        answer = await house.http.post("/operator/webhooks/register", json=body, headers=who)
        assert answer.status_code == 201, answer.text
        made.append(answer.json())
    return made


async def evaluated(house: House) -> None:
    subject = await house.app.subjects.find(house.app.networks.default, "7")
    await house.app.evaluator.evaluate(subject, 5.0)


async def states(house: House) -> list[tuple[str, str | None]]:
    found = await house.app.webhook_store.deliveries_for_admin(None, 1000)
    return [(one.state.value, one.reason) for one in found]


async def until(house: House, is_so: Callable[[list[tuple[str, str | None]]], bool]) -> None:
    """Until the deliveries are as they should be; what is due is begun as the clock says."""
    async with asyncio.timeout(30):
        while not is_so(await states(house)):  # noqa: ASYNC110 - a table has no event
            await asyncio.sleep(0.02)


async def all_wait(house: House) -> None:
    """Until whatever is not delivered waits for its budget: what is on its way would wait anew."""
    async with asyncio.timeout(30):
        while True:
            found = await house.app.webhook_store.deliveries_for_admin(None, 1000)
            left = [one for one in found if one.state is not DeliveryState.SENT]
            if all(one.state is DeliveryState.PENDING and one.has_waited for one in left):
                return
            await asyncio.sleep(0.02)


def posts(receiver: RawServer) -> list[Request]:
    return [one for one in receiver.requests if one.method == "POST"]


async def test_many_webhooks_of_some_accounts_are_no_crowd_at_one_host(house: House) -> None:
    """A quarter of the budget is the most of one account, a half of all that are unproven."""
    async with serving(keeps_open(plain(b"ok"))) as receiver:
        for number, email in enumerate(OTHERS):
            who = await house.operator(email)
            urls = [receiver.url(f"/{number}/{n}") for n in range(20)]
            await registered(house, who, *urls)
        await evaluated(house)
        await until(house, lambda rows: rows.count(("sent", None)) == 30)
        await until(house, lambda rows: not [row for row in rows if row[0] == "sending"])
        assert len(receiver.requests) == 30
        house.clock.move(61)
        await until(house, lambda rows: len([row for row in rows if row[0] == "sent"]) > 55)
        assert len(receiver.requests) <= 60


async def test_what_waited_in_vain_for_ten_minutes_is_failed_for_the_budget(house: House) -> None:
    async with serving(keeps_open(plain(b"ok"))) as receiver:
        who = await house.operator()
        await registered(house, who, *(receiver.url(f"/{n}") for n in range(18)))
        await evaluated(house)
        await until(house, lambda rows: rows.count(("sent", None)) == 15)
        await until(house, lambda rows: rows.count(("pending", None)) == 3)
        house.clock.move(3000)
        house.app.deliverer._care_at_s = 0.0
        await until(house, lambda rows: ("failed", "budget") in rows)
        assert len(posts(receiver)) == 15
        assert (await states(house)).count(("failed", "budget")) == 3


async def test_a_receiver_that_shows_the_token_has_a_budget_of_its_own(house: House) -> None:
    shown: list[str] = []

    async def respond(request: Request, writer: asyncio.StreamWriter) -> None:
        told = "\n".join(shown) if request.method == "GET" else "ok"
        writer.write(plain(told.encode()))

    async with serving(respond) as receiver:
        who = await house.operator()
        made = await registered(house, who, *(receiver.url(f"/{n}") for n in range(30)))
        assert len({one["verificationToken"] for one in made}) == 1
        path = f"/operator/webhooks/{made[0]['id']}/verify"
        not_yet = await house.http.post(path, headers=who)
        assert not_yet.json()["verified"] is False
        shown.append(made[0]["verificationToken"])
        assert receiver.requests[0].target == "/.well-known/assay-webhook-verification"
        other = await house.operator("other@example.com")
        [theirs] = await registered(house, other, receiver.url("/other"))
        assert theirs["verificationToken"] not in shown
        verified = await house.http.post(path, headers=who)
        assert verified.json() == {"id": made[0]["id"], "verified": True}
        await evaluated(house)
        await until(house, lambda rows: rows.count(("sent", None)) == 31)


async def test_the_token_is_looked_for_when_there_is_need_of_a_budget(house: House) -> None:
    tokens: list[str] = []

    async def respond(request: Request, writer: asyncio.StreamWriter) -> None:
        told = "\n".join(tokens) if request.method == "GET" else "ok"
        writer.write(plain(told.encode()))

    async with serving(respond) as receiver:
        who = await house.operator()
        made = await registered(house, who, *(receiver.url(f"/{n}") for n in range(50)))
        tokens.append(made[0]["verificationToken"])
        await evaluated(house)
        await until(house, lambda rows: rows.count(("sent", None)) == 15)
        await all_wait(house)
        house.clock.move(61)
        await until(house, lambda rows: rows.count(("sent", None)) == 50)
        assert len([one for one in receiver.requests if one.method == "GET"]) == 1


@pytest.mark.parametrize("is_sent", [False, True])
async def test_a_token_request_counts_as_asked_only_if_it_was_sent(
    house: House, *, is_sent: bool
) -> None:
    """If there was no room for the request, the receiver is asked as soon as there is."""
    async with serving(keeps_open(plain(b"no token"))) as receiver:
        await house.operator()
        proofs, http = house.app.webhooks._proofs, house.app.evaluator._needs.http
        assert proofs is not None
        url = receiver.url("/hook")
        if is_sent:
            assert await proofs.ask("op", url) is False
        other = OutboundRequest("GET", receiver.url("/x"))
        with egress_use(RESERVED):
            for _ in range(60 - len(receiver.requests)):
                await http.send(other)
            with pytest.raises(EgressError, match="egress_budget"):
                await http.send(other)
        if not is_sent:
            assert await proofs.ask("op", url) is False
        house.clock.move(61)
        before = len(receiver.requests)
        assert await proofs.ask("op", url) is False
        assert len(receiver.requests) - before == (0 if is_sent else 1)


async def test_somebody_elses_webhook_is_not_found_when_it_is_verified(house: House) -> None:
    who, other = await house.operator(), await house.operator("other@example.com")
    [made] = await registered(house, who, "https://hooks.example.com/x")
    answer = await house.http.post(f"/operator/webhooks/{made['id']}/verify", headers=other)
    assert (answer.status_code, answer.json()["code"]) == (404, "webhook_not_found")


async def test_a_delivery_that_waits_for_other_requests_is_sent_when_they_end(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slots that strangers' slow calls hold are no time-out of the receiver's."""
    monkeypatch.setattr("assay.webhooks.delivery.LIMITS", Limits(connect_s=0.2, total_s=0.2))
    held, arrived = asyncio.Event(), asyncio.Semaphore(0)

    async def hold(request: Request, writer: asyncio.StreamWriter) -> None:
        del request
        arrived.release()
        await held.wait()
        writer.write(plain(b"late"))

    async with serving(keeps_open(plain(b"ok"))) as receiver, serving(hold) as evil:
        who = await house.operator()
        hook = receiver.url("/hook", host="localhost")
        body = {"event": "evaluation_complete", "url": hook, "agentIds": [7]}
        made = await house.http.post("/operator/webhooks/register", json=body, headers=who)
        assert made.status_code == 201
        async with asyncio.TaskGroup() as group:
            for email in OTHERS[:2]:
                await house.operator(email)
                token = await house.token(email)
                body = {"path": evil.url("/x"), "agentId": "8", "method": "GET"}
                call = house.http.post("/operator/playground", headers=token, json=body)
                group.create_task(call)  # type: ignore[arg-type] - a coroutine
                await arrived.acquire()
            await evaluated(house)
            await until(house, lambda rows: rows == [("pending", None)])
            assert not receiver.requests
            held.set()
        house.clock.move(61)
        await until(house, lambda rows: rows == [("sent", None)])
        assert len(posts(receiver)) == 1
