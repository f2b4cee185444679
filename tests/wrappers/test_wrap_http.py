"""A wrapper in front of a real upstream: identity, trust, limits, the call log, in their order."""

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.wrappers.stages import forward
from assay_demo.chain import dollars
from assay_demo.chain.accounts import ACCOUNTS
from tests.support.fakes.name_servers import NameServers
from tests.support.live_service import (
    OWNER_KEY,
    STRANGER_KEY,
    TestService,
    address,
    refused,
    start_test_service,
)
from tests.support.wire_upstream import WireUpstream, wire_upstream


@pytest.fixture
def up() -> Iterator[WireUpstream]:
    with wire_upstream() as running:
        yield running


class Seller:
    """An operator with wrappers."""

    def __init__(
        self, service: TestService, up: WireUpstream, operator_id: str, token: dict[str, str]
    ) -> None:
        self.service, self.up, self.operator_id, self.token = service, up, operator_id, token

    async def wrap(self, path: str, **fields: Any) -> str:
        body = {"path": path, "pricePerCall": 0, "targetUrl": self.up.url, **fields}
        answer = await self.service.http.post("/operator/endpoints", json=body, headers=self.token)
        assert answer.status_code == 200, answer.text
        return f"/wrap/{self.operator_id}{path}"


@pytest.fixture
async def seller(service: TestService, up: WireUpstream) -> Seller:
    await service.operator()
    token = await service.token()
    me = (await service.http.get("/operator/me", headers=token)).json()
    return Seller(service, up, me["operator"]["id"], token)


async def test_an_open_wrapper_asks_for_nothing(seller: Seller) -> None:
    url = await seller.wrap("/open")
    assert (await seller.service.http.get(url)).status_code == 200
    assert len(seller.up.to("/open")) == 1


async def test_what_no_wrapper_answers_is_not_found(seller: Seller) -> None:
    url = await seller.wrap("/there")
    for path, method in ((url + "/x", "GET"), (url, "POST"), ("/wrap/nobody/there", "GET")):
        refused(await seller.service.http.request(method, path), 404, "wrapper_not_found")
    for path in ("/wrap/", f"/wrap/{seller.operator_id}", f"/wrap/{seller.operator_id}/"):
        refused(await seller.service.http.get(path), 404, "wrapper_not_found")


async def test_a_deactivated_wrapper_is_gone_at_once(seller: Seller) -> None:
    url = await seller.wrap("/gone")
    assert (await seller.service.http.get(url)).status_code == 200
    [made] = (await seller.service.http.get("/operator/endpoints", headers=seller.token)).json()
    await seller.service.http.delete(f"/operator/endpoints/{made['id']}", headers=seller.token)
    refused(await seller.service.http.get(url), 404, "wrapper_not_found")


async def test_trust_asks_who_calls_and_believes_only_proof(seller: Seller) -> None:
    url, http = await seller.wrap("/trusted", trustEnabled=True, minScore=0), seller.service.http
    refused(await http.get(url), 401, "identity_required")
    who = {"x-agent-address": address(OWNER_KEY)}
    body = refused(await http.get(url, headers=who), 401, "challenge_required")
    assert body["challenge"]
    refused(await http.get(url, headers={"x-agent-id": "7"}), 401, "identity_required")
    session = await seller.service.session(OWNER_KEY)
    answer = await http.get(url, headers={**session, "x-agent-id": "7"})
    assert answer.status_code == 200, answer.text
    [seen] = seller.up.to("/trusted")
    assert seen.all("x-assay-agent") == ["7"]
    assert seen.all("x-assay-identity-proven") == ["true"]
    assert seen.all("x-assay-tier")
    assert float(seen.all("x-assay-score")[0]) >= 0


async def test_an_agent_id_is_a_claim_until_its_owner_proves_it(seller: Seller) -> None:
    url = await seller.wrap("/claimed", trustEnabled=True, minScore=0)
    stranger = await seller.service.session(STRANGER_KEY)
    answer = await seller.service.http.get(url, headers={**stranger, "x-agent-id": "7"})
    refused(answer, 401, "identity_mismatch")
    assert seller.up.to("/claimed") == []


