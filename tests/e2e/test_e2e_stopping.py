"""A process that is asked to stop says so first, and goes on answering until others take over."""

import json
import re
import signal
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.assay import Served, served
from tests.support.eventually import eventually
from tests.support.shop import NO_CHAIN

pytestmark = pytest.mark.e2e


def status(server: Served, path: str) -> int:
    return httpx2.get(server.address + path, timeout=20, trust_env=False).status_code


def ops_of(server: Served) -> str:
    """The address of metrics, as the process says it when it starts."""
    assert server.process is not None
    assert server.process.stdout is not None
    for line in server.process.stdout:
        if found := re.search(r"metrics\s+(http://\S+)/metrics", line):
            return found[1]
    raise AssertionError("it does not say where metrics are")


def readiness(ops: str) -> tuple[int, Any]:
    answer = httpx2.get(f"{ops}/readyz", timeout=20, trust_env=False)
    return answer.status_code, json.loads(answer.text)


def test_it_is_unready_while_it_still_answers_and_then_ends(tmp_path: Path) -> None:
    with served(tmp_path / "d", NO_CHAIN, ASSAY_UNREADY_S="600", ASSAY_OPS_BIND="0") as server:
        ops = ops_of(server)
        assert eventually(lambda: status(server, "/readyz"), lambda code: code == 200)
        code, found = readiness(ops)
        assert (code, found["ready"], found["reasons"]) == (200, True, [])
        assert server.process is not None
        server.process.send_signal(signal.SIGTERM)
        assert eventually(lambda: status(server, "/readyz"), lambda code: code == 503)
        assert [status(server, path) for path in ("/livez", "/operator/health", "/api")] == [
            200
        ] * 3
        code, found = readiness(ops)
        assert (code, found["ready"], found["reasons"]) == (503, False, ["draining"])
        assert server.stop() == 0  # a second signal does not wait


def test_it_ends_by_itself_once_that_time_is_over(tmp_path: Path) -> None:
    with served(tmp_path / "d", NO_CHAIN, ASSAY_UNREADY_S="0.5") as server:
        assert server.stop() == 0


def test_strangers_learn_no_reason(tmp_path: Path) -> None:
    with served(tmp_path / "d", NO_CHAIN, ASSAY_UNREADY_S="600") as server:
        assert server.process is not None
        server.process.send_signal(signal.SIGTERM)
        assert eventually(lambda: status(server, "/readyz"), lambda code: code == 503)
        answer = httpx2.get(server.address + "/readyz", timeout=20, trust_env=False)
        assert "draining" not in answer.text
        server.stop()
