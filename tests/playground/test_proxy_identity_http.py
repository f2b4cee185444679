"""Proxy and playground say who they are, carry no credential of ours and forge nobody's address."""

import re
from typing import Any

import pytest

from tests.support.live_service import OWNER_KEY, TestService
from tests.support.raw_server import RawServer, Request, keeps_open, plain, serving

OK = keeps_open(plain(b"ok"))


async def sent(
    service: TestService, by: str, up: RawServer, path: str, headers: dict[str, str]
) -> Request:
    """What the target gets of a call by one of the ways out."""
    await service.operator()
    await service.pro()
    token = await service.token()
    if by == "proxy":
        key = (await service.http.post("/operator/keys/rotate", headers=token)).json()["key"]
        body: dict[str, Any] = {"targetUrl": up.url(path), "headers": headers}
        who = {"authorization": f"Bearer {key}"}
        answer = await service.http.post("/operator/proxy/7", json=body, headers=who)
    else:
        if by == "own wrapper":
            made = {"path": "/*", "pricePerCall": 0, "targetUrl": up.url("/")}
            made |= {"upstreamAuthType": "header", "upstreamAuthHeader": "x-key"}
            made |= {"upstreamAuthSecret": "svc_op_an_account_of_ours_behind_a_wrapper"}
            await service.http.post("/operator/endpoints", json=made, headers=token)
        else:
            path = up.url(path)
        body = {"path": path, "agentId": "7", "headers": headers}
        answer = await service.http.post("/operator/playground", json=body, headers=token)
    assert answer.status_code == 200, answer.text
    assert answer.json()["statusCode"] == 200
    return up.requests[-1]


@pytest.mark.parametrize("by", ["proxy", "playground", "own wrapper"])
async def test_a_call_names_us_and_nobody_else(service: TestService, by: str) -> None:
    """Otherwise the service is an anonymising relay."""
    forged = {
        "User-Agent": "Mozilla/5.0",
        "Via": "1.1 nobody",
        "X-Forwarded-For": "6.6.6.6",
        "x-real-ip": "6.6.6.6",
        "Forwarded": "for=6.6.6.6",
        "True-Client-IP": "6.6.6.6",
        "CF_Connecting_IP": "6.6.6.6",
        "X-Original-URL": "/6.6.6.6",
        "X-HTTP-Method-Override": "6.6.6.6",
        "X-Assay-Tier": "6.6.6.6",
        "X-Request-Id": "6.6.6.6",
    }
    async with serving(OK) as up:
        seen = await sent(service, by, up, "/x", {**forged, "X-Mine": "1", "Cookie": "a=b"})
    address = service.app.settings.address
    assert seen.headers["user-agent"] == f"Assay-Proxy/1 (calls made for an operator; {address})"
    assert re.fullmatch(r"1\.1 assay-[0-9a-f]{8}", seen.headers["via"])
    assert "6.6.6.6" not in str(seen.headers)
    assert (seen.headers["x-mine"], seen.headers["cookie"]) == ("1", "a=b")


@pytest.mark.parametrize("by", ["proxy", "playground", "own wrapper"])
async def test_no_credential_of_ours_goes_along(service: TestService, by: str) -> None:
    session = (await service.session(OWNER_KEY))["x-agent-session"]
    await service.operator("b@example.com")
    jwt = (await service.token("b@example.com"))["authorization"].removeprefix("Bearer ")
    key = "svc_op_" + "a" * 43
    headers = {
        "Authorization": f"Bearer {jwt}",
        "X-Api-Key": key,
        "Cookie": f"a=b; t={session}; assay_session=x",
        "x-agent-signature": "0xab",
        "X-PAYMENT": "e30=",
        "X-Other": "Bearer a.b.c",
    }
    path = f"/x?a=1&k={key}&j={jwt}&b=2&s={session}"
    async with serving(OK) as up:
        seen = await sent(service, by, up, path, headers)
    assert seen.target == "/x?a=1&b=2"
    assert (seen.headers["cookie"], seen.headers["x-other"]) == ("a=b", "Bearer a.b.c")
    assert not {"authorization", "x-api-key", "x-agent-signature", "x-payment"} & set(seen.headers)
    if by == "own wrapper":  # the upstream's secret is the operator's to choose
        assert seen.headers["x-key"] == "svc_op_an_account_of_ours_behind_a_wrapper"


@pytest.mark.parametrize("by", ["proxy", "playground", "own wrapper"])
async def test_the_callers_own_credentials_pass_unchanged(service: TestService, by: str) -> None:
    own = {"Authorization": "Basic YTpi", "X-Api-Key": "sk_1", "Cookie": "c=d ;e"}
    async with serving(OK) as up:
        seen = await sent(service, by, up, "/x?key=sk_1&a=%20;b", own)
    assert seen.target == "/x?key=sk_1&a=%20;b"
    assert {name.lower(): value for name, value in own.items()}.items() <= seen.headers.items()