async def test_a_signed_challenge_with_the_call_begins_a_session(seller: Seller) -> None:
    url = await seller.wrap("/signed", trustEnabled=True, minScore=0)
    signed = await seller.service.challenge(OWNER_KEY)
    headers = {
        "x-agent-address": signed["agentAddress"],
        "x-agent-challenge": signed["challenge"],
        "x-agent-signature": signed["signature"],
    }
    answer = await seller.service.http.get(url, headers=headers)
    assert answer.status_code == 200
    assert answer.headers["x-agent-session"]


async def test_an_agent_that_is_not_good_enough_is_told_what_would_help(seller: Seller) -> None:
    url = await seller.wrap("/strict", trustEnabled=True, minScore=99)
    session = await seller.service.session(OWNER_KEY)
    answer = await seller.service.http.get(url, headers={**session, "x-agent-id": "7"})
    body = refused(answer, 403, "trust_denied")
    assert {"tier", "score", "minScore", "reasons", "improve", "agentId"} <= body.keys()
    assert seller.up.to("/strict") == []


async def test_a_bare_header_is_believed_only_where_the_wrapper_says_so(seller: Seller) -> None:
    url = await seller.wrap("/word", trustEnabled=True, minScore=0, identityProof="asserted")
    http = seller.service.http
    answer = await http.get(url, headers={"x-agent-address": address(OWNER_KEY)})
    assert answer.status_code == 200
    assert seller.up.to("/word")[0].all("x-assay-identity-proven") == ["false"]
    contradicts = {"x-agent-address": address(STRANGER_KEY), "x-agent-id": "7"}
    refused(await http.get(url, headers=contradicts), 401, "identity_mismatch")


async def test_the_rate_limit_counts_each_agent_by_itself(seller: Seller) -> None:
    url = await seller.wrap("/limited", trustEnabled=True, minScore=0, rateLimit=2)
    http, one = seller.service.http, await seller.service.session(OWNER_KEY)
    left = [(await http.get(url, headers=one)).headers["ratelimit-remaining"] for _ in range(2)]
    assert left == ["1", "0"]
    answer = await http.get(url, headers=one)
    refused(answer, 429, "rate_limit_exceeded")
    assert 1 <= int(answer.headers["retry-after"]) <= 61
    assert answer.headers["ratelimit-remaining"] == "0"
    other = await seller.service.session(STRANGER_KEY)
    assert (await http.get(url, headers=other)).status_code == 200
    seller.service.clock.move(62)
    again = await seller.service.session(OWNER_KEY)
    assert (await http.get(url, headers=again)).status_code == 200
    assert len(seller.up.to("/limited")) == 4


async def test_agents_of_one_owner_have_a_limit_each(seller: Seller) -> None:
    """The limit is an agent's, whichever of its addresses speaks for it.

    Source: interface.md#wrapper-configuration.
    """
    url = await seller.wrap("/each", trustEnabled=True, minScore=0, rateLimit=1)
    http, who = seller.service.http, await seller.service.session(OWNER_KEY)
    for named in ({"x-agent-id": "7"}, {"x-agent-id": "8"}, {}):
        assert (await http.get(url, headers={**who, **named})).status_code == 200
        again = await http.get(url, headers={**who, **named})
        refused(again, 429, "rate_limit_exceeded")


@pytest.mark.parametrize(
    ("cold_start", "status"), [("deny", 403), ("throttle", 200), ("allow", 200)]
)
async def test_cold_start_decides_on_agents_that_nobody_knows(
    seller: Seller, cold_start: str, status: int
) -> None:
    """A fresh key: nothing is proven of it, and nothing is known against it."""
    url = await seller.wrap("/cold", trustEnabled=True, coldStart=cold_start)
    http, who = seller.service.http, await seller.service.session(STRANGER_KEY)
    first = await http.get(url, headers=who)
    assert first.status_code == status
    if status != 200:
        body = refused(first, 403, "trust_denied")
        assert (body["denialReason"], body["rung"]) == ("insufficient_evidence", 0)
        return
    statuses = {(await http.get(url, headers=who)).status_code for _ in range(12)}
    assert statuses == ({200, 429} if cold_start == "throttle" else {200})


