"""A domain object is never serialised as it is: a field reaches the wire only by being named.

Every dataclass of the service has a secret here that no schema names, and no response shows it.
"""

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from fastapi.encoders import jsonable_encoder
from pydantic import TypeAdapter

from assay.accounts.model import Role
from assay.app.web import openapi_document
from assay.server.schemas import ResponseModel
from tests.app.test_tenancy_cases_http import Street, populated
from tests.support.canary import domain_dataclasses, give_canary, shown, spare_the_stores
from tests.support.live_service import OWNER_KEY, PASSWORD, TestService, address, start_test_service

SOURCES = Path(__file__).parents[2] / "src/assay"

BODIES: dict[str, dict[str, Any]] = {
    "PATCH /operator/me": {"name": "Alice"},
    "PATCH /operator/admin/operators/{id}": {"plan": "pro"},
    "PUT /operator/keys/{keyId}/gate-policies": {"policies": {"default": {"minScore": 0}}},
    "POST /operator/totp": {"password": PASSWORD},
    "POST /operator/endpoints": {
        "path": "/paid",
        "pricePerCall": 0.01,
        "targetUrl": "http://127.0.0.1:8999",
        "paymentNetwork": "eip155:84532",
        "payoutAddress": "0x" + "ab" * 20,
    },
    "POST /operator/endpoints/import": {
        "document": '{"openapi": "3.1.0", "paths": {"/new": {"get": {}}}}',
        "pricePerCall": 0,
        "targetUrl": "http://127.0.0.1:8999",
    },
    "POST /operator/playground": {"path": "/alices-own", "agentId": "7"},
}

_MAIL, _CODE, _PROVER = "needs a mailed link", "needs a second factor's code", "needs World ID"

REFUSED = {
    "GET /gate/check": "answers like the gate, or denies as here",
    "GET /gate/check/{policy}": "answers like the gate, or denies as here",
    "GET /gate/refusal/{policy}": "never lets anybody in",
    "GET /operator/agent/{agentId}/liveness": "is of Solana agents",
    "POST /operator/personhood/verify/{agentId}": _PROVER,
    "POST /operator/password": "would end what the others need",
    "POST /operator/password/reset-request": _MAIL,
    "POST /operator/password/reset": _MAIL,
    "POST /operator/email/verify-request": _MAIL,
    "POST /operator/email/verify": _MAIL,
    "POST /operator/totp/confirm": _CODE,
    "POST /operator/totp/recovery-codes": _CODE,
    "POST /operator/totp/disable": _CODE,
    "POST /operator/proxy/{agentId}": "answers as an upstream does, which is not there",
    "POST /operator/playground": "answers as an upstream does, which is not there",
    "POST /operator/agent/{agentId}/credentials": "needs a service under proven control",
    "DELETE /operator/agent/{agentId}/credentials/{credentialId}": "names one that is not there",
    "DELETE /operator/sessions/{sessionId}": "names one that has ended",
    "DELETE /operator/me": "would end what the others need",
}
"""Operations of which only a refusal is searched, and why."""

PAYMENT_REQUIRED = 402

ENDS_THE_SESSION = {"/operator/logout", "/operator/sessions", "/operator/sessions/{sessionId}"}

Answered = set[str]
"""Operations with a response of 2xx that was searched."""


async def test_no_response_shows_a_field_that_no_schema_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered: Answered = set()
    documents = {
        "security_contact": "mailto:sec@example.com",
        "service_agent_ids": f"eip155:1:0x{'ab' * 20}/7",
    }
    async with start_test_service(tmp_path / "data", **documents) as service:
        give_canary(monkeypatch, *domain_dataclasses())
        spare_the_stores(monkeypatch)
        service.http.event_hooks["response"].append(_searched(_templates(service), answered))
        asked = await _ask_for_everything(service)
    ready = {"GET /readyz"}  # 503 where the machine is too busy
    assert asked - answered - ready == REFUSED.keys()


@dataclasses.dataclass(frozen=True, slots=True)
class Slotted:
    """A domain object as most are."""

    name: str = "shown"


@dataclasses.dataclass(frozen=True)
class Unslotted:
    """A domain object with a `__dict__`."""

    name: str = "shown"


class _Named(ResponseModel):
    name: str


class _Loose(ResponseModel):
    items: list[Any]


LEAKS: dict[str, Callable[[], object]] = {
    "asdict": lambda: dataclasses.asdict(Slotted()),
    "asdict, nested": lambda: _Loose(items=[dataclasses.asdict(Slotted())]),
    "astuple": lambda: list(dataclasses.astuple(Slotted())),
    "vars": lambda: vars(Unslotted()),
    "__dict__": lambda: Unslotted().__dict__,
    "fields": lambda: {f.name: getattr(Slotted(), f.name) for f in dataclasses.fields(Slotted)},
    "dir": lambda: {n: getattr(Slotted(), n) for n in dir(Slotted()) if n[0] != "_"},
    "jsonable_encoder": lambda: jsonable_encoder(Unslotted()),
    "the framework": Slotted,
    "the framework, nested": lambda: {"items": [Slotted(), Unslotted()]},
    "TypeAdapter": lambda: TypeAdapter(Slotted).dump_python(Slotted()),
    "any member": lambda: _Loose(items=[Unslotted()]),
}


