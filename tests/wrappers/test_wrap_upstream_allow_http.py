"""`ASSAY_UPSTREAM_ALLOW` through the whole service: wrappers of named operators alone."""

import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from assay.net import resolver
from assay.net.egress import dial
from tests.support.live_service import TestService, refused, start_test_service
from tests.support.raw_server import RawServer, keeps_open, plain, serving

pytestmark = pytest.mark.slow

PAYOUT = "0x" + "ab" * 20


@pytest.fixture
async def inside() -> AsyncIterator[RawServer]:
    """A service on a private address that somebody sells."""
    async with serving(keeps_open(plain(b"inside"))) as server:
        yield server


async def operator_of(service: TestService, email: str) -> tuple[str, dict[str, str]]:
    await service.operator(email)
    token = await service.token(email)
    me = (await service.http.get("/operator/me", headers=token)).json()
    return me["operator"]["id"], token


async def wrap(service: TestService, token: dict[str, str], url: str, **fields: Any) -> Any:
    body = {"path": "/quote", "pricePerCall": 0, "targetUrl": url, **fields}
    return await service.http.post("/operator/endpoints", json=body, headers=token)


async def accounts(folder: Path) -> tuple[str, str]:
    """The ids of a named operator and of a stranger, in an installation that begins without."""
    async with start_test_service(folder) as service:
        named, _ = await operator_of(service, "named@example.com")
        stranger, _ = await operator_of(service, "stranger@example.com")
        return named, stranger


def opened(named: str, inside: RawServer) -> dict[str, Any]:
    return {
        "allow_private_upstreams": False,
        "upstream_allow": f"127.0.0.1:{inside.port}",
        "upstream_allow_operators": named,
    }


async def test_200_the_named_operators_wrapper_forwards_inside(
    tmp_path: Path, inside: RawServer
) -> None:
    named, _ = await accounts(tmp_path / "data")
    async with start_test_service(tmp_path / "data", **opened(named, inside)) as service:
        token = await service.token("named@example.com")
        made = await wrap(service, token, inside.url("/v1"))
        assert made.status_code == 200, made.text
        for _ in range(2):  # the second one over the fast way
            answer = await service.http.get(f"/wrap/{named}/quote")
            assert (answer.status_code, answer.text) == (200, "inside")
    assert [seen.target for seen in inside.requests] == ["/v1/quote", "/v1/quote"]


async def test_200_a_change_is_judged_by_what_is_opened_for_its_operator(
    tmp_path: Path, inside: RawServer
) -> None:
    named, _ = await accounts(tmp_path / "data")
    async with start_test_service(tmp_path / "data", **opened(named, inside)) as service:
        token = await service.token("named@example.com")
        secret = {"upstreamAuthType": "header", "upstreamAuthHeader": "x-key"}
        made = await wrap(service, token, inside.url(), **secret, upstreamAuthSecret="s3cret")
        url = f"/operator/endpoints/{made.json()['id']}"
        changes = {"targetUrl": inside.url("/v1"), "paymentNetwork": "base-sepolia"}
        changed = await service.http.patch(url, json=changes, headers=token)
        assert changed.status_code == 200, changed.text
        assert changed.json()["paymentNetwork"] == "eip155:84532"
        answer = await service.http.get(f"/wrap/{named}/quote")
        assert (answer.status_code, answer.text) == (200, "inside")
        shut = {"targetUrl": f"http://127.0.0.1:{inside.port - 1}"}
        refused(await service.http.patch(url, json=shut, headers=token), 400, "invalid_request")
    [seen] = inside.requests
    assert seen.target == "/v1/quote"
    assert seen.headers["x-key"] == "s3cret"


