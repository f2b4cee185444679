"""Grades recomputed from what is stored: `evaluate`, `snapshots verify`, `replay`."""

import json
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay_demo.world import World
from tests.support.assay import Served, served
from tests.support.commands import command

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.fixture
def office(world: World, tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path, {"local": dict(world.network_override)}) as running:
        yield running


def assay(office: Served, *words: str) -> subprocess.CompletedProcess[str]:
    return command(*words, environment=office.environment)


def evaluated(office: Served, *agents: str) -> list[dict[str, Any]]:
    told = [assay(office, "evaluate", agent, "--chain", "local", "--json") for agent in agents]
    assert all(one.returncode == 0 for one in told), told
    return [json.loads(one.stdout) for one in told]


def database(office: Served) -> sqlite3.Connection:
    return sqlite3.connect(Path(office.environment["ASSAY_DATA_DIR"]) / "assay.db")


def test_a_score_is_the_sum_of_what_its_signals_say(office: Served, world: World) -> None:
    (told,) = evaluated(office, world.agents[0].agent_id)
    summed = 50 + told["bonus"] + sum(s["contribution"] for s in told["signals"])
    assert told["score"] == pytest.approx(min(summed, told["ceiling"]), abs=0.01)
    assert (told["rung"], told["ceiling"]) == (1, 74)
    for one in told["signals"]:
        points = one["weight"] * one["confidence"] * (one["value"] - 50)
        assert one["contribution"] == pytest.approx(points, abs=0.001)
        assert one["reasons"]
    printed = assay(office, "evaluate", world.agents[0].agent_id)
    assert printed.returncode == 0
    for word in ("sandbox", "8004", "wallet", told["tier"], told["snapshotHash"]):
        assert word in printed.stdout
    nobody = assay(office, "evaluate", "999")
    assert nobody.returncode == 1
    assert "knows no agent" in nobody.stderr


def test_snapshots_hold_until_something_is_changed(office: Served, world: World) -> None:
    agent = world.agents[2].agent_id
    evaluated(office, agent, agent, world.agents[0].agent_id)
    held = assay(office, "snapshots", "verify")
    assert (held.returncode, held.stderr) == (0, "")
    assert held.stdout == ("3 snapshots recomputed, 3 with their encrypted data; 0 do not hold\n")
    with database(office) as connection:
        connection.execute(
            "UPDATE evaluations SET collected = replace(collected, 'pass', 'fail')"
            " WHERE collected LIKE '%pass%'"
        )
        connection.execute("UPDATE evaluations SET collected = replace(collected, 'true', 'false')")
        connection.execute("UPDATE snapshots SET previous_hash = '0x1' WHERE seq = 2")
    broken = assay(office, "snapshots", "verify")
    assert broken.returncode == 1
    assert "does not give this hash" in broken.stderr
    assert "previousHash is 0x1" in broken.stderr
    assert "is not that of the stored evidence" in broken.stderr


def test_a_block_that_was_changed_is_noticed(office: Served, world: World) -> None:
    evaluated(office, world.agents[0].agent_id)
    (block,) = (Path(office.environment["ASSAY_DATA_DIR"]) / "blocks").iterdir()
    block.write_bytes(block.read_bytes()[:-1] + b"x")
    assert "cannot be believed" in assay(office, "snapshots", "verify").stderr
    block.unlink()
    gone = assay(office, "snapshots", "verify")
    assert (gone.returncode, "0 with their encrypted data" in gone.stdout) == (0, True)


def test_a_replay_says_what_other_rules_would_change_and_changes_nothing(
    office: Served, world: World
) -> None:
    good, bad = evaluated(office, world.agents[0].agent_id, world.agents[2].agent_id)
    with database(office) as connection:
        before = connection.execute("SELECT * FROM evaluations").fetchall()
    same = assay(office, "replay", "--json")
    assert json.loads(same.stdout) == []
    harsh = '[[99, "A", "GREEN", "prod"], [0, "C", "RED", "sandbox_only"]]'
    told = json.loads(assay(office, "replay", "--tiers", harsh, "--json").stdout)
    tiers = {row["tier"]: row["newTier"] for row in told}
    assert tiers == {good["tier"]: "C", bad["tier"]: "C"}
    heavy = json.loads(assay(office, "replay", "--weights", '{"8004": 400}', "--json").stdout)
    assert any(row["newScore"] != row["score"] for row in heavy)
    printed = assay(office, "replay", "--all")
    assert "0 of 2 agents would be graded differently" in printed.stdout
    with database(office) as connection:
        assert connection.execute("SELECT * FROM evaluations").fetchall() == before


def test_rules_that_do_not_hold_are_told_in_a_sentence(office: Served) -> None:
    for option, value in (
        ("--weights", "x"),
        ("--weights", "[1]"),
        ("--weights", '{"8004": "40"}'),
        ("--weights", '{"8004": true}'),
        ("--weights", '{"moon": 1}'),
        ("--tiers", "[]"),
        ("--tiers", "[[1]]"),
        ("--tiers", '[[50, "C", "RED", "sandbox_only"]]'),
        ("--tiers", "[" * 100_000),
    ):
        done = assay(office, "replay", option, value)
        assert done.returncode == 78, value[:40]
        assert done.stderr.startswith("assay: ")
        assert done.stderr.count("\n") == 1
