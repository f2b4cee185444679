"""The public reads of registered agents (interface.md#public-reports)."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx2

from assay.chains.model import ChainUnavailable
from assay.registries.model import RegistrationFile, Service
from tests.support.listed import put_agents
from tests.support.live_service import (
    OWNER_KEY,
    STRANGER_KEY,
    TestService,
    address,
    refused,
    start_test_service,
)

LIST, REPORT, HISTORY = (
    "/operator/agents",
    "/operator/agent/7/report",
    "/operator/agent/7/history",
)
CANARY = "canary-of-who-asked"


async def evaluated(service: TestService, *ids: str) -> None:
    for agent_id in ids:
        service.clock.move(60)
        assert (await service.http.post(f"/operator/trigger-sandbox/{agent_id}")).is_success


async def listed(service: TestService, **query: str | int) -> list[str]:
    answer = await service.http.get(LIST, params=query)
    assert answer.status_code == 200, answer.text
    return [one["agentId"] for one in answer.json()["items"]]


async def test_200_the_list_has_the_agents_that_were_evaluated_and_no_key_agent(
    service: TestService,
) -> None:
    assert await listed(service) == []
    await evaluated(service, "7")
    key_agent = address(STRANGER_KEY)
    assert (await service.http.post(f"/operator/trigger-sandbox-key/{key_agent}")).is_success
    assert await listed(service) == ["7"]
    assert await listed(service, q=key_agent) == []
    shown = (await service.http.get(LIST)).json()["items"][0]
    assert (shown["chain"], shown["name"]) == ("local", "Agent 7")
    refused(await service.http.get(f"/operator/agent/{key_agent}/report"), 400, "invalid_request")
    refused(await service.http.get(f"/operator/agent/{key_agent}/history"), 400, "invalid_request")


async def test_200_an_agent_is_found_by_id_wallet_caip_name_url_and_beginning(
    service: TestService,
) -> None:
    file = RegistrationFile(
        name="Weather Scout", services=(Service("web", "https://Scout.Example.com:8443/a"),)
    )
    service.chain.agents["7"] = replace(service.chain.agents["7"], registration=file)
    await evaluated(service, "7", "8")
    owner, chain = address(OWNER_KEY), service.app.networks.default
    for query in (
        "7",
        f"{chain.caip2}/7",
        f"{chain.agent_registry}/7",
        "https://scout.example.com/other",
        "scout.example.com",
        "weather",
        "WEATHER scout",
    ):
        assert await listed(service, q=query) == ["7"], query
    for query in (owner, owner.upper().replace("0X", "0x"), f"{chain.caip2}:{owner}"):
        assert sorted(await listed(service, q=query)) == ["7", "8"], query
    for query in ("9", "eip155:999999/7", "example.com", "eather", "%", "_", "0x" + "9" * 40):
        assert await listed(service, q=query) == [], query


async def test_200_filters_sort_and_pages_show_each_agent_once(service: TestService) -> None:
    ids = [str(number) for number in range(20, 31)]
    await put_agents(service.app.database, dict.fromkeys(ids, ("Name", "Words", "a")))
    for sort in ("score", "visited"):
        seen: list[str] = []
        query: dict[str, Any] = {"limit": 4, "sort": sort}
        while True:
            page = (await service.http.get(LIST, params=query)).json()
            seen += [one["agentId"] for one in page["items"]]
            if page["nextCursor"] is None:
                break
            query["cursor"] = page["nextCursor"]
        assert sorted(seen) == ids
    tier = (await service.http.get(LIST)).json()["items"][0]["tier"]
    assert len(await listed(service, tier=tier, chain="local", protocol="http")) == len(ids)
    assert await listed(service, tier="AAA") == []
    assert await listed(service, protocol="a2a") == []


async def test_400_for_what_is_no_filter_or_no_cursor_of_the_list(service: TestService) -> None:
    cursor = "c2NvcmU6MTow"  # `score:1:0`
    for query in (
        {"tier": "D"},
        {"chain": "nowhere"},
        {"protocol": "smtp"},
        {"sort": "name"},
        {"limit": 0},
        {"limit": 101},
        {"cursor": "eA"},
        {"cursor": cursor, "sort": "visited"},
        {"q": "x" * 301},
    ):
        refused(await service.http.get(LIST, params=query), 400, "invalid_request")
    bad = {"cursor": cursor}
    refused(await service.http.get(HISTORY, params=bad), 400, "invalid_request")


async def test_200_the_report_adds_up_and_its_hash_can_be_recomputed(
    service: TestService,
) -> None:
    refused(await service.http.get(REPORT), 404, "agent_not_evaluated")
    await evaluated(service, "7")
    shown = (await service.http.get(REPORT)).json()
    assert shown["name"] == "Agent 7"
    assert abs(sum(one["points"] for one in shown["parts"]) - shown["score"]) < 0.05
    record = shown["snapshot"]["record"].encode()
    assert shown["snapshot"]["snapshotHash"] == "0x" + hashlib.sha256(record).hexdigest()
    assert shown["ladder"]["reason"].startswith("Nothing is proven yet, which")
    assert shown["validUntil"] > shown["evaluatedAt"]
    assert shown["services"] == [{"name": "web", "endpoint": "http://127.0.0.1:9/"}]


async def test_200_history_links_and_has_a_reason_for_every_change(service: TestService) -> None:
    refused(await service.http.get(HISTORY), 404, "agent_not_evaluated")
    for _ in range(5):
        await evaluated(service, "7")
    first = (await service.http.get(HISTORY, params={"limit": 3})).json()
    query = {"limit": 3, "cursor": first["nextCursor"]}
    rest = (await service.http.get(HISTORY, params=query)).json()
    items = first["items"] + rest["items"]
    assert (len(items), rest["nextCursor"]) == (5, None)
    for newer, older in pairwise(items):
        assert newer["previousHash"] == older["snapshotHash"]
        assert newer["reasons"] or newer["score"] == older["score"]
    assert items[-1]["previousHash"] == "0x0"


async def test_304_a_current_copy_is_not_sent_again(service: TestService) -> None:
    await evaluated(service, "7")
    for path in (LIST, REPORT, HISTORY):
        first = await service.http.get(path)
        assert first.headers["cache-control"] == "public, max-age=60"
        known = {"if-none-match": first.headers["etag"]}
        assert (await service.http.get(path, headers=known)).status_code == 304
        await evaluated(service, "7")
        assert (await service.http.get(path, headers=known)).status_code == 200


async def test_no_read_evaluates_or_asks_a_chain(service: TestService) -> None:
    await evaluated(service, "7")
    service.chain.down = ChainUnavailable("down", retry_after_s=3)
    for path in (LIST, REPORT, HISTORY, f"{LIST}?q=7", f"{LIST}?q=https://127.0.0.1:9/"):
        assert (await service.http.get(path)).status_code == 200, path
    refused(await service.http.get("/operator/agent/8/report"), 404, "agent_not_evaluated")
    refused(await service.http.get("/operator/agent/8/history"), 404, "agent_not_evaluated")
    assert len((await service.http.get(HISTORY)).json()["items"]) == 1


async def test_nobody_reads_who_asked_or_what_paid_signals_say(service: TestService) -> None:
    operator = await service.operator(f"{CANARY}@example.com")
    await service.http.post("/operator/trigger-sandbox/7", headers=operator)
    for path in (LIST, REPORT, HISTORY):
        text = (await service.http.get(path)).text
        assert CANARY not in text
        assert not names_paid(await _json(service.http, path))


async def _json(http: httpx2.AsyncClient, path: str) -> Any:
    return (await http.get(path)).json()


def names_paid(shown: Any) -> bool:
    """Whether a member or a slug is one of a paid signal."""
    if isinstance(shown, Mapping):
        named = {str(shown.get("slug", "")), str(shown.get("name", "")), *(set(shown) - {"wallet"})}
        paid = {"self", "personhood", "attestation", "personhood_bonus", "handles", "wallet"}
        return bool(named & paid) or any(names_paid(one) for one in shown.values())
    return isinstance(shown, list) and any(names_paid(one) for one in shown)


async def test_404_unlisted_has_no_list_and_off_has_nothing(tmp_path: Path) -> None:
    async with start_test_service(tmp_path / "a", public_pages="unlisted") as service:
        await evaluated(service, "7")
        refused(await service.http.get(LIST), 404, "not_found")
        refused(await service.http.get(LIST, params={"q": "7"}), 404, "not_found")
        assert (await service.http.get(REPORT)).status_code == 200
        assert (await service.http.get(HISTORY)).status_code == 200
    async with start_test_service(tmp_path / "b", public_pages="off") as service:
        await evaluated(service, "7")
        for path in (LIST, REPORT, HISTORY):
            refused(await service.http.get(path), 404, "not_found")