async def test_an_address_that_is_only_asserted_has_no_limit_of_its_own(seller: Seller) -> None:
    """Else whoever invents addresses would have as many limits."""
    fields = {"trustEnabled": True, "minScore": 0, "identityProof": "asserted", "rateLimit": 2}
    url, http = await seller.wrap("/asserted", **fields), seller.service.http
    invented = [{"x-agent-address": "0x" + f"{n:040x}"} for n in range(3)]
    statuses = [(await http.get(url, headers=who)).status_code for who in invented]
    assert statuses == [200, 200, 429]


async def test_a_paid_wrapper_judges_a_shown_session_before_it_asks_for_money(
    seller: Seller,
) -> None:
    fields = {"pricePerCall": 0.01, "payoutAddress": "0x" + "ab" * 20}
    url = await seller.wrap("/dear", trustEnabled=True, minScore=99, **fields)
    http = seller.service.http
    refused(await http.get(url), 402, "payment_required")
    session = await seller.service.session(OWNER_KEY)
    denied = await http.get(url, headers={**session, "x-agent-id": "7"})
    refused(denied, 403, "trust_denied")


async def test_a_body_above_the_cap_is_refused_before_anything_else(seller: Seller) -> None:
    fields = {"pricePerCall": 0.01, "payoutAddress": "0x" + "ab" * 20, "method": "POST"}
    url = await seller.wrap("/capped", maxBodyBytes=3, trustEnabled=True, **fields)
    refused(await seller.service.http.post(url, content=b"1234"), 413, "payload_too_large")


async def test_every_call_is_a_row_of_the_log(seller: Seller) -> None:
    url = await seller.wrap("/logged", trustEnabled=True, minScore=0, method="*")
    session = await seller.service.session(OWNER_KEY)
    who = {**session, "x-agent-id": "7"}
    await seller.service.http.post(url, headers=who, content=b"12345")
    refused(await seller.service.http.get(url), 401, "identity_required")
    await seller.service.app.flush()
    refusal, served = await seller.service.app.call_store.recent(seller.operator_id, 10)
    assert (served.status, served.outcome, served.kind.agent_id) == (200, "forwarded", "7")
    assert (served.kind.agent_address, served.kind.identity_proven) == (address(OWNER_KEY), True)
    assert (served.kind.method, served.kind.path, served.cost) == ("POST", "/logged", 0)
    assert (served.request_bytes, served.response_bytes) == (5, 64)
    assert served.kind.tier
    assert (refusal.status, refusal.outcome, refusal.kind.agent_id) == (
        401,
        "identity_required",
        None,
    )


async def test_the_lane_has_a_limit_of_its_own(tmp_path: Path) -> None:
    async with start_test_service(tmp_path / "h", wrapper_per_minute=2) as service:
        answers = [await service.http.get("/wrap/nobody/x") for _ in range(3)]
        assert [a.status_code for a in answers] == [404, 404, 429]
        refused(answers[2], 429, "rate_limited")


async def test_a_secret_sealed_by_an_older_key_still_opens_and_is_resealed(
    tmp_path: Path, up: WireUpstream
) -> None:
    old, new = "o" * 32, "n" * 32
    fields = {
        "upstreamAuthType": "header",
        "upstreamAuthHeader": "x-key",
        "upstreamAuthSecret": "secret-value",
    }
    for ring in ((old,), (new, old), (new,)):
        async with start_test_service(tmp_path / "h", upstream_secrets=ring) as service:
            if ring == (old,):
                await service.operator()
            token = await service.token()
            me = (await service.http.get("/operator/me", headers=token)).json()
            seller = Seller(service, up, me["operator"]["id"], token)
            if ring == (old,):
                await seller.wrap("/sealed", **fields)
            answer = await service.http.get(f"/wrap/{seller.operator_id}/sealed")
            assert answer.status_code == 200
            if ring == (new, old):
                assert await service.app.endpoints.reseal(seller.operator_id) == 1
                trail, _ = await service.app.admin.audit(seller.operator_id, None, 1)
                assert [note.action for note in trail] == ["endpoint.resealed"]
                assert await service.app.endpoints.reseal(seller.operator_id) == 0
    assert [one.all("x-key") for one in up.to("/sealed")] == [["secret-value"]] * 3


