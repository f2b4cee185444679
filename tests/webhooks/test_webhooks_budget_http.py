"""An unproven receiver gets no more than its domain's budget, whoever registers it how often."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from assay.common.egress_budget import RESERVED, egress_use
from assay.net.egress.ports import EgressError, Limits, OutboundRequest
from assay.webhooks.model import DeliveryState
from tests.support.live_service import TestService, start_test_service
from tests.support.raw_server import RawServer, Request, keeps_open, plain, serving

pytestmark = pytest.mark.slow

OTHERS = ("a@example.com", "b@example.com", "c@example.com")


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[TestService]:
    async with start_test_service(tmp_path / "data", egress_budget_private=True) as opened:
        yield opened


async def registered(service: TestService, who: dict[str, str], *urls: str) -> list[dict[str, str]]:
    made: list[dict[str, str]] = []
    for url in urls:
        body = {"event": "evaluation_complete", "url": url}
        answer = await service.http.post("/operator/webhooks/register", json=body, headers=who)
        assert answer.status_code == 201, answer.text
        made.append(answer.json())
    return made


async def evaluated(service: TestService) -> None:
    subject = await service.app.subjects.find(service.app.networks.default, "7")
    await service.app.evaluator.evaluate(subject, 5.0)


async def states(service: TestService) -> list[tuple[str, str | None]]:
    found = await service.app.webhook_store.deliveries_for_admin(None, 1000)
    return [(one.state.value, one.reason) for one in found]


async def until(
    service: TestService, is_so: Callable[[list[tuple[str, str | None]]], bool]
) -> None:
    """Until the deliveries are as they should be; what is due is begun as the clock says."""
    async with asyncio.timeout(30):
        while not is_so(await states(service)):  # noqa: ASYNC110 - a table has no event
            await asyncio.sleep(0.02)


async def all_wait(service: TestService) -> None:
    """Until whatever is not delivered waits for its budget: what is on its way would wait anew."""
    async with asyncio.timeout(30):
        while True:
            found = await service.app.webhook_store.deliveries_for_admin(None, 1000)
            left = [one for one in found if one.state is not DeliveryState.SENT]
            if all(one.state is DeliveryState.PENDING and one.has_waited for one in left):
                return
            await asyncio.sleep(0.02)


def posts(receiver: RawServer) -> list[Request]:
    return [one for one in receiver.requests if one.method == "POST"]


async def test_many_webhooks_of_some_accounts_are_no_crowd_at_one_host(
    service: TestService,
) -> None:
    """A quarter of the budget is the most of one account, a half of all that are unproven."""
    async with serving(keeps_open(plain(b"ok"))) as receiver:
        for number, email in enumerate(OTHERS):
            who = await service.operator(email)
            urls = [receiver.url(f"/{number}/{n}") for n in range(20)]
            await registered(service, who, *urls)
        await evaluated(service)
        await until(service, lambda rows: rows.count(("sent", None)) == 30)
        await until(service, lambda rows: not [row for row in rows if row[0] == "sending"])
        assert len(receiver.requests) == 30
        service.clock.move(61)
        await until(service, lambda rows: len([row for row in rows if row[0] == "sent"]) > 55)
        assert len(receiver.requests) <= 60


async def test_what_waited_in_vain_for_ten_minutes_is_failed_for_the_budget(
    service: TestService,
) -> None:
    async with serving(keeps_open(plain(b"ok"))) as receiver:
        who = await service.operator()
        await registered(service, who, *(receiver.url(f"/{n}") for n in range(18)))
        await evaluated(service)
        await until(service, lambda rows: rows.count(("sent", None)) == 15)
        await until(service, lambda rows: rows.count(("pending", None)) == 3)
        service.clock.move(3000)
        service.app.deliverer._care_at_s = 0.0
        await until(service, lambda rows: ("failed", "budget") in rows)
        assert len(posts(receiver)) == 15
        assert (await states(service)).count(("failed", "budget")) == 3


async def test_a_receiver_that_shows_the_token_has_a_budget_of_its_own(
    service: TestService,
) -> None:
    shown: list[str] = []

    async def respond(request: Request, writer: asyncio.StreamWriter) -> None:
        told = "\n".join(shown) if request.method == "GET" else "ok"
        writer.write(plain(told.encode()))

    async with serving(respond) as receiver:
        who = await service.operator()
        made = await registered(service, who, *(receiver.url(f"/{n}") for n in range(30)))
        assert len({one["verificationToken"] for one in made}) == 1
        path = f"/operator/webhooks/{made[0]['id']}/verify"
        not_yet = await service.http.post(path, headers=who)
        assert not_yet.json()["verified"] is False
        shown.append(made[0]["verificationToken"])
        assert receiver.requests[0].target == "/.well-known/assay-webhook-verification"
        other = await service.operator("other@example.com")
        [theirs] = await registered(service, other, receiver.url("/other"))
        assert theirs["verificationToken"] not in shown
        verified = await service.http.post(path, headers=who)
        assert verified.json() == {"id": made[0]["id"], "verified": True}
        await evaluated(service)
        await until(service, lambda rows: rows.count(("sent", None)) == 31)


async def test_the_token_is_looked_for_when_there_is_need_of_a_budget(service: TestService) -> None:
    tokens: list[str] = []

    async def respond(request: Request, writer: asyncio.StreamWriter) -> None:
        told = "\n".join(tokens) if request.method == "GET" else "ok"
        writer.write(plain(told.encode()))

    async with serving(respond) as receiver:
        who = await service.operator()
        made = await registered(service, who, *(receiver.url(f"/{n}") for n in range(50)))
        tokens.append(made[0]["verificationToken"])
        await evaluated(service)
        await until(service, lambda rows: rows.count(("sent", None)) == 15)
        await all_wait(service)
        service.clock.move(61)
        await until(service, lambda rows: rows.count(("sent", None)) == 50)
        assert len([one for one in receiver.requests if one.method == "GET"]) == 1


@pytest.mark.parametrize("is_sent", [False, True])
async def test_a_token_request_counts_as_asked_only_if_it_was_sent(
    service: TestService, *, is_sent: bool
) -> None:
    """If there was no room for the request, the receiver is asked as soon as there is."""
    async with serving(keeps_open(plain(b"no token"))) as receiver:
        await service.operator()
        proofs, http = service.app.webhooks._proofs, service.app.evaluator._needs.http
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
        service.clock.move(61)
        before = len(receiver.requests)
        assert await proofs.ask("op", url) is False
        assert len(receiver.requests) - before == (0 if is_sent else 1)


async def test_somebody_elses_webhook_is_not_found_when_it_is_verified(
    service: TestService,
) -> None:
    who, other = await service.operator(), await service.operator("other@example.com")
    [made] = await registered(service, who, "https://hooks.example.com/x")
    answer = await service.http.post(f"/operator/webhooks/{made['id']}/verify", headers=other)
    assert (answer.status_code, answer.json()["code"]) == (404, "webhook_not_found")


async def test_a_delivery_that_waits_for_other_requests_is_sent_when_they_end(
    service: TestService, monkeypatch: pytest.MonkeyPatch
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
        who = await service.operator()
        hook = receiver.url("/hook", host="localhost")
        body = {"event": "evaluation_complete", "url": hook, "agentIds": [7]}
        made = await service.http.post("/operator/webhooks/register", json=body, headers=who)
        assert made.status_code == 201
        async with asyncio.TaskGroup() as group:
            for email in OTHERS[:2]:
                await service.operator(email)
                token = await service.token(email)
                body = {"path": evil.url("/x"), "agentId": "8", "method": "GET"}
                call = service.http.post("/operator/playground", headers=token, json=body)
                group.create_task(call)  # type: ignore[arg-type] - a coroutine
                await arrived.acquire()
            await evaluated(service)
            await until(service, lambda rows: rows == [("pending", None)])
            assert not receiver.requests
            held.set()
        service.clock.move(61)
        await until(service, lambda rows: rows == [("sent", None)])
        assert len(posts(receiver)) == 1
