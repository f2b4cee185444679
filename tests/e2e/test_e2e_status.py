"""`assay status`: which processes serve on a database, as they say themselves."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from assay import __version__
from assay.db.engine import HEAD
from tests.support.assay import served
from tests.support.commands import command
from tests.support.databases import give_schema, migrated_postgresql
from tests.support.eventually import eventually
from tests.support.fleet import fleet
from tests.support.shop import NO_CHAIN

pytestmark = pytest.mark.e2e


def asked(environment: dict[str, str], *words: str) -> tuple[int, str, str]:
    own = {name: one for name, one in environment.items() if name.startswith("ASSAY_")}
    done = command("status", *words, environment=own | {"PATH": "/usr/bin:/bin", "COLUMNS": "200"})
    return done.returncode, done.stdout, done.stderr


def found(environment: dict[str, str]) -> dict[str, Any]:
    return json.loads(asked(environment, "--json")[1])


def test_it_shows_a_process_that_serves_until_it_has_ended(tmp_path: Path) -> None:
    with served(tmp_path / "d", NO_CHAIN) as server:
        shown = eventually(lambda: found(server.environment), lambda one: one["processes"])
        [process] = shown["processes"]
        assert (process["pid"], process["version"], process["schema"]) == (
            server.pid,
            __version__,
            HEAD,
        )
        assert (process["ready"], process["reasons"]) == (True, [])
        assert shown["database"] == {"kind": "sqlite", "schema": HEAD}
        assert (shown["pendingPayments"], shown["differs"]) == ({}, [])
        code, text, _ = asked(server.environment)
        assert code == 0
        assert str(server.pid) in text
        assert "payments   none is being settled" in text
        assert server.stop() == 0
        code, text, _ = asked(server.environment)
        assert (code, "processes  none serves" in text) == (1, True)


def test_without_a_database_it_says_so_and_creates_none(tmp_path: Path) -> None:
    code, text, error = asked({"ASSAY_DATA_DIR": str(tmp_path / "none")})
    assert (code, text) == (1, "")
    assert "there is no database yet" in error
    assert not (tmp_path / "none").exists()
    give_schema(tmp_path / "some")
    (tmp_path / "some" / "assay.db").write_bytes(b"not a database")
    code, text, error = asked({"ASSAY_DATA_DIR": str(tmp_path / "some")})
    assert (code, text) == (1, "")
    assert "cannot be used now" in error


@pytest.mark.slow
def test_it_shows_every_worker_and_other_settings_differ(tmp_path: Path) -> None:
    url = migrated_postgresql()
    with (
        fleet(tmp_path / "d", ASSAY_DATABASE_URL=url) as made,
        served(tmp_path / "d", NO_CHAIN, ASSAY_DATABASE_URL=url, ASSAY_KEEP_ALIVE_S="90") as other,
    ):
        environment = made.server.environment
        shown = eventually(lambda: found(environment), lambda one: len(one["processes"]) == 3)
        assert {one["pid"] for one in shown["processes"]} == {*made.workers, other.pid}
        by_pid = {one["pid"]: one["config"] for one in shown["processes"]}
        assert len({by_pid[pid] for pid in made.workers}) == 1
        assert by_pid[other.pid] != by_pid[made.workers[0]]
        assert shown["differs"] == ["config"]
        killed = made.workers[0]
        os.kill(killed, signal.SIGKILL)
        eventually(
            lambda: {one["pid"] for one in found(environment)["processes"]},
            lambda pids: killed not in pids and set(made.workers) <= pids,
        )
