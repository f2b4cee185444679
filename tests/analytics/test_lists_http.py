"""Every list has one form, but for the arrays that the interface names (interface.md#dashboard)."""

from collections.abc import Mapping
from typing import Any

import pytest

from assay.accounts.model import Role
from assay.app.web import openapi_document
from assay.common.ids import new_id
from assay.server.schemas import cursor_after
from tests.support.fakes.calls import call
from tests.support.live_service import TestService, refused

ARRAYS = {"/operator/keys", "/operator/endpoints", "/operator/analytics/revenue"}
"""Source: interface.md#dashboard."""

PAGED = {
    "/operator/analytics/agents": 7,
    "/operator/analytics/logs": 7,
    "/operator/analytics/top-endpoints": 7,
    "/operator/webhooks": 7,
    "/operator/webhooks/deliveries": 0,
    "/operator/admin/operators": 7,
    "/operator/admin/audit": 7,
}
"""With how many rows `filled` makes at least."""


PUBLIC = {"/operator/agents", "/operator/agent/{agentId}/history"}
"""Anybody may read them, so nobody has them counted: they have neither `total` nor `offset`."""


async def filled(service: TestService) -> dict[str, str]:
    """Seven rows of everything; the token of an admin."""
    for number in range(7):
        await service.operator(f"op{number}@example.com")
    owner = await service.app.operators.find_for_admin("op0@example.com")
    token = await service.token("op0@example.com")
    for number in range(7):
        target = {"path": f"/{number}", "pricePerCall": 0, "targetUrl": "http://127.0.0.1:20009"}
        wrapper = await service.http.post("/operator/endpoints", json=target, headers=token)
        at, agent_id = service.clock.now(), str(number)
        made = call(owner.id, wrapper.json()["id"], at, agent_id=agent_id, chain="local")
        service.app.call_log.add(made)
    await service.app.flush()
    for number in range(7):
        body = {"event": "evaluation_complete", "url": f"https://hooks.example.com/{number}"}
        added = await service.http.post("/operator/webhooks/register", json=body, headers=token)
        assert added.status_code == 201, added.text
    await service.app.operators.set_role_for_admin("op0@example.com", Role.ADMIN)
    return token


async def test_only_the_arrays_of_the_specification_are_arrays(service: TestService) -> None:
    document = openapi_document(service.app)
    arrays: set[str] = set()
    paged: set[str] = set()
    for path, item in document["paths"].items():
        content = item.get("get", {}).get("responses", {}).get("200", {}).get("content", {})
        schema: Mapping[str, Any] = content.get("application/json", {}).get("schema", {})
        if schema.get("type") == "array":
            arrays.add(path)
        named = document["components"]["schemas"].get(schema.get("$ref", "").rpartition("/")[2], {})
        if "items" in named.get("properties", {}):
            members = {"items", "limit", "nextCursor"}
            members |= set() if path in PUBLIC else {"total", "offset"}
            assert members <= set(named["required"]), path
            paged.add(path)
    assert arrays == ARRAYS
    beyond = {
        "/operator/admin/operators/{id}/logs",
        "/operator/admin/statement",
        "/operator/endpoints/{endpointId}/history",
        "/operator/statement/transfers",
        "/operator/agent/{agentId}/credentials",
    }
    assert paged == {*PAGED, *PUBLIC, *beyond, "/operator/sessions", "/operator/visits"}


