"""A liveness report of real services on real sockets (interface.md#liveness-report)."""

import json
import time
from pathlib import Path

import pytest

from tests.support.live_service import refused
from tests.support.solana.endpoints import KINDS, zoo
from tests.support.solana.live_service import SolanaTestService, open_solana
from tests.support.solana.loopback import Answer, Fault, garbage, hang, hang_up, status

pytestmark = pytest.mark.slow

BETTER = {"mcp-session", "a2a-agent-card"}
"""Alive by today's protocols; the registry's own SDK reports them dead."""


async def test_every_kind_of_service_is_judged_for_what_it_is(service: SolanaTestService) -> None:
    with zoo() as animals:
        asset = service.registry.agent(uri=animals.registration(*KINDS)).asset
        began_s = time.monotonic()
        body = (await service.get("/operator/agent/1/liveness")).json()
        assert time.monotonic() - began_s < 25
        kinds = {animals.endpoint(kind).url: kind for kind in KINDS}
    found = body["liveness"]
    judged = {kinds[row["endpoint"]]: row["ok"] for row in found["results"]}
    assert judged == {kind: alive or kind in BETTER for kind, (_, alive) in KINDS.items()}
    assert all(row["latencyMs"] > 0 for row in found["results"])
    assert (body["agentId"], body["sequentialId"]) == (str(asset), 1)
    assert body["chain"] == {"network": "solana", "cluster": "mainnet-beta"}
    assert found["status"] == "partially"
    assert (found["okCount"], found["totalPinged"]) == (sum(judged.values()), len(KINDS))
    assert found["skippedCount"] == 0


async def test_what_is_nothing_to_call_is_skipped(service: SolanaTestService) -> None:
    names = [{"name": "SNS", "endpoint": "a.sol"}, {"name": "agentWallet", "endpoint": "solana:x"}]
    with zoo() as animals:
        services = [*names, {"type": "web", "value": animals.endpoint("web").url}]
        document = Answer(200, json.dumps({"name": "A", "services": services}).encode())
        service.registry.agent(uri=animals.document(document))
        found = (await service.get("/operator/agent/1/liveness")).json()["liveness"]
    assert (found["status"], found["skippedCount"], found["totalPinged"]) == ("live", 2, 1)
    assert [(row["type"], row["ok"], row["latencyMs"] == 0) for row in found["results"]] == [
        ("SNS", False, True),
        ("wallet", False, True),
        ("web", True, False),
    ]


async def test_a_file_that_cannot_be_read_declares_nothing(service: SolanaTestService) -> None:
    wrong: list[Answer | Fault] = [status(404), garbage(), hang(), hang_up(), Answer(200, b"[1]")]
    with zoo() as animals:
        for document in wrong:
            asset = service.registry.agent(uri=animals.document(document)).asset
            answer = await service.get(f"/operator/agent/{asset}/liveness")
            assert answer.status_code == 200
            assert answer.json()["liveness"] == {
                "status": "not_live",
                "okCount": 0,
                "totalPinged": 0,
                "skippedCount": 0,
                "results": [],
            }


async def test_private_addresses_are_never_called(tmp_path: Path) -> None:
    async with open_solana(tmp_path, allow_private_upstreams=False) as service:
        with zoo() as animals:
            url = animals.endpoint("web").url
            text = json.dumps(
                {"services": [{"name": "web", "endpoint": url}]}, separators=(",", ":")
            )
            service.registry.agent(uri="data:application/json," + text)
            found = (await service.get("/operator/agent/1/liveness")).json()["liveness"]
            assert animals.requests("web") == []
    (row,) = found["results"]
    assert (row["ok"], row["latencyMs"], found["totalPinged"]) == (False, 0, 1)


async def test_reports_are_limited_per_address(tmp_path: Path) -> None:
    async with open_solana(tmp_path, sandbox_per_minute=2) as service:
        asset = str(service.registry.agent().asset)
        for _ in range(2):
            assert (await service.get(f"/operator/agent/{asset}/liveness")).status_code == 200
        refused(await service.get(f"/operator/agent/{asset}/liveness"), 429, "rate_limited")


async def test_the_endpoint_can_ask_for_a_key(tmp_path: Path) -> None:
    async with open_solana(tmp_path, open_endpoints="wallet") as service:
        asset = str(service.registry.agent().asset)
        answer = await service.get(f"/operator/agent/{asset}/liveness")
        refused(answer, 401, "unauthorized")
        who = await service.operator()
        answer = await service.get(f"/operator/agent/{asset}/liveness", headers=who)
        assert answer.status_code == 200
