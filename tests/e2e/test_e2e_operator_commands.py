"""The operator's side from the terminal: proofs of the roll-ups, deliveries, the audit trail."""

import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import httpx2
import pytest

from assay.accounts.api_keys import REMEMBERED_S
from tests.e2e.test_e2e_command_line import assay
from tests.support.assay import served

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
PASSWORD = "correct horse battery"
NO_CHAIN = {
    "chain_id": 31337,
    "identity_registry": "0x" + "01" * 20,
    "reputation_registry": "0x" + "02" * 20,
    "rpc_urls": ["http://127.0.0.1:9/"],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    create = ["accounts", "create", "a@example.com", "--name", "A", "--admin"]
    done = assay(*create, data_dir=tmp_path, stdin=PASSWORD + "\n")
    assert done.returncode == 0, done.stderr
    return tmp_path


def test_a_roll_up_that_is_wrong_is_found_and_rebuilt(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "assay.db")) as database, database:
        database.execute("INSERT INTO call_totals VALUES ('o', 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)")
    found = assay("analytics", "rebuild", "--check", data_dir=folder)
    assert found.returncode == 1
    assert "call_totals: 1 rows differ" in found.stdout
    rebuilt = assay("analytics", "rebuild", data_dir=folder)
    assert (rebuilt.returncode, "rebuilt" in rebuilt.stdout) == (0, True)
    again = assay("analytics", "rebuild", "--check", data_dir=folder)
    assert again.returncode == 0, again.stdout


def test_deliveries_are_listed_as_a_table_and_as_json(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "assay.db")) as database, database:
        database.execute(
            "INSERT INTO webhook_deliveries (id, webhook_id, operator_id, url, agent_id, payload,"
            " state, status, reason, created_us) VALUES ('d', 'w', 'o', 'https://x.example', '7',"
            " '{}', 'failed', 500, 'the receiver refused', 0)"
        )
    listed = assay("webhooks", "deliveries", "--json", data_dir=folder)
    [row] = json.loads(listed.stdout)
    assert (row["state"], row["status"], row["agentId"]) == ("failed", "500", "7")
    none = assay("webhooks", "deliveries", "--state", "sent", "--json", data_dir=folder)
    assert json.loads(none.stdout) == []
    assert "failed" in assay("webhooks", "deliveries", data_dir=folder).stdout


def test_what_is_done_on_the_terminal_is_in_the_trail(folder: Path) -> None:
    assay("accounts", "set-plan", "a@example.com", "pro", data_dir=folder)
    with closing(sqlite3.connect(folder / "assay.db")) as database:
        rows = database.execute("SELECT actor_kind, action, details FROM audit ORDER BY seq")
        trail = [(kind, action, json.loads(details)) for kind, action, details in rows]
    assert [(kind, action) for kind, action, _ in trail] == [
        ("terminal", "account.registered"),
        ("terminal", "key.issued"),
        ("terminal", "account.changed"),
    ]
    assert trail[2][2] == {"plan": {"from": "free", "to": "pro"}}
    assert PASSWORD not in json.dumps(trail)


def test_an_account_suspended_on_the_terminal_is_refused_by_the_service_within_seconds(
    tmp_path: Path,
) -> None:
    email, folder = "op@example.com", tmp_path / "data"
    with served(folder, {"local": NO_CHAIN}) as service:
        body = {"email": email, "password": PASSWORD, "name": "Op"}
        key = httpx2.post(f"{service.address}/operator/register", json=body).json()["apiKey"]
        headers = {"authorization": f"Bearer {key}"}
        asked = f"{service.address}/operator/key/0x{'11' * 20}"

        def code() -> str:
            answer = httpx2.get(asked, headers=headers)
            return "fine" if answer.status_code == 200 else answer.json()["code"]

        def await_code(wanted: str) -> float:
            begun = time.monotonic()
            while code() != wanted:
                assert time.monotonic() - begun < REMEMBERED_S + 1
                time.sleep(0.1)
            return time.monotonic() - begun

        assert code() == "fine"
        done = assay("accounts", "suspend", email, data_dir=folder)
        assert (done.returncode, "within 5 seconds" in done.stdout) == (0, True), done.stderr
        await_code("account_suspended")
        login = httpx2.post(
            f"{service.address}/operator/login", json={"email": email, "password": PASSWORD}
        )
        assert login.json()["code"] == "account_suspended"
        [row] = json.loads(assay("accounts", "list", "--json", data_dir=folder).stdout)
        assert row["suspended_at"]
        done = assay("accounts", "restore", email, data_dir=folder)
        assert (done.returncode, "restored" in done.stdout) == (0, True), done.stderr
        await_code("fine")
        unknown = assay("accounts", "suspend", "nobody@example.com", data_dir=folder)
        assert (unknown.returncode, "no account" in unknown.stderr) == (1, True)