@pytest.mark.parametrize("path", PAGED)
async def test_cursors_lead_through_the_whole_list_once(service: TestService, path: str) -> None:
    token = await filled(service)
    whole = (await service.http.get(path, headers=token, params={"limit": 500})).json()
    assert whole["nextCursor"] is None
    assert whole["total"] == len(whole["items"]) >= PAGED[path]
    seen: list[Any] = []
    cursor: str | None = None
    for _ in range(whole["total"] // 3 + 2):
        params = {"limit": "3", **({} if cursor is None else {"cursor": cursor})}
        page = (await service.http.get(path, headers=token, params=params)).json()
        assert (page["total"], page["limit"]) == (whole["total"], 3)
        seen += page["items"]
        cursor = page["nextCursor"]
        if cursor is None:
            break
        assert len(cursor) <= 100
    assert seen == whole["items"]
    skipped = await service.http.get(path, headers=token, params={"limit": 2, "offset": 4})
    assert (skipped.json()["items"], skipped.json()["offset"]) == (whole["items"][4:6], 4)


@pytest.mark.parametrize("path", PAGED)
@pytest.mark.parametrize(
    "cursor",
    ["x", "!", "", "a" * 101, "YXQ6OTk5OTk5", "YXQ6LTE", "YWZ0ZXI6Nw", "YXQ6MDE", "eA=="],
)
async def test_a_cursor_that_is_none_is_refused(
    service: TestService, path: str, cursor: str
) -> None:
    await service.operator()
    await service.app.operators.set_role_for_admin("op@example.com", Role.ADMIN)
    token = await service.token()
    answer = await service.http.get(path, headers=token, params={"cursor": cursor})
    refused(answer, 400, "invalid_request")


SHORT = ("/operator/sessions", "/operator/visits", "/operator/agent/7/credentials")
"""Lists that are read whole."""


@pytest.mark.parametrize("path", SHORT)
@pytest.mark.parametrize(
    "asked", [{"limit": "0"}, {"limit": "abc"}, {"offset": "-1"}, {"cursor": "xxx"}]
)
async def test_a_page_that_cannot_be_is_refused_of_short_lists_too(
    service: TestService, path: str, asked: dict[str, str]
) -> None:
    await service.operator()
    headers = await (service.token() if path == "/operator/sessions" else service.session())
    refused(await service.http.get(path, headers=headers, params=asked), 400, "invalid_request")


async def test_sessions_are_gone_through_in_pages(service: TestService) -> None:
    await service.operator()
    for _ in range(3):
        await service.token()
    token = await service.token()
    whole = (await service.http.get("/operator/sessions", headers=token)).json()
    assert (whole["total"], whole["limit"], whole["nextCursor"]) == (4, 100, None)
    first = await service.http.get("/operator/sessions", headers=token, params={"limit": 3})
    params = {"limit": 3, "cursor": first.json()["nextCursor"]}
    last = await service.http.get("/operator/sessions", headers=token, params=params)
    assert first.json()["items"] + last.json()["items"] == whole["items"]
    assert (last.json()["offset"], last.json()["nextCursor"]) == (3, None)


async def _by_ids(service: TestService) -> dict[str, str]:
    """Every list that is gone through by the ids of its rows, with its code for none of them."""
    owner = await service.app.operators.find_for_admin("op0@example.com")
    return {
        "/operator/analytics/logs": "call_not_found",
        f"/operator/admin/operators/{owner.id}/logs": "call_not_found",
        "/operator/webhooks/deliveries": "delivery_not_found",
        "/operator/admin/audit": "note_not_found",
    }


async def test_404_a_cursor_of_a_row_that_is_not_there_is_said_on_every_list(
    service: TestService,
) -> None:
    """As after a removal; nobody is told that a list ends where it does not."""
    token, unknown = await filled(service), new_id()
    for path, code in (await _by_ids(service)).items():
        for params in ({"cursor": cursor_after(unknown)}, {"before": unknown}):
            answer = await service.http.get(path, headers=token, params=params)
            refused(answer, 404, code)


async def test_the_earlier_names_are_still_there(service: TestService) -> None:
    token = await filled(service)
    for path, name in (
        ("/operator/analytics/agents", "agents"),
        ("/operator/analytics/logs", "logs"),
        ("/operator/webhooks/deliveries", "deliveries"),
        ("/operator/admin/operators", "operators"),
        ("/operator/admin/audit", "notes"),
    ):
        page = (await service.http.get(path, headers=token)).json()
        assert page[name] == page["items"]
