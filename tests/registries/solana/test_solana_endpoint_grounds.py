"""The zoo of endpoints: each kind answers as its name says, golden cases answer as recorded."""

import json
from typing import Any

import httpx2
import pytest

from tests.support.solana import golden, loopback
from tests.support.solana.endpoints import KINDS, SESSION, zoo
from tests.support.solana.liveness_cases import cases, replayed
from tests.support.solana.loopback import Answer

SILENT = {"hang", "half-open"}
STATUSES = {
    "web": 200, "web-no-head": 405, "web-no-content": 204, "web-401": 401, "web-402": 402,
    "web-403": 403, "web-404": 404, "web-429": 429, "web-500": 500, "web-moved": 302,
    "web-not-modified": 304, "mcp-session": 405, "mcp-empty": 200, "mcp-broken": 500,
    "mcp-stateless": 405, "mcp-streamed": 405,
}  # fmt: skip


def test_every_endpoint_is_of_its_kind() -> None:
    with zoo() as made, httpx2.Client(timeout=1) as http:
        for one in made.every():
            if one.kind in {"hang-up", "garbage"}:
                with pytest.raises(httpx2.RemoteProtocolError):
                    http.head(one.url)
            elif one.kind in SILENT:
                with pytest.raises(httpx2.ReadTimeout):
                    http.head(one.url, timeout=0.2)
            else:
                assert http.head(one.url).status_code == STATUSES.get(one.kind, 404), one.kind
            assert len(made.requests(one.kind)) == 1
        assert http.get(made.endpoint("web-no-head").url).status_code == 200


def test_mcp_servers_list_their_tools_or_do_not() -> None:
    with zoo() as made, httpx2.Client(timeout=1) as http:

        def listed(kind: str, **headers: str) -> httpx2.Response:
            body = {"jsonrpc": "2.0", "id": 3, "method": "tools/list"}
            return http.post(made.endpoint(kind).url, json=body, headers=headers)

        assert listed("mcp-stateless").json()["result"]["tools"]
        assert listed("mcp-empty").json()["result"]["tools"] == []
        assert listed("mcp-streamed").headers["content-type"] == "text/event-stream"
        assert json.loads(listed("mcp-streamed").text.split("data: ")[1])["id"] == 3
        assert listed("mcp-session").status_code == 400
        body: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}
        begun = http.post(made.endpoint("mcp-session").url, json=body)
        assert begun.headers["mcp-session-id"] == SESSION
        assert listed("mcp-session", **{"mcp-session-id": SESSION}).json()["result"]["tools"]


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        ("a2a-agentcard", "agentcard.json"),
        ("a2a-agent-json", ".well-known/agent.json"),
        ("a2a-agent-card", ".well-known/agent-card.json"),
    ],
)
def test_agent_cards_lie_in_one_place_each(kind: str, place: str) -> None:
    places = ["agentcard.json", ".well-known/agent.json", ".well-known/agent-card.json"]
    with zoo() as made, httpx2.Client(timeout=1) as http:
        url = made.endpoint(kind).url
        found = {one: http.get(f"{url}/{one}").status_code for one in places}
        assert found == {one: 200 if one == place else 404 for one in places}


def test_a_registration_names_its_services_and_may_be_anything_else() -> None:
    with zoo() as made, httpx2.Client(timeout=1) as http:
        told = http.get(made.registration("web", "mcp-session", name="Named")).json()
        assert told["name"] == "Named"
        assert [one["name"] for one in told["services"]] == ["web", "MCP"]
        assert http.get(made.document(Answer(200, b"<html>"))).text == "<html>"
        with pytest.raises(httpx2.ReadTimeout):
            http.get(made.document(loopback.hang()), timeout=0.2)


def test_all_golden_cases_but_the_undiallable_are_replayed() -> None:
    assert len(cases()) == len(golden.read("liveness")["cases"]) - 3
    assert {one for one, (_, alive) in KINDS.items() if alive} >= {"web-401", "mcp-stateless"}


@pytest.mark.parametrize("name", cases())
def test_golden_hosts_answer_as_recorded(name: str) -> None:
    with replayed(name) as case, httpx2.Client(timeout=0.3) as http:
        for probe in case.probes:
            told = probe["response"]
            if isinstance(told, str):
                with pytest.raises((httpx2.RemoteProtocolError, httpx2.ReadTimeout)):
                    _probe(http, case.hosts, probe)
                continue
            answer = _probe(http, case.hosts, probe)
            assert answer.status_code == told["status"]
            assert answer.text == told["body"]
        assert len(case.asked()) == len(case.probes)
        if case.report is not None:
            assert case.agent_uri is not None
            told = http.get(case.agent_uri).json()
            assert ".example" not in json.dumps([case.report, told])


def _probe(
    http: httpx2.Client, hosts: dict[str, loopback.Service], probe: dict[str, Any]
) -> httpx2.Response:
    _, _, rest = probe["url"].partition("://")
    host, slash, path = rest.partition("/")
    body = {"jsonrpc": "2.0", "id": 1, "method": probe.get("jsonRpcMethod")}
    url = hosts[host].url + slash + path
    return http.request(probe["method"], url, json=body if probe["method"] == "POST" else None)
