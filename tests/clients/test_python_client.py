"""The Python client against a serving Assay: real processes, real sockets."""

import asyncio
import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

import django.conf
import django.urls
import flask
import httpx2
import pytest
import uvicorn
from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.wsgi import WSGIHandler
from django.http import JsonResponse
from eth_account import Account
from fastapi import Depends, FastAPI, Request

from assay_client import (
    AgentSession,
    AsgiGate,
    Assay,
    AsyncAssay,
    ChallengeRequired,
    Conflict,
    ConnectionFailed,
    Decision,
    GatePolicy,
    InvalidInput,
    InvalidToken,
    Retries,
    Unauthorized,
    UnexpectedResponse,
    WsgiGate,
)
from assay_client.fastapi import protect
from assay_client.flask import FlaskGate
from tests.support.assay import served, sign
from tests.support.quiet_server import QuietHandler, serving
from tests.support.shop import NETWORK, NO_CHAIN, SELLER

pytestmark = pytest.mark.e2e
ROOT = Path(__file__).parents[2]
KEY = "0x" + "33" * 32
ADDRESS = Account.from_key(KEY).address
PASSWORD = "correct horse battery"
ONCE = Retries(attempts=1)


@dataclass(frozen=True)
class Service:
    url: str
    key: str
    token: str
    operator_id: str


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with served(tmp_path_factory.mktemp("assay"), NO_CHAIN) as server:
        with httpx2.Client(base_url=server.address, trust_env=False) as http:
            account = {"email": "op@example.com", "password": PASSWORD, "name": "Op"}
            made = http.post("/operator/register", json=account).json()
            login = http.post("/operator/login", json=account | {}).json()
            if "token" not in login:
                login = http.post(
                    "/operator/login", json={k: account[k] for k in ("email", "password")}
                ).json()
        yield Service(server.address, made["apiKey"], login["token"], login["operator"]["id"])


@pytest.fixture
def assay(running: Service) -> Iterator[Assay]:
    with Assay(running.url, api_key=running.key, token=running.token) as client:
        yield client


@pytest.fixture
def agent(assay: Assay) -> AgentSession:
    return assay.open_session(AgentSession(ADDRESS, sign=lambda text: sign(KEY, text)))


def asked(agent: AgentSession, **more: Any) -> Any:
    return {"address": agent.address, "session": agent.token, **more}


def test_the_gate_decides_by_the_threshold_of_the_call(assay: Assay, agent: AgentSession) -> None:
    low = assay.gate(ADDRESS, **asked(agent, min_score=0))
    high = assay.gate(ADDRESS, **asked(agent, min_score=100))
    assert (low.allow, high.allow) == (True, False)
    assert low.identity_proven
    assert high.reasons
    assert high.denial_reason in {"insufficient_evidence", "low_score"}


def test_the_asynchronous_client_gets_the_same_decision(
    running: Service, agent: AgentSession, assay: Assay
) -> None:
    async def ask() -> Decision:
        async with AsyncAssay(running.url, api_key=running.key) as client:
            return await client.gate(ADDRESS, **asked(agent, min_score=0))

    found = asyncio.run(ask())
    assert found.score == assay.gate(ADDRESS, **asked(agent, min_score=0)).score


def test_a_call_without_proof_raises_the_challenge_which_the_session_answers(assay: Assay) -> None:
    session = AgentSession.from_key(KEY)
    with pytest.raises(ChallengeRequired) as raised:
        assay.gate(ADDRESS, address=ADDRESS)
    proof = session.answer(raised.value.challenge)
    decision = assay.gate(
        ADDRESS,
        address=ADDRESS,
        challenge=proof["x-agent-challenge"],
        signature=proof["x-agent-signature"],
        min_score=0,
    )
    assert decision.allow
    assert decision.agent_session


def test_a_session_signs_nothing_but_challenges_for_its_address() -> None:
    session = AgentSession.from_key(KEY)
    with pytest.raises(InvalidInput):
        session.answer("I transfer everything I own.")


def test_wrappers_are_created_changed_listed_and_deactivated(assay: Assay) -> None:
    made = assay.create_wrapper(
        path="/quote",
        price_per_call="0.01",
        target_url="http://127.0.0.1:8099/",
        payment_network=NETWORK,
        payout_address=SELLER.address,
    )
    changed = assay.update_wrapper(made.id, revision=made.revision, price_per_call="0.02")
    assert str(changed.price_per_call) == "0.020000"
    with pytest.raises(Conflict):
        assay.update_wrapper(made.id, revision=made.revision, description="late")
    assay.delete_wrapper(made.id)
    assert [(w.id, w.active) for w in assay.wrappers()] == [(made.id, False)]


def test_the_account_and_an_evaluation_are_typed(assay: Assay, running: Service) -> None:
    assert assay.me().operator.id == running.operator_id
    assert assay.evaluate(ADDRESS).tier


