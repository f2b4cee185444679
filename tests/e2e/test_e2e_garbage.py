"""Answered requests are gone at once: none is left to the garbage collector, which holds the loop.

200,000 objects of refused calls held it for 200 ms (`bench/hostile.py`).
"""

import signal
from pathlib import Path

import httpx2
import pytest

from tests.support.assay import Served, served
from tests.support.desync.hostile_wrapper import free_wrapper
from tests.support.eventually import eventually
from tests.support.forked import SERVICE
from tests.support.shop import NO_CHAIN

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
CALLS = 60
ADMITTED = 10
"""Of a minute: all others are refused."""


def _left(server: Served, file: Path) -> int:
    """How many requests were found now that nobody used."""
    before = file.read_text("ascii").count("\n") if file.exists() else 0
    assert server.process is not None
    server.process.send_signal(signal.SIGUSR1)

    eventually(lambda: file.exists() and file.read_text("ascii").count("\n") > before)
    return int(file.read_text("ascii").splitlines()[-1])


@pytest.mark.parametrize("kind", ["slow", "refused"])
def test_answered_wrapper_calls_leave_nothing_to_the_collector(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "garbage"
    settings = {"GARBAGE_FILE": str(file)}
    if kind == "refused":
        settings["ASSAY_WRAPPER_PER_MINUTE"] = str(ADMITTED)
    imported = (*SERVICE, "tests.support.garbage")
    with (
        served(tmp_path / "data", NO_CHAIN, imported=imported, **settings) as server,
        free_wrapper(server.address) as operator_id,
        httpx2.Client(base_url=server.address, timeout=30) as http,
    ):
        path = f"/wrap/{operator_id}/{'slow' if kind == 'slow' else 'x'}"
        for number in range(ADMITTED + 2):
            http.post(f"{path}?warming={number}", content=b"x")
        _left(server, file)
        told = [
            http.post(f"{path}?n={number}", content=b"x").status_code for number in range(CALLS)
        ]
        assert set(told) == ({200} if kind == "slow" else {429})
        assert _left(server, file) <= 2  # of a connection that has ended
