"""Each recipe lets in exactly whom the gate allows, run by the real proxies."""

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import grpc
import httpx2
import pytest
from eth_account import Account
from typing_extensions import override

from assay.cli.ext_authz import messages
from assay_demo.world import World
from tests.support.assay import Served, operator, served, session, sign
from tests.support.eventually import eventually
from tests.support.raw_client import RawClient
from tests.support.recipes import PROXIES, Gated, proxy
from tests.support.reverse_proxies import free_port

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

DECISION = (
    "x-assay-agent",
    "x-assay-tier",
    "x-assay-score",
    "x-assay-route",
    "x-assay-identity-proven",
    "x-assay-decision-token",
)
SPOOFED = {
    "X-Assay-Tier": "AAA",
    "X-Assay-Agent": "eip155:1/1",
    "X-Assay-Decision-Token": "forged",
    "X_Assay_Tier": "AAA",
    "X-Assay_Tier": "AAA",
    "X_Assay-Tier": "AAA",
    "X-Assay-Decision_Token": "forged",
    "X-Assay-Error": "forged",
    "X-Assay-Request-Id": "forged",
}


@dataclass
class Api:
    """An API that remembers what reached it."""

    port: int = 0
    seen: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    bodies: list[bytes] = field(default_factory=list[bytes])


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    kept = Api()

    class Answers(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            kept.bodies.append(self.rfile.read(int(self.headers.get("content-length", "0"))))
            kept.seen.append({name.lower(): value for name, value in self.headers.items()})
            status = int(self.path.partition("?status=")[2] or "200")
            body = b"" if self.command == "HEAD" else b"the API"
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_HEAD = do_PUT = do_DELETE = answer  # noqa: N815

        @override
        def log_message(self, format: str, *args: object) -> None:
            del format, args

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        kept.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield kept
        server.shutdown()
        thread.join()


@dataclass
class Office:
    """A running service with the policy of the recipes, and the demo's agents."""

    service: Served
    http: httpx2.Client
    key: str
    lenient_key: str
    world: World
    grpc: int

    @property
    def gated(self) -> Gated:
        return Gated(int(self.service.address.rpartition(":")[2]), self.key, self.grpc)

    def agent(self, number: int) -> dict[str, str]:
        """The headers of a demo agent with its session."""
        one = self.world.agents[number]
        return {"x-agent-id": one.agent_id, **session(self.http, one.owner_key)}


def set_policies(http: httpx2.Client, email: str, policies: dict[str, Any]) -> None:
    account = {"email": email, "password": "correct horse battery"}
    token = {
        "authorization": f"Bearer {http.post('/operator/login', json=account).json()['token']}"
    }
    (key,) = http.get("/operator/keys", headers=token).json()
    http.put(
        f"/operator/keys/{key['id']}/gate-policies", headers=token, json={"policies": policies}
    ).raise_for_status()


@pytest.fixture(scope="module")
def office(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    folder = tmp_path_factory.mktemp("office")
    grpc = free_port()
    bind = {"ASSAY_EXT_AUTHZ_BIND": str(grpc)}
    with (
        served(folder, {"local": dict(world.network_override)}, **bind) as service,
        httpx2.Client(base_url=service.address, timeout=60) as http,
    ):
        key, lenient = (
            operator(http, f"{name}@example.com")["authorization"].removeprefix("Bearer ")
            for name in ("op", "lenient")
        )
        set_policies(http, "op@example.com", {"default": {"minScore": 60}})
        set_policies(http, "lenient@example.com", {"default": {"minScore": 0}})
        yield Office(service, http, key, lenient, world, grpc)


@pytest.fixture(scope="module", params=list(PROXIES))
def front(
    request: pytest.FixtureRequest,
    office: Office,
    api: Api,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[httpx2.Client]:
    log = tmp_path_factory.mktemp("proxy") / "log"
    with (
        proxy(request.param, api.port, office.gated, log) as address,
        httpx2.Client(base_url=address, timeout=60) as http,
    ):
        yield http


def test_a_good_agent_is_let_in_and_the_api_is_shown_its_grade(
    front: httpx2.Client, office: Office, api: Api
) -> None:
    agent = office.agent(0)
    answer = front.post("/a/path?with=query", headers={**agent, **SPOOFED}, content=b"a body")
    assert (answer.status_code, answer.text) == (200, "the API"), answer.text
    seen = api.seen[-1]
    assert api.bodies[-1] == b"a body"
    assert seen["x-assay-agent"].endswith(f"/{agent['x-agent-id']}")
    assert seen["x-assay-tier"] != "AAA"
    assert float(seen["x-assay-score"]) >= 60
    assert seen["x-assay-identity-proven"] == "true"
    assert seen["x-assay-decision-token"].count(".") == 2
    assert {name for name in seen if "assay" in name} == set(DECISION)
    assert not {"x-agent-session", "x-agent-signature", "x-assay-error"} & seen.keys()
    assert office.key not in str(seen)
    assert front.head("/", headers=agent).status_code == 200
    assert front.get("/?status=500", headers=agent).text == "the API"
    assert front.get("/?status=403", headers=agent).text == "the API"


def test_a_caller_does_not_erase_what_the_api_is_shown(
    front: httpx2.Client, office: Office, api: Api
) -> None:
    """A proxy removes the headers that `Connection` names."""
    names = ", ".join(("close", *DECISION, "authorization"))
    answer = front.get("/", headers={**office.agent(0), "connection": names})
    assert answer.status_code in {200, 401}, answer.text
    if answer.status_code == 200:
        assert {name for name in api.seen[-1] if "assay" in name} == set(DECISION)


@pytest.mark.parametrize("number", [2, 3])
def test_a_denied_agent_never_reaches_the_api(
    front: httpx2.Client, office: Office, api: Api, number: int
) -> None:
    """The hostile one and the silent one; however they ask for it."""
    agent, calls = office.agent(number), len(api.seen)
    tries: list[tuple[str, str, dict[str, str]]] = [
        ("GET", "/", {}),
        ("POST", "/", SPOOFED),
        ("GET", "/?agentId=0&minScore=0", {"x-min-score": "0"}),
        ("DELETE", "/gate/check/lenient/..;/x", {}),
        ("HEAD", "/", {}),
        ("GET", "/../../lenient", {}),
        ("GET", "/", {"authorization": f"Bearer {office.lenient_key}"}),
    ]
    for method, path, more in tries:
        answer = front.request(method, path, headers={**agent, **more})
        assert 401 <= answer.status_code <= 404, (method, path, answer.status_code, answer.text)
    denied = front.get("/", headers=agent)
    assert denied.status_code == 403
    body = denied.json()
    assert body["code"] == "trust_denied"
    assert body["reasons"]
    assert body["minScore"] == 60
    assert len(api.seen) == calls


def test_a_raised_threshold_denies_a_good_agent(
    front: httpx2.Client, office: Office, api: Api
) -> None:
    agent, calls = office.agent(0), len(api.seen)
    answer = front.get("/", headers={**agent, "x-min-score": "100"})
    assert (answer.status_code, answer.json()["minScore"]) == (403, 100)
    assert len(api.seen) == calls


def test_callers_without_identity_or_with_another_agents_id_are_refused(
    front: httpx2.Client, office: Office, api: Api
) -> None:
    calls, good = len(api.seen), office.agent(0)
    refusals = {
        "identity_required": {},
        "agent_not_found": {**good, "x-agent-id": "999"},
        "invalid_request": {**good, "x-agent-id": "no id"},
        "identity_mismatch": {**office.agent(2), "x-agent-id": good["x-agent-id"]},
        "challenge_required": {**good, "x-agent-session": "forged"},
    }
    for code, headers in refusals.items():
        answer = front.get("/", headers=headers)
        assert answer.status_code in {401, 403}, (code, answer.text)
        assert answer.json()["code"] == code
        assert front.post("/", headers=headers, content=b"x" * 100_000).status_code < 404
    assert len(api.seen) == calls


def test_a_stock_agent_signs_the_challenge_through_the_proxy(
    front: httpx2.Client, office: Office, api: Api, request: pytest.FixtureRequest
) -> None:
    one = office.world.agents[0]
    named = {"x-agent-id": one.agent_id, "x-agent-address": Account.from_key(one.owner_key).address}
    asked = front.get("/", headers=named)
    assert (asked.status_code, asked.json()["code"]) == (401, "challenge_required")
    challenge = asked.headers["x-agent-challenge"]
    assert challenge == asked.json()["challenge"] or "nginx" in request.node.name
    proof = {"x-agent-challenge": challenge, "x-agent-signature": sign(one.owner_key, challenge)}
    answer = front.post("/", headers={**named, **proof}, content=b"x")
    assert (answer.status_code, answer.text) == (200, "the API"), answer.text
    assert "x-agent-signature" not in api.seen[-1]
    if "traefik" in request.node.name:  # it passes on no header of an allowing check
        assert "x-agent-session" not in answer.headers
        return
    token = {"x-agent-session": answer.headers["x-agent-session"]}
    assert front.get("/", headers={**named, **token}).status_code == 200


def test_a_denied_signature_gets_its_session_with_the_refusal(
    front: httpx2.Client, office: Office
) -> None:
    """Its challenge is spent: without the session it would have to sign for each call."""
    one = office.world.agents[2]
    named = {"x-agent-id": one.agent_id, "x-agent-address": Account.from_key(one.owner_key).address}
    challenge = office.http.post(f"/operator/key/{named['x-agent-address']}/challenge").json()[
        "challenge"
    ]
    proof = {"x-agent-challenge": challenge, "x-agent-signature": sign(one.owner_key, challenge)}
    answer = front.get("/", headers={**named, **proof})
    assert (answer.status_code, answer.json()["code"]) == (403, "trust_denied")
    assert answer.headers["x-agent-session"]


def test_two_keys_in_one_request_let_nobody_in(
    front: httpx2.Client, office: Office, api: Api
) -> None:
    """A caller's own account has a policy that lets everybody in."""
    calls = len(api.seen)
    lines = "".join(
        f"{name}: {value}\r\n"
        for name, value in [
            *office.agent(2).items(),
            ("Authorization", f"Bearer {office.lenient_key}"),
            ("authorization", f"Bearer {office.lenient_key}"),
        ]
    )
    with RawClient(str(front.base_url).rstrip("/"), 60.0) as client:
        client.send(f"GET / HTTP/1.1\r\nHost: api.example.com\r\n{lines}\r\n".encode())
        assert 400 <= client.answer().status <= 403
    assert len(api.seen) == calls


def test_without_assay_nobody_is_let_in(
    office: Office, api: Api, tmp_path: Path, subtests: Any
) -> None:
    """Fail closed: 503 that says so, and when to come again."""
    agent, calls = office.agent(0), len(api.seen)
    for name in PROXIES:
        with (
            subtests.test(name),
            proxy(name, api.port, Gated(9, office.key, 9), tmp_path / "log") as address,
        ):
            answer = httpx2.get(address, headers=agent, timeout=60)
            assert 500 <= answer.status_code <= 503, answer.text
            if name != "traefik":
                assert answer.status_code == 503
            assert answer.text != "the API"
    assert len(api.seen) == calls


def test_with_a_wrong_key_nobody_is_let_in(
    office: Office, api: Api, tmp_path: Path, subtests: Any
) -> None:
    agent, calls = office.agent(0), len(api.seen)
    wrong = Gated(office.gated.gate, "svc_op_" + "x" * 43, office.grpc)
    for name in PROXIES:
        with (
            subtests.test(name),
            proxy(name, api.port, wrong, tmp_path / "log") as address,
        ):
            answer = httpx2.get(address, headers=agent, timeout=60)
            assert answer.status_code in {401, 403, 503}, answer.text
    assert len(api.seen) == calls


def test_the_cached_variant_asks_once_for_a_session_and_again_when_it_is_over(
    office: Office, api: Api, tmp_path: Path
) -> None:
    agent = office.agent(0)
    with proxy("nginx cached", api.port, office.gated, tmp_path / "log") as address:
        for _ in range(20):
            assert httpx2.get(address, headers=agent).status_code == 200
        stranger = {**agent, "x-agent-session": "forged"}
        assert httpx2.get(address, headers=stranger).status_code == 401
        other = {**agent, "x-agent-id": office.world.agents[2].agent_id}
        assert httpx2.get(address, headers=other).status_code in {401, 403}
        office.http.delete(
            f"/operator/key/{agent['x-agent-address']}/session", headers=agent
        ).raise_for_status()
        eventually(lambda: httpx2.get(address, headers=agent).status_code == 401)


def test_the_cached_variant_gives_nobody_the_session_of_a_signature(
    office: Office, api: Api, tmp_path: Path
) -> None:
    """A caller that signs may still send a session that is no longer valid."""
    one = office.world.agents[0]
    named = {"x-agent-id": one.agent_id, "x-agent-address": Account.from_key(one.owner_key).address}
    stale = {**named, "x-agent-session": "stale"}
    challenge = office.http.post(f"/operator/key/{named['x-agent-address']}/challenge").json()
    text = challenge["challenge"]
    proof = {"x-agent-challenge": text, "x-agent-signature": sign(one.owner_key, text)}
    with proxy("nginx cached", api.port, office.gated, tmp_path / "log") as address:
        signed = httpx2.get(address, headers={**stale, **proof})
        assert (signed.status_code, "x-agent-session" in signed.headers) == (200, True)
        thief = httpx2.get(address, headers=stale)
        assert (thief.status_code, "x-agent-session" in thief.headers) == (401, False)


def test_the_table_of_proxies_and_agents(
    front: httpx2.Client, office: Office, request: pytest.FixtureRequest
) -> None:
    """Printed with `pytest -s`."""
    found = {
        office.world.agents[number].name: front.get("/", headers=office.agent(number)).status_code
        for number in range(4)
    }
    found["no identity"] = front.get("/").status_code
    print(f"{request.node.callspec.id:14}", json.dumps(found))  # noqa: T201
    assert found["no identity"] == 401
    assert set(found.values()) <= {200, 401, 403}


def test_a_grpc_check_without_key_agent_or_sense_lets_nobody_in(office: Office) -> None:
    """Callers of the port itself, who are not Envoy."""
    made = messages()
    good = made["CheckRequest"]()
    for name, value in office.agent(0).items():
        good.attributes.request.http.headers.add(key=name, value=value)
    elsewhere = made["CheckRequest"]()
    elsewhere.CopyFrom(good)
    elsewhere.attributes.context_extensions.add(key="policy", value="default/../lenient")
    key = (("authorization", f"Bearer {office.key}"),)
    tries = [
        (good, (), 401),
        (good, (("authorization", "Bearer nonsense"),), 401),
        (good, (*key, *key), 401),
        (made["CheckRequest"](), key, 401),
        (elsewhere, key, 404),
    ]
    with grpc.insecure_channel(f"127.0.0.1:{office.grpc}") as channel:
        check = channel.unary_unary(
            "/envoy.service.auth.v3.Authorization/Check",
            request_serializer=lambda raw: raw,
            response_deserializer=made["CheckResponse"].FromString,
        )
        for asked, metadata, status in tries:
            answer = check(asked.SerializeToString(), metadata=metadata, timeout=60)
            assert answer.status.code == 7
            assert answer.denied_response.status.code == status
            assert not answer.HasField("ok_response")
        allowed = check(good.SerializeToString(), metadata=key, timeout=60)
        assert (allowed.status.code, allowed.HasField("denied_response")) == (0, False)
        for garbage in (b"\xff" * 100, b"x" * 300 * 1024):
            with pytest.raises(grpc.RpcError):
                check(garbage, metadata=key, timeout=60)
        assert check(good.SerializeToString(), metadata=key, timeout=60).status.code == 0
