"""One line a request, with nothing in it that a caller sent as a secret."""

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from io import StringIO
from typing import Any

import httpx2
import pytest

from assay.app.log import RequestLog, open_log
from assay.app.web import build
from assay.common.errors import Unavailable
from tests.support.live_service import OWNER_KEY, PASSWORD, TestService, address, refused


@dataclass
class RecordedRequest:
    """A service whose log can be read."""

    http: httpx2.AsyncClient
    lines: Callable[[], list[dict[str, Any]]]


@pytest.fixture
async def heard(service: TestService) -> AsyncIterator[RecordedRequest]:
    out = StringIO()
    log = open_log("json", "info", out)
    requests = RequestLog(log, "json", "info", out)

    def lines() -> list[dict[str, Any]]:
        requests.flush()
        return [json.loads(line) for line in out.getvalue().splitlines()]

    sender = httpx2.ASGITransport(build(replace(service.app, log=log, request_log=requests)))
    async with httpx2.AsyncClient(transport=sender, base_url="http://assay") as http:
        yield RecordedRequest(http, lines)
    requests.flush()


async def test_a_line_names_the_request_and_nothing_of_its_contents(heard: RecordedRequest) -> None:
    headers = {"x-request-id": "one", "authorization": "Bearer hush-1", "cookie": "hush-2"}
    body = {"email": "hush-3@example.com", "password": "hush-4 hush-4"}
    await heard.http.post("/operator/login?token=hush-5", headers=headers, json=body)
    (line,) = heard.lines()
    assert line == {
        "event": "request",
        "timestamp": line["timestamp"],
        "method": "POST",
        "route": "/operator/login",
        "status": 401,
        "ms": line["ms"],
        "request_id": "one",
    }
    assert "hush" not in json.dumps(line)


async def test_a_route_is_named_by_its_template(heard: RecordedRequest) -> None:
    """A path may hold anything, and one name a route is what can be counted."""
    for path in ("/operator/key/0x" + "a" * 40, "/operator/gate/hush", "/hush", "/docs"):
        await heard.http.get(path)
    assert [line["route"] for line in heard.lines()] == [
        "/operator/key/{agentAddress}",
        "/operator/gate/{agentId}",
        "(none)",
        "/docs",
    ]


async def test_the_operator_is_named_once_known(heard: RecordedRequest) -> None:
    body = {"email": "a@b.cc", "password": PASSWORD, "name": "A"}
    made = (await heard.http.post("/operator/register", json=body)).json()
    token = (
        await heard.http.post("/operator/login", json={k: body[k] for k in ("email", "password")})
    ).json()["token"]
    for credential in (made["apiKey"], token):
        path = "/operator/me" if credential == token else "/operator/key/0x" + "a" * 40
        await heard.http.get(path, headers={"authorization": f"Bearer {credential}"})
    assert [line.get("operator") for line in heard.lines()[2:]] == [made["operator"]["id"]] * 2


async def test_a_key_of_another_scope_bears_nothing_of_what_its_agent_may_do(
    service: TestService, heard: RecordedRequest
) -> None:
    """Nor is it named: quotas are those of the operator that the log names, else the address's."""
    await service.operator()
    body = {"scopes": ["gate"]}
    made = await service.http.post(
        "/operator/keys/rotate", headers=await service.token(), json=body
    )
    key = {"authorization": f"Bearer {made.json()['key']}"}
    path = f"/operator/key/{address(OWNER_KEY)}/attestation"
    answer = await heard.http.get(path, headers=key | await service.session())
    assert answer.status_code == 200
    assert "operator" not in heard.lines()[-1]


@pytest.mark.parametrize("path", ["/operator/agent/7", "/operator/gate/7"])
async def test_503_the_inner_detail_is_for_the_log_alone(
    service: TestService, heard: RecordedRequest, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    async def down(*_: object) -> object:
        raise Unavailable("The database cannot be used now.", detail="hush", retry_after_s=5)

    monkeypatch.setattr(type(service.app.api_keys), "authenticate", down)
    method = "POST" if "gate" in path else "GET"
    headers = {"authorization": "Bearer svc_op_x", "x-request-id": "one"}
    answer = await heard.http.request(method, path, headers=headers)
    refused(answer, 503, "temporarily_unavailable")
    assert (answer.headers["retry-after"], "hush" in answer.text) == ("5", False)
    noted = [line for line in heard.lines() if line["event"] == "refused"]
    assert [(line["detail"], line["request_id"]) for line in noted] == [("hush", "one")]


async def test_500_is_logged_once_with_its_traceback(
    service: TestService, heard: RecordedRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> object:
        raise ZeroDivisionError("the inside")

    monkeypatch.setattr(type(service.app.challenges), "issue", broken)
    answer = await heard.http.post(f"/operator/key/0x{'a' * 40}/challenge")
    assert answer.headers["cache-control"] == "no-store"
    body = refused(answer, 500, "internal_error")
    (fault,) = [line for line in heard.lines() if line["event"] == "unhandled"]
    assert fault["request_id"] == body["requestId"]
    assert "ZeroDivisionError: the inside" in fault["exception"]