async def test_400_nobody_elses_wrapper_may_and_both_are_told_the_same(
    tmp_path: Path, inside: RawServer
) -> None:
    """A free account of an open sign-up cannot even learn which addresses are opened."""
    named, stranger = await accounts(tmp_path / "data")
    async with start_test_service(tmp_path / "data", **opened(named, inside)) as service:
        token = await service.token("stranger@example.com")
        said = set()
        for port in (inside.port, inside.port - 1):
            body = refused(
                await wrap(service, token, f"http://127.0.0.1:{port}"), 400, "invalid_request"
            )
            [detail] = body["details"]
            said.add(detail["message"].replace(str(port), "PORT"))
        [message] = said
        assert "ASSAY_UPSTREAM_ALLOW=127.0.0.1:PORT" in message
        assert f"ASSAY_UPSTREAM_ALLOW_OPERATORS={stranger}" in message
    assert inside.connections == 0


async def test_404_a_wrapper_is_not_served_once_its_operator_is_named_no_more(
    tmp_path: Path, inside: RawServer
) -> None:
    named, stranger = await accounts(tmp_path / "data")
    async with start_test_service(tmp_path / "data", **opened(named, inside)) as service:
        made = await wrap(service, await service.token("named@example.com"), inside.url())
        assert made.status_code == 200, made.text
    async with start_test_service(tmp_path / "data", **opened(stranger, inside)) as service:
        refused(await service.http.get(f"/wrap/{named}/quote"), 404, "wrapper_not_found")
    assert inside.connections == 0


async def test_400_proxy_playground_and_webhooks_of_the_named_operator_stay_shut(
    tmp_path: Path, inside: RawServer
) -> None:
    named, _ = await accounts(tmp_path / "data")
    async with start_test_service(tmp_path / "data", **opened(named, inside)) as service:
        await service.pro("named@example.com")
        token = await service.token("named@example.com")
        key = (await service.http.post("/operator/keys/rotate", headers=token)).json()["key"]
        bearer = {"authorization": f"Bearer {key}"}
        assert (await wrap(service, token, inside.url())).status_code == 200
        for path, who, body in (
            ("/operator/proxy/7", bearer, {"targetUrl": inside.url()}),
            ("/operator/playground", token, {"path": inside.url(), "agentId": "7"}),
            ("/operator/playground", token, {"path": "/quote", "agentId": "7"}),
            (
                "/operator/webhooks/register",
                bearer,
                {"event": "evaluation_complete", "url": f"https://127.0.0.1:{inside.port}/"},
            ),
        ):
            answer = await service.http.post(path, headers=who, json=body)
            refused(answer, 400, "invalid_request")
    assert inside.connections == 0


PUBLIC = "93.184.216.34"


@pytest.mark.parametrize("is_opened", [False, True])
@pytest.mark.parametrize(
    ("answers", "dialled"),
    [
        ([PUBLIC], [PUBLIC]),
        (["127.0.0.1"], []),
        (["169.254.169.254"], []),
        (["10.0.3.7", PUBLIC], []),
        ([PUBLIC, "fd12::7"], []),
        (["::ffff:127.0.0.1"], []),
    ],
)
async def test_502_a_name_that_leads_inside_is_not_connected_to_by_any_wrapper(
    tmp_path: Path,
    inside: RawServer,
    monkeypatch: pytest.MonkeyPatch,
    answers: list[str],
    dialled: list[str],
    is_opened: bool,  # noqa: FBT001 - a row of the table
) -> None:
    """Whether there is one pool for everybody or another one for the named operator."""
    asked: list[str] = []

    async def record(address: str, _port: int) -> socket.socket:
        asked.append(address)
        raise OSError("not from a test")

    monkeypatch.setattr(resolver, "_look_up", lambda _host, _port: answers)
    monkeypatch.setattr(dial, "connected_socket", record)
    named, stranger = await accounts(tmp_path / "data")
    settings = opened(named, inside) if is_opened else {"allow_private_upstreams": False}
    async with start_test_service(tmp_path / "data", **settings) as service:
        for email, operator_id in (("named", named), ("stranger", stranger)):
            token = await service.token(f"{email}@example.com")
            made = await wrap(service, token, "https://api.example.com/v1")
            assert made.status_code == 200, made.text
            answer = await service.http.get(f"/wrap/{operator_id}/quote")
            refused(answer, 502, "wrapper_request_failed")
    assert asked == dialled * 2