async def test_a_wrapper_whose_secret_is_lost_is_answered_by_no_wider_one(
    tmp_path: Path, up: WireUpstream
) -> None:
    """Its callers would have come past its price and its trust rule."""
    fields = {
        "trustEnabled": True,
        "upstreamAuthType": "header",
        "upstreamAuthHeader": "x-key",
        "upstreamAuthSecret": "secret-value",
    }
    for secret in ("o" * 32, "n" * 32):
        async with start_test_service(tmp_path / "h", upstream_secrets=(secret,)) as service:
            if secret.startswith("o"):
                await service.operator()
            token = await service.token()
            me = (await service.http.get("/operator/me", headers=token)).json()
            seller = Seller(service, up, me["operator"]["id"], token)
            if secret.startswith("o"):
                await seller.wrap("/strict", **fields)
                await seller.wrap("/*")
                continue
            url = f"/wrap/{seller.operator_id}/strict"
            refused(await service.http.get(url), 404, "wrapper_not_found")
            assert (await service.http.get(url + "er")).status_code == 200
    assert up.to("/strict") == []


async def test_a_length_no_database_can_hold_does_not_hold_up_the_log(seller: Seller) -> None:
    """It was written down as it was declared, and no call after it was ever logged."""
    url, http = await seller.wrap("/huge"), seller.service.http
    huge = {"content-length": "99999999999999999999"}
    refused(await http.get(url, headers=huge), 413, "payload_too_large")
    assert (await http.get(url)).status_code == 200
    await seller.service.app.flush()
    logs = await http.get("/operator/analytics/logs", headers=seller.token)
    assert [row["statusCode"] for row in logs.json()["logs"]] == [200, 413]


async def test_the_body_of_a_paid_call_has_a_minute_and_not_one_for_each_byte(
    seller: Seller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forward, "BUFFERED_BODY_S", 0.3)
    fields = {"pricePerCall": 0.01, "payoutAddress": "0x" + "ab" * 20, "method": "POST"}
    url, http, clock = (
        await seller.wrap("/slow-body", **fields),
        seller.service.http,
        seller.service.clock,
    )
    clock.move(time.time() - clock.now().timestamp())  # signatures are dated by the real one
    demand = await http.post(url)
    required = json.loads(base64.b64decode(demand.headers["payment-required"]))
    accepted = required["accepts"][0]
    signed = dollars.authorize(ACCOUNTS[5].key, accepted, 8453)
    payment = {"x402Version": 2, "accepted": accepted, "payload": signed}
    header = base64.b64encode(json.dumps(payment).encode()).decode()

    async def body() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b"x"
            await asyncio.sleep(0.05)

    answer = await http.post(url, content=body(), headers={"payment-signature": header})
    refused(answer, 408, "request_timeout")
    assert seller.up.to("/slow-body") == []


async def test_slow_names_of_one_operator_hold_up_no_other_operators_wrapper(
    seller: Seller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.net.resolver.WAIT_S", 0.0)
    servers, service = NameServers(monkeypatch), seller.service
    await service.operator("x@example.com")
    token = await service.token("x@example.com")
    me = (await service.http.get("/operator/me", headers=token)).json()
    slow = Seller(service, seller.up, me["operator"]["id"], token)
    urls = [await slow.wrap(f"/{n}", targetUrl=f"http://slow{n}.test") for n in range(10)]
    fine = await seller.wrap("/x", targetUrl=seller.up.url.replace("127.0.0.1", "localhost"))
    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(service.http.get(url)) for url in urls]
        while sum(call.done() for call in calls) < len(calls) - 2:
            await asyncio.wait([c for c in calls if not c.done()], return_when="FIRST_COMPLETED")
        assert (await service.http.get(fine)).status_code == 200
        servers.answer.set()
    answers = [call.result() for call in calls]
    assert sorted(answer.status_code for answer in answers) == [502] * 2 + [503] * 8
    for answer in answers:
        if answer.status_code == 503:
            refused(answer, 503, "temporarily_unavailable")
            assert answer.headers["retry-after"] == "1"
