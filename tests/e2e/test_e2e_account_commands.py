"""Accounts over several operating-system processes: the terminal, and two that serve."""

import base64
import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP

from tests.e2e.test_e2e_command_line import assay
from tests.e2e.test_e2e_operator_commands import NO_CHAIN, PASSWORD
from tests.support.assay import Served, served
from tests.support.shop import free_port

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
EMAIL = "op@example.com"
CHAINS = {"local": NO_CHAIN}


@contextmanager
def replica(folder: Path, **settings: str) -> Iterator[Served]:
    """A process that serves, on a port of its own, the address that all of them have."""
    port = free_port()
    public = {"ASSAY_PORT": str(port), "ASSAY_PUBLIC_URL": "http://assay.example"}
    with served(folder, CHAINS, **public, **settings) as running:
        running.address = f"http://127.0.0.1:{port}"
        yield running


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Served, Served]]:
    """Two processes that serve one database."""
    with ExitStack() as stack:
        one = stack.enter_context(replica(tmp_path))
        yield one, stack.enter_context(replica(tmp_path))


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path, CHAINS) as running:
        yield running


def post(server: Served, path: str, token: dict[str, str] | None = None, **body: Any) -> Any:
    return httpx2.post(f"{server.address}/operator/{path}", headers=token, json=body, timeout=20)


def registered(server: Served) -> dict[str, str]:
    """A new account's dashboard token."""
    assert post(server, "register", email=EMAIL, password=PASSWORD, name="Op").is_success
    return logged_in(server)


def logged_in(server: Served) -> dict[str, str]:
    answer = post(server, "login", email=EMAIL, password=PASSWORD)
    assert answer.status_code == 200, answer.text
    return {"authorization": f"Bearer {answer.json()['token']}"}


def status_of(server: Served, token: dict[str, str]) -> int:
    return httpx2.get(f"{server.address}/operator/me", headers=token).status_code


def test_a_session_ended_through_one_process_is_refused_by_another_at_once(
    pair: tuple[Served, Served],
) -> None:
    one, other = pair
    token = registered(one)
    kept = logged_in(other)
    assert [status_of(server, token) for server in pair] == [200, 200]
    assert post(one, "logout", token).status_code == 200
    assert [status_of(server, token) for server in (other, one)] == [401, 401]
    assert [status_of(server, kept) for server in pair] == [200, 200]
    others = httpx2.request("DELETE", f"{other.address}/operator/sessions", headers=kept)
    assert others.status_code == 200
    assert [status_of(server, kept) for server in pair] == [401, 401]


def test_what_was_spent_is_in_force_in_a_process_that_starts_later(tmp_path: Path) -> None:
    quota = {"ASSAY_QUOTA_ACCOUNT_CHANGES": "5"}

    def rename(server: Served, token: dict[str, str]) -> Any:
        url = f"{server.address}/operator/me"
        return httpx2.patch(url, headers=token, json={"name": "Other"}, timeout=20)

    with replica(tmp_path, **quota) as first:
        token = registered(first)
        assert [rename(first, token).status_code for _ in range(6)] == [200] * 5 + [429]
    with replica(tmp_path, **quota) as second:
        answer = rename(second, token)
        assert (answer.status_code, answer.json()["code"]) == (429, "quota_exceeded")


def test_log_out_ends_every_session_of_the_account_at_once(service: Served, tmp_path: Path) -> None:
    tokens = [registered(service), logged_in(service)]
    done = assay("accounts", "log-out", EMAIL, data_dir=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"2 sessions of {EMAIL} have ended\n")
    assert [status_of(service, token) for token in tokens] == [401, 401]
    again = assay("accounts", "log-out", EMAIL, data_dir=tmp_path)
    assert again.stdout == f"0 sessions of {EMAIL} have ended\n"
    assert status_of(service, logged_in(service)) == 200
    unknown = assay("accounts", "log-out", "nobody@example.com", data_dir=tmp_path)
    assert (unknown.returncode, "no account" in unknown.stderr) == (1, True)


def test_reset_totp_lets_an_owner_in_who_has_lost_its_device(
    service: Served, tmp_path: Path
) -> None:
    token = registered(service)
    secret = base64.b32decode(post(service, "totp", token, password=PASSWORD).json()["secret"])
    code = TOTP(secret, 6, SHA1(), 30).generate(int(time.time())).decode()  # noqa: S303 - RFC 6238
    assert post(service, "totp/confirm", token, code=code).status_code == 200
    lost = post(service, "login", email=EMAIL, password=PASSWORD)
    assert (lost.status_code, lost.json()["code"]) == (401, "totp_required")
    done = assay("accounts", "reset-totp", EMAIL, data_dir=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"{EMAIL} has no second factor any more\n")
    me = httpx2.get(f"{service.address}/operator/me", headers=logged_in(service)).json()
    assert me["security"]["totpEnabled"] is False
    again = assay("accounts", "reset-totp", EMAIL, data_dir=tmp_path)
    assert again.stdout == f"{EMAIL} had no second factor\n"


def test_export_prints_what_is_kept_of_an_account_and_no_secret(
    service: Served, tmp_path: Path
) -> None:
    token = registered(service)
    done = assay("accounts", "export", EMAIL, data_dir=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["operator"]["email"] == EMAIL
    assert (len(found["keys"]), len(found["sessions"])) == (1, 1)
    assert {one["action"] for one in found["audit"]} >= {"account.registered", "account.exported"}
    for secret in (PASSWORD, token["authorization"][7:], "argon2"):
        assert secret not in done.stdout