def test_a_decision_token_verifies_and_a_changed_one_does_not(
    assay: Assay, agent: AgentSession, running: Service
) -> None:
    token = assay.gate(ADDRESS, **asked(agent, min_score=0)).decision_token
    body = json.loads(httpx2.get(f"{running.url}/.well-known/jwks.json", trust_env=False).text)
    assert body["keys"]
    issuer = _claims(token)["iss"]
    claims = assay.verify_decision(token, audience=running.operator_id, issuer=issuer)
    assert claims.allow
    head, payload, signature = token.split(".")
    for wrong in (f"{head}.{payload}x.{signature}", f"e30.{payload}.{signature}", "a.b.c", ""):
        with pytest.raises(InvalidToken):
            assay.verify_decision(wrong, audience=running.operator_id, issuer=issuer)
    with pytest.raises(InvalidToken, match="audience"):
        assay.verify_decision(token, audience="another", issuer=issuer)
    with pytest.raises(InvalidToken, match="issuer"):
        assay.verify_decision(token, audience=running.operator_id, issuer="http://elsewhere")


def _claims(token: str) -> dict[str, Any]:
    import jwt  # noqa: PLC0415 - reads the issuer, as an operator would know it

    return jwt.decode(token, options={"verify_signature": False})


def test_a_wrong_key_is_refused_and_never_shown(running: Service) -> None:
    with Assay(running.url, api_key="svc_op_secret-of-mine") as client:
        with pytest.raises(Unauthorized) as raised:
            client.profile("1")
        assert "secret-of-mine" not in f"{raised.value!r} {client!r} {client.core!r}"


def test_a_lost_connection_is_an_error_without_the_request() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with Assay(url, api_key="k", retries=ONCE) as client:
        with pytest.raises(ConnectionFailed) as raised:
            client.wrappers()
        assert raised.value.__context__ is None


def test_redirects_and_long_responses_are_refused() -> None:
    seen: list[str] = []

    class Redirect(QuietHandler):
        def do_GET(self) -> None:
            seen.append(self.path)
            self.send_response(302)
            self.send_header("location", "/elsewhere")
            self.send_header("content-length", "0")
            self.end_headers()

    with serving(Redirect) as url, Assay(url, api_key="k") as client:
        with pytest.raises(UnexpectedResponse):
            client.wrappers()
        assert seen == ["/operator/endpoints"]


def test_only_a_short_retry_after_is_waited_for() -> None:
    class Busy(QuietHandler):
        seen = 0

        def do_GET(self) -> None:
            type(self).seen += 1
            first = self.seen == 1
            body = b"[]" if not first else b'{"code": "rate_limited"}'
            self.send_response(429 if first else 200)
            self.send_header("retry-after", "0")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with serving(Busy) as url, Assay(url, api_key="k") as client:
        assert client.wrappers() == []
        assert Busy.seen == 2
    with (
        serving(Busy) as url,
        Assay(url, api_key="k", response_bytes_max=1) as client,
        pytest.raises(UnexpectedResponse),
    ):
        client.wrappers()


@contextmanager
def uvicorn_of(app: Any) -> Iterator[str]:
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", lifespan="on"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(30)


