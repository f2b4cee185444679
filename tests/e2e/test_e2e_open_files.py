"""A process that may have few files open holds fewer connections, and answers the others."""

import contextlib
import resource
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.e2e.test_e2e_payment_attacks import fresh_account
from tests.support.shop import Dollars, encoded, shop, upstream

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

USUAL = 1024
"""The hard limit of open files of many a system."""
EACH = 512
SAID = "too few files may be open"


@pytest.fixture(autouse=True)
def many_files() -> Iterator[None]:
    """For the callers, all of which are this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def limits(pid: int) -> list[str]:
    lines = Path(f"/proc/{pid}/limits").read_text("ascii").splitlines()
    return next(line for line in lines if line.startswith("Max open files")).split()[3:5]


def test_idle_connections_of_two_addresses_leave_files_for_everybody_else(
    dollar_chain: Dollars, tmp_path: Path
) -> None:
    payer = fresh_account()
    dollar_chain.mint(payer.address, 10**6)
    with (
        upstream() as up,
        shop(tmp_path, dollar_chain, up, files=(256, USUAL)) as store,
        contextlib.ExitStack() as stack,
    ):
        assert limits(store.server.pid) == [str(USUAL)] * 2
        free, paid = store.wrap("/echo/free", 0), store.wrap("/echo/paid")
        payment = encoded(store.payment(paid, payer))
        parts = urlsplit(store.server.address)
        store.http.close()
        for source in ("127.0.0.1", "127.0.1.1"):
            for _ in range(EACH):
                made = socket.create_connection((parts.hostname, parts.port), 20, (source, 0))
                stack.enter_context(made)
        way = httpx2.HTTPTransport(local_address="127.0.2.1")
        with httpx2.Client(base_url=store.server.address, transport=way, timeout=40) as third:
            assert third.get("/operator/health").status_code == 200
            assert third.get(free).status_code == 200
            answer = third.get(paid, headers={"payment-signature": payment})
            assert answer.status_code == 200, answer.text
            listed = third.get("/operator/endpoints", headers=store.token)  # by the database
            assert listed.status_code == 200
        assert len(list(Path(f"/proc/{store.server.pid}/fd").iterdir())) < USUAL
        assert store.server.said().count(SAID) == 1
        assert "LimitNOFILE" in store.server.said()
        assert "Too many open files" not in store.server.said()
