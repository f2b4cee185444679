"""Every operation, generated from the document, asked by one operator about another's things.

Whoever adds an operation finds it here by itself: one that names a thing of an account needs a row
in `THINGS`, and one that lists things is searched for the other's.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any

import pytest

from assay.accounts.model import Plan, Role
from assay.app.web import openapi_document
from tests.support.fakes.calls import call, claimed, payment
from tests.support.live_service import TestService, refused
from tests.support.raw_server import keeps_open, plain, serving

ALICE, BOB = "alice@example.com", "bob@example.com"
MARK = "alices-own"
"""Part of every name that is Alice's: Bob never reads it in an answer."""

BODIES: dict[str, dict[str, Any]] = {
    "PATCH /operator/me": {"name": "Bob"},
    "PUT /operator/keys/{keyId}/gate-policies": {"policies": {}},
    "POST /operator/endpoints": {
        "path": "/new",
        "pricePerCall": 0,
        "targetUrl": "http://127.0.0.1:8999",
    },
    "POST /operator/endpoints/import": {
        "document": '{"openapi": "3.1.0", "paths": {"/new": {"get": {}}}}',
        "pricePerCall": 0,
        "targetUrl": "http://127.0.0.1:8999",
    },
    "POST /operator/webhooks/register": {
        "event": "evaluation_complete",
        "url": "https://hooks.example.com/x",
    },
    "POST /operator/proxy/{agentId}": {"targetUrl": "http://127.0.0.1:8999/"},
    "POST /operator/playground": {"path": f"/{MARK}", "agentId": "7"},
    "PATCH /operator/admin/operators/{id}": {"plan": "pro"},
}

THINGS = {
    "keyId": ("key_id", "key_not_found"),
    "endpointId": ("endpoint_id", "endpoint_not_found"),
    "webhookId": ("webhook_id", "webhook_not_found"),
    "agentId": ("agent_id", "agent_not_found"),
    "sessionId": ("session_id", "session_not_found"),
}
"""Path parameters of what belongs to an account, and the refusal a stranger gets."""

VISITS = "/operator/agent/{agentId}/visits"
"""Everybody enrols an agent, and withdraws only what is their own."""

OF_EVERYBODY = {
    *("/operator/agent/{agentId}", "/operator/agent/{agentId}/snapshot"),
    *("/operator/agent/{agentId}/report", "/operator/agent/{agentId}/history"),
    *("/operator/gate/{agentId}", "/operator/proxy/{agentId}", VISITS),
}
"""Here an agent is the registry's, nobody's own."""

CREDENTIALS = ("dashboardToken", "operatorKey")

SCOPES = ["evaluate", "gate", "webhooks", "proxy", "wrappers"]

ENDS_THE_SESSION = {"POST /operator/logout", "DELETE /operator/sessions"}


@dataclass
class Street:
    """Alice, with one of everything; and Bob, with nothing."""

    service: TestService
    alice: dict[str, dict[str, str]] = field(default_factory=dict)
    bob: dict[str, dict[str, str]] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)

    async def ask(self, who: dict[str, str], method: str, path: str, **more: Any) -> Any:
        return await self.service.http.request(method, path, headers=who, **more)

    async def all_of(self, who: dict[str, dict[str, str]]) -> dict[str, Any]:
        """Everything an operator can read of its own."""
        token = who["dashboardToken"]
        found: dict[str, Any] = {}
        for path in READS:
            answer = await self.ask(token, "GET", path)
            found[path] = answer.text if answer.status_code == 200 else answer.status_code
        return found


READS = (
    *("/operator/me", "/operator/keys", "/operator/endpoints", "/operator/webhooks"),
    "/operator/sessions",
    *("/operator/webhooks/deliveries", "/operator/analytics/stats", "/operator/analytics/revenue"),
    *("/operator/analytics/top-endpoints", "/operator/analytics/agents"),
    *("/operator/analytics/agents/7", "/operator/analytics/logs"),
    *("/operator/analytics/logs/export", "/operator/analytics/logs/export?format=ndjson"),
    *("/operator/statement", "/operator/statement/export"),
    *("/operator/statement/transfers", "/operator/statement/transfers/export"),
)


async def open_account(street: Street, email: str) -> dict[str, dict[str, str]]:
    await street.service.operator(email)
    token = await street.service.token(email)
    body = {"scopes": SCOPES, "label": "every scope"}
    made = await street.ask(token, "POST", "/operator/keys/rotate", json=body)
    key = {"authorization": f"Bearer {made.json()['key']}"}
    return {"operatorKey": key, "dashboardToken": token}


@pytest.fixture
async def street(service: TestService) -> Street:
    return await populated(service)


async def populated(service: TestService) -> Street:
    """Two accounts of which one has an API key, a wrapper, a webhook, a call and a payment."""
    made = Street(service)
    made.alice = await open_account(made, ALICE)
    token = made.alice["dashboardToken"]
    me = (await made.ask(token, "GET", "/operator/me")).json()["operator"]
    body = {"path": f"/{MARK}", "pricePerCall": 0, "targetUrl": f"http://127.0.0.1:8999/{MARK}"}
    endpoint = (await made.ask(token, "POST", "/operator/endpoints", json=body)).json()
    label = {"label": MARK}
    key = (await made.ask(token, "POST", "/operator/keys/rotate", json=label)).json()
    async with serving(keeps_open(plain(b"ok"))) as receiver:
        hook = {"event": "evaluation_complete", "url": receiver.url(f"/{MARK}")}
        asked = await made.ask(token, "POST", "/operator/webhooks/register", json=hook)
        assert (await service.http.post("/operator/trigger-sandbox/7")).status_code == 200
    now, ledger = service.clock.now(), service.app.ledger
    entry = payment(me["id"], endpoint["id"], now, 1_000_000)
    from assay.payments.model import PaymentState  # noqa: PLC0415

    await ledger.move(await claimed(ledger, entry), PaymentState.SETTLED)  # type: ignore[arg-type]
    service.app.call_log.add(
        call(me["id"], endpoint["id"], now, agent_id="7", path=f"/{MARK}", payment_id=entry.id)
    )
    await service.app.flush()
    made.bob = await open_account(made, BOB)
    logs = (await made.ask(token, "GET", "/operator/analytics/logs")).json()["logs"]
    sent = await made.ask(token, "GET", "/operator/webhooks/deliveries")
    (session,) = (await made.ask(token, "GET", "/operator/sessions")).json()["items"]
    made.ids = {
        "session_id": session["id"],
        "key_id": key["id"],
        "endpoint_id": endpoint["id"],
        "webhook_id": asked.json()["id"],
        "agent_id": "7",
        "operator_id": me["id"],
        "call_id": logs[0]["id"],
        "delivery_id": sent.json()["deliveries"][0]["id"],
    }
    return made