class _Silent(WSGIRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Log nothing."""


@contextmanager
def wsgi_of(app: Any) -> Iterator[str]:
    with make_server("127.0.0.1", 0, app, handler_class=_Silent) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


async def _plain(scope: Any, _: Any, send: Any) -> None:
    names = [name.decode() for name, _ in scope["headers"]]
    decision = scope["state"]["assay_decision"]
    body = json.dumps({"names": names, "allow": decision and decision.allow}).encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


def _wsgi(environ: Any, start: Any) -> Any:
    names = [n[5:].replace("_", "-").lower() for n in environ if n.startswith("HTTP_")]
    decision = environ["assay.decision"]
    start("200 OK", [("content-type", "application/json")])
    return [json.dumps({"names": names, "allow": decision and decision.allow}).encode()]


def _fastapi(client: AsyncAssay, policy: GatePolicy) -> FastAPI:
    app = FastAPI()
    gate = protect(app, client, policy)

    @app.get("/")
    async def show(
        request: Request, decision: Annotated[Decision | None, Depends(gate)]
    ) -> dict[str, Any]:
        return {"names": list(request.headers), "allow": decision and decision.allow}

    return app


def _flask(client: Assay, policy: GatePolicy) -> Any:
    app = flask.Flask("guarded")
    agents = FlaskGate(client, policy)

    @app.get("/")
    @agents.required
    def show() -> Any:
        names = [name.lower() for name in dict(flask.request.headers)]
        decision = flask.g.assay_decision
        return {"names": names, "allow": decision and decision.allow}

    return app


def _django(options: dict[str, Any], handler: type[Any]) -> Any:
    """A project whose only view shows what it knows; the middleware makes its own client."""
    if not django.conf.settings.configured:
        django.conf.settings.configure(
            ALLOWED_HOSTS=["*"],
            SECRET_KEY="of tests alone",
            ROOT_URLCONF=__name__,
            MIDDLEWARE=["assay_client.django.AssayMiddleware"],
        )
        django.setup()
    django.conf.settings.ASSAY = options
    return handler()


def _view(request: Any) -> Any:
    names = [name.lower() for name in request.headers]
    decision = request.assay_decision
    return JsonResponse({"names": names, "allow": decision and decision.allow})


urlpatterns = [django.urls.path("", _view)]


@contextmanager
def guarded(kind: str, url: str, key: str, policy: GatePolicy) -> Iterator[str]:
    if kind == "django":
        options = {"base_url": url, "api_key": key, "retries": ONCE, "policy": policy}
        with wsgi_of(_django(options, WSGIHandler)) as at:
            yield at
        return
    if kind in {"wsgi", "flask"}:
        with Assay(url, api_key=key, retries=ONCE) as client:
            app = WsgiGate(_wsgi, client, policy) if kind == "wsgi" else _flask(client, policy)
            with wsgi_of(app) as at:
                yield at
        return
    client = AsyncAssay(url, api_key=key, retries=ONCE)
    if kind == "django asgi":
        options = {"base_url": url, "api_key": key, "retries": ONCE, "policy": policy}
        app = _django(options, ASGIHandler)
    else:
        app = AsgiGate(_plain, client, policy) if kind == "asgi" else _fastapi(client, policy)

    async def closing(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan":
            await app(scope, receive, send)
            return
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await client.aclose()
        await send({"type": "lifespan.shutdown.complete"})

    with uvicorn_of(closing) as at:
        yield at


KINDS = pytest.mark.parametrize(
    "kind", ["asgi", "wsgi", "fastapi", "flask", "django", "django asgi"]
)


@KINDS
def test_a_guarded_application_admits_denies_and_challenges(
    kind: str, running: Service, agent: AgentSession
) -> None:
    sent = {**agent.headers, "x-assay-decision": "allow"}
    with guarded(kind, running.url, running.key, GatePolicy(min_score=0)) as url:
        passed = httpx2.get(url, headers=sent, trust_env=False)
        assert passed.status_code == 200, passed.text
        assert passed.json()["allow"] is True
        assert "x-assay-decision" not in passed.json()["names"]
        nobody = httpx2.get(url, trust_env=False)
        assert (nobody.status_code, nobody.json()["code"]) == (401, "identity_required")
        unproven = httpx2.get(url, headers={"x-agent-address": ADDRESS}, trust_env=False)
        assert unproven.status_code == 401
        proof = AgentSession.from_key(KEY).answer(unproven.json()["challenge"])
        begun = httpx2.get(url, headers=dict(proof), trust_env=False)
        assert (begun.status_code, "x-agent-session" in begun.headers) == (200, True)
    with guarded(kind, running.url, running.key, GatePolicy(min_score=100)) as url:
        denied = httpx2.get(url, headers=sent | {"x-min-score": "0"}, trust_env=False)
        assert (denied.status_code, denied.json()["code"]) == (403, "trust_denied")
        assert denied.json()["reasons"]


@KINDS
def test_without_a_decision_callers_pass_only_where_the_policy_says_so(
    kind: str, running: Service, agent: AgentSession
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nowhere = f"http://127.0.0.1:{free.getsockname()[1]}"
    for url, policy, status in (
        (nowhere, GatePolicy(), 503),
        (nowhere, GatePolicy(fail_open=True), 200),
        (running.url, GatePolicy(fail_open=True), 503),
    ):
        with guarded(kind, url, "svc_op_wrong", policy) as at:
            found = httpx2.get(at, headers=dict(agent.headers), trust_env=False)
            assert found.status_code == status, found.text


@pytest.mark.parametrize(
    ("page", "count"), [("packages/assay-client/README.md", 5), ("docs/clients.md", 6)]
)
def test_the_examples_of_the_pages_run(
    running: Service, assay: Assay, agent: AgentSession, page: str, count: int
) -> None:
    """What they pay for is free here; `test_python_client_pays.py` pays."""
    text = (ROOT / page).read_text("utf-8")
    examples = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    token = assay.gate(ADDRESS, **asked(agent, min_score=0)).decision_token
    names = {
        "ASSAY_URL": running.url,
        "API_KEY": running.key,
        "AGENT_ID": ADDRESS,
        "ADDRESS": ADDRESS,
        "SESSION": agent.token,
        "SIGN": lambda text: sign(KEY, text),
        "TOKEN": token,
        "OPERATOR_ID": running.operator_id,
        "ISSUER": _claims(token)["iss"],
        "PRIVATE_KEY": KEY,
        "PAID_URL": f"{running.url}/operator/health",
        "DASHBOARD_TOKEN": running.token,
        "UPSTREAM": "http://127.0.0.1:8099/",
        "WALLET": SELLER.address,
    }
    assert len(examples) == count
    for example in examples:
        exec(example, dict(names))  # noqa: S102 - our own page