@pytest.mark.parametrize(
    ("target", "hint"),
    [
        ("http://10.0.3.7:8080/v1", "ASSAY_UPSTREAM_ALLOW=10.0.3.7:8080 "),
        ("https://10.0.3.7", "ASSAY_UPSTREAM_ALLOW=10.0.3.7:443 "),
        ("http://167772935/", "ASSAY_UPSTREAM_ALLOW=10.0.3.7:80 "),
        ("http://[fd12::7]:8080", "ASSAY_UPSTREAM_ALLOW=[fd12::7]:8080 "),
        ("http://api.internal", "ASSAY_UPSTREAM_ALLOW=api.internal:80 "),
        ("https://db", "ASSAY_UPSTREAM_ALLOW=db:443 "),
        ("http://api.example.com", "ASSAY_UPSTREAM_ALLOW=api.example.com:80 "),
        ("http://8.8.8.8/", None),
        ("http://169.254.169.254/", None),
        ("http://[::ffff:10.0.3.7]/", None),
        ("https://10.0.3.7:6379/", None),
        ("ftp://10.0.3.7/", None),
    ],
)
async def test_400_the_refusal_of_a_private_upstream_says_what_to_set(
    tmp_path: Path, target: str, hint: str | None
) -> None:
    async with start_test_service(tmp_path / "data", allow_private_upstreams=False) as service:
        operator_id, token = await operator_of(service, "op@example.com")
        body = refused(await wrap(service, token, target), 400, "invalid_request")
        [detail] = body["details"]
        assert detail["loc"] == ["body", "targetUrl"]
        if hint is None:
            assert "ASSAY_" not in detail["message"]
        else:
            assert hint in detail["message"]
            assert f"ASSAY_UPSTREAM_ALLOW_OPERATORS={operator_id}" in detail["message"]


@pytest.mark.parametrize("name", ["base-sepolia", "BASE-SEPOLIA", "eip155:84532"])
async def test_200_a_network_by_any_of_its_names_is_stored_as_its_id(
    service: TestService, name: str
) -> None:
    _, token = await operator_of(service, "op@example.com")
    fields = {"pricePerCall": 0.01, "payoutAddress": PAYOUT, "paymentNetwork": name}
    made = await wrap(service, token, "http://127.0.0.1:8999", **fields)
    assert made.status_code == 200, made.text
    assert made.json()["paymentNetwork"] == "eip155:84532"
    [listed] = (await service.http.get("/operator/endpoints", headers=token)).json()
    assert listed["paymentNetwork"] == "eip155:84532"


@pytest.mark.parametrize("name", ["sepolia", "tempo", "", "eip155:1", "base sepolia"])
async def test_400_a_network_that_is_none_is_answered_with_those_that_are(
    service: TestService, name: str
) -> None:
    _, token = await operator_of(service, "op@example.com")
    fields = {"pricePerCall": 0.01, "payoutAddress": PAYOUT, "paymentNetwork": name}
    body = refused(
        await wrap(service, token, "http://127.0.0.1:8999", **fields), 400, "invalid_request"
    )
    [detail] = body["details"]
    assert detail["loc"] == ["body", "paymentNetwork"]
    assert "eip155:8453 (base), eip155:84532 (base-sepolia)" in detail["message"]


async def test_200_the_body_of_a_registration_logs_in(service: TestService) -> None:
    body = {"email": "a@example.com", "password": "correct horse battery", "name": "Ann"}
    assert (await service.http.post("/operator/register", json=body)).status_code == 200
    assert (await service.http.post("/operator/login", json=body)).status_code == 200
    wrong = body | {"password": "wrong horse battery"}
    refused(await service.http.post("/operator/login", json=wrong), 401, "unauthorized")