def operations(service: TestService) -> list[tuple[str, str, list[str]]]:
    """Method, path and credentials of everything an operator may call."""
    found: list[tuple[str, str, list[str]]] = []
    for path, item in openapi_document(service.app)["paths"].items():
        for method, operation in item.items():
            ways = [set(way) for way in operation["security"]]
            fits = [name for name in CREDENTIALS if {name} in ways]
            if fits and not path.startswith("/wrap/"):
                found.append((method.upper(), path, fits))
    return found


def filled(street: Street, path: str) -> str:
    names = {name: street.ids[key] for name, (key, _) in THINGS.items()}
    names |= {"id": street.ids["operator_id"], "agentAddress": "0x" + "a" * 40}
    return re.sub(r"\{(\w+)\}", lambda found: names[found[1]], path)


async def test_no_operation_shows_or_changes_anything_of_another_operator(street: Street) -> None:
    await street.service.pro(BOB)
    enrolled = await street.ask(street.alice["operatorKey"], "POST", filled(street, VISITS))
    assert enrolled.status_code == 200
    before = await street.all_of(street.alice)
    assert MARK in json.dumps(before)
    asked = 0
    for method, path, ways in operations(street.service):
        for way in ways:
            body = BODIES.get(f"{method} {path}", {})
            more = {} if method in {"GET", "DELETE"} else {"json": body}
            answer = await street.ask(street.bob[way], method, filled(street, path), **more)
            said = f"{method} {path} by {way} -> {answer.status_code} {answer.text[:200]}"
            assert answer.status_code < 500 or path == "/operator/proxy/{agentId}", said
            assert MARK not in answer.text, said
            assert street.ids["operator_id"] not in answer.text, said
            own = {n for n in re.findall(r"\{(\w+)\}", path) if n in THINGS}
            if own and path not in OF_EVERYBODY:
                refused(answer, 404, THINGS[own.pop()][1])
            if path.startswith("/operator/admin/"):
                refused(answer, 403, "forbidden")
            if f"{method} {path}" in ENDS_THE_SESSION:
                street.bob["dashboardToken"] = await street.service.token(BOB)
            asked += 1
    assert asked > 30
    assert await street.all_of(street.alice) == before
    listed = await street.ask(street.alice["operatorKey"], "GET", "/operator/visits")
    assert [one["agentId"] for one in listed.json()["items"]] == ["7"]


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/operator/analytics/logs", {"before": "call_id"}),
        ("/operator/analytics/logs/export", {"before": "call_id"}),
        ("/operator/webhooks/deliveries", {"before": "delivery_id"}),
    ],
)
async def test_a_position_in_anothers_list_is_not_there(
    street: Street, path: str, query: dict[str, str]
) -> None:
    named = {name: street.ids[key] for name, key in query.items()}
    for who, status in ((street.alice, 200), (street.bob, 404)):
        answer = await street.ask(who["dashboardToken"], "GET", path, params=named)
        assert answer.status_code == status, answer.text


@pytest.mark.parametrize(
    ("path", "query", "list_name"),
    [
        ("/operator/analytics/logs", {"endpointId": "endpoint_id"}, "logs"),
        ("/operator/analytics/logs", {"agentId": "agent_id"}, "logs"),
        ("/operator/webhooks/deliveries", {"webhookId": "webhook_id"}, "deliveries"),
    ],
)
async def test_a_filter_by_anothers_id_finds_nothing(
    street: Street, path: str, query: dict[str, str], list_name: str
) -> None:
    named = {name: street.ids[key] for name, key in query.items()}
    answer = await street.ask(street.bob["dashboardToken"], "GET", path, params=named)
    assert answer.json()[list_name] == []


async def test_the_playground_does_not_reach_anothers_wrapper(street: Street) -> None:
    body = {"path": f"/{MARK}", "agentId": "7"}
    token = street.bob["dashboardToken"]
    refused(
        await street.ask(token, "POST", "/operator/playground", json=body),
        404,
        "wrapper_not_found",
    )


async def test_an_admin_of_one_plan_or_another_sees_accounts_but_no_secrets(
    street: Street,
) -> None:
    await street.service.app.operators.set_role_for_admin(BOB, Role.ADMIN)
    await street.service.app.operators.set_plan_for_admin(BOB, Plan.PRO)
    token = street.bob["dashboardToken"]
    path = f"/operator/admin/operators/{street.ids['operator_id']}"
    answer = await street.ask(token, "GET", path)
    assert answer.status_code == 200
    assert MARK in answer.text
    for word in ("password", "hash", "secret"):
        assert word not in answer.text.lower()
    for credential in CREDENTIALS:
        assert street.alice[credential]["authorization"].removeprefix("Bearer ") not in answer.text