@pytest.mark.parametrize("leak", LEAKS.values(), ids=LEAKS.keys())
async def test_a_response_of_a_whole_object_is_seen(
    monkeypatch: pytest.MonkeyPatch, leak: Callable[[], object]
) -> None:
    give_canary(monkeypatch, Slotted, Unslotted)
    assert shown(await _response(leak))


async def test_a_response_of_named_fields_is_let_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    give_canary(monkeypatch, Slotted, Unslotted)
    assert not shown(await _response(lambda: _Named(name=Unslotted().name)))


async def test_objects_with_the_secret_are_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    give_canary(monkeypatch, Slotted, Unslotted)
    for kind in (Slotted, Unslotted):
        assert dataclasses.replace(kind("a"), name="b") == kind("b")
        assert hash(kind("a")) == hash(kind("a"))
        assert not shown(repr(kind("a")))


async def test_dataclasses_of_every_feature_have_the_secret() -> None:
    found = {one.__module__.split(".")[1] for one in domain_dataclasses()}
    assert found >= {path.parent.name for path in SOURCES.glob("*/model.py")}


async def _response(leak: Callable[[], object]) -> str:
    served = FastAPI()

    @served.get("/")
    async def leaky() -> Any:
        return leak()

    sender = httpx2.ASGITransport(served)
    async with httpx2.AsyncClient(transport=sender, base_url="http://leaky") as http:
        answer = await http.get("/")
    assert answer.status_code == 200
    return answer.text


def _templates(service: TestService) -> dict[str, re.Pattern[str]]:
    paths = sorted(openapi_document(service.app)["paths"], key=lambda path: path.count("{"))
    return {path: re.compile(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(path))) for path in paths}


def _searched(templates: dict[str, re.Pattern[str]], found: Answered) -> Callable[..., Any]:
    async def search(answer: httpx2.Response) -> None:
        text = (await answer.aread()).decode("utf-8", "replace")
        said = f"{answer.request.method} {answer.request.url.path} -> {answer.status_code}"
        assert not shown(text + str(answer.headers)), said
        if answer.is_success:
            path = answer.request.url.path
            fits = next(
                (one for one, pattern in templates.items() if pattern.fullmatch(path)), path
            )
            found.add(f"{answer.request.method} {fits}")

    return search


async def _ask_for_everything(service: TestService) -> set[str]:
    """Changes first, so that lists are filled; as an admin with an agent's session.

    Returns the operations.
    """
    street = await populated(service)
    await service.app.operators.set_role_for_admin("alice@example.com", Role.ADMIN)
    agent = await service.session(OWNER_KEY)
    asked: list[tuple[str, str, list[dict[str, Any]]]] = [
        (method.upper(), path, operation["security"])
        for path, item in openapi_document(service.app)["paths"].items()
        for method, operation in item.items()
        if not path.startswith("/wrap/")
    ]
    for method, path, ways in sorted(asked, key=_changes_before_reads):
        for way in ways or [{}]:
            credentials = street.alice | {"agentAddress": agent, "agentSession": agent}
            headers = {k: v for name in way for k, v in credentials[name].items()}
            body = BODIES.get(f"{method} {path}", {})
            more = {} if method in {"GET", "DELETE"} else {"json": body}
            await street.ask(headers, method, _filled(street, path), **more)
            if path in ENDS_THE_SESSION and method != "GET":
                street.alice["dashboardToken"] = await service.token("alice@example.com")
            if "agentSession" in way and path.endswith("/session"):
                agent = await service.session(OWNER_KEY)
    paid = await service.http.get(f"/wrap/{street.ids['operator_id']}/paid")
    assert paid.status_code == PAYMENT_REQUIRED
    return {f"{method} {path}" for method, path, _ in asked}


def _filled(street: Street, path: str) -> str:
    names = {
        "agentId": "7",
        "agentAddress": address(OWNER_KEY),
        "wallet": address(OWNER_KEY),
        "keyId": street.ids["key_id"],
        "endpointId": street.ids["endpoint_id"],
        "webhookId": street.ids["webhook_id"],
        "sessionId": street.ids["session_id"],
        "id": street.ids["operator_id"],
        "word": "x",
        "credentialId": "x",
        "policy": "default",
    }
    return re.sub(r"\{(\w+)\}", lambda found: names[found[1]], path)


def _changes_before_reads(operation: tuple[str, str, object]) -> tuple[int, bool]:
    method, path, _ = operation
    return ("POST", "PATCH", "PUT", "GET", "DELETE").index(method), path == "/operator/me"
