"""Records `tests/golden/evidence`: evaluations of ground-truth agents, with all their evidence.

./.venv/bin/python tools/record_evidence.py        half an hour; needs Node, for the chain

One agent of every kind below is visited by the real service for simulated days; its first and its
last evaluation are kept as the database has them. Texts, ports and seeds differ from run to run, so
that a new recording is another set of evidence: it is made only where evidence has a new form that
the old recordings do not show. What they have to be recomputed to is `tests/golden/verdicts.json`.
"""

import argparse
import asyncio
import json
import re
import sqlite3
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from bench.ground_truth import VICTIMS, VISITS_H, Subject, one_round, running  # noqa: E402

from tests.ground_truth.agents import AGENTS  # noqa: E402
from tests.ground_truth.site import Spec  # noqa: E402

RECORDED = ROOT / "tests/golden/evidence"

SHORT_DAYS = 2
SHORT = (
    *("a2a", "nondeterministic", "slow", "rate limited", "not English", "declining"),
    *("behind auth", "mcp", "scanners", "http", "x402", "browser keys", "shared host"),
    *("second several doors", "third graphql", "fifth http", "sixth x402", "seventh mcp"),
    *("nothing there", "templates", "obedient", "leaking sometimes", "poisoned", "cloakers"),
    *("patient", "flapping", "stallers", "clones", "payment frauds", "fourth hollow"),
    *("fifth leaking", "sixth poisoned", "seventh obedient", "seventh grasping"),
)
"""Kinds of agents; of each the first one of the ground truth is visited."""

LONG_DAYS = 8
LONG = ("second a2a", "third mcp", "fourth http", "fresh patient", "fresh cloaking", "sixth a2a")
"""Kinds whose agent is visited until some have proven that they are steady, or have been caught."""

JSON_COLUMNS = ("collected", "unavailable", "policy")
"""Of evaluations; written down as JSON, to be read and compared by people."""

FIRST_US = 1_735_689_600_000_000
"""2025-01-01: when the recorded evaluations are said to have been made, an hour apart. Long ago, so
that no check of what is kept for a while finds it missing. No hash is of a time."""


async def record(folder: Path, kinds: Sequence[str], days: int) -> None:
    """Visit one agent of each kind for some days, and write down what is stored."""
    options = argparse.Namespace(
        load=0, node_delay=0.0, paid_calls=0.0, proxies=3, set=[], at_once=4, out=None,
        everybody=True, repeat=0, short=False, days=days,
    )  # fmt: skip
    async with running(options, specs(kinds)) as bench:
        for round_h in VISITS_H:
            if round_h <= days * 24:
                await one_round(bench, round_h, options)
                sys.stderr.write(f"hour {round_h}: {bench.scheduled} scheduled visits\n")
        await bench.app.flush()
        keep(folder, bench.subjects, kinds, bench.app.settings.data_dir / "assay.db")


def specs(kinds: Sequence[str]) -> list[Spec]:
    """The agents that are visited: one a kind, and whom clones copy."""
    first = {spec.kind: spec for spec in reversed(AGENTS)}
    wanted = {first[kind].name for kind in kinds}
    if "clones" in kinds:
        wanted |= set(VICTIMS)
    return [spec for spec in AGENTS if spec.name in wanted]


def keep(folder: Path, subjects: Sequence[Subject], kinds: Sequence[str], path: Path) -> None:
    """One file an agent, in place of what was recorded before."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.json"):
        old.unlink()
    with sqlite3.connect(path) as connection:
        connection.row_factory = sqlite3.Row
        for subject in subjects:
            links = list(_ends(connection, subject.agent_id))
            if subject.spec.kind in kinds and links:
                told = {"agent": subject.spec.name, "kind": subject.spec.kind}
                told |= {"truth": subject.spec.truth, "visited": links}
                name = re.sub(r"\W+", "_", f"{subject.spec.truth} {subject.spec.name}".lower())
                text = json.dumps(told, indent=1, ensure_ascii=False, sort_keys=True)
                (folder / f"{name}.json").write_text(text + "\n", "utf-8")


def _ends(connection: sqlite3.Connection, agent_id: str) -> Iterator[Mapping[str, Any]]:
    """The first and the last evaluation of an agent, as a chain of two."""
    found = connection.execute(
        "SELECT * FROM snapshots WHERE agent_id = ? ORDER BY seq", (agent_id,)
    ).fetchall()
    previous = "0x0"
    for number, link in enumerate(_first_and_last(found)):
        (row,) = connection.execute(
            "SELECT * FROM evaluations WHERE id = ?", (link["evaluation_id"],)
        )
        at_us = FIRST_US + (2 * int(agent_id) + number) * 3_600_000_000
        snapshot = dict(link) | {"previous_hash": previous, "taken_us": at_us}
        snapshot |= {"encrypted_data_uri": None}
        del snapshot["seq"]
        evaluation = {n: _told(n, value) for n, value in dict(row).items()}
        yield {"evaluation": evaluation | {"evaluated_us": at_us}, "snapshot": snapshot}
        previous = link["snapshot_hash"]


def _first_and_last(rows: Sequence[sqlite3.Row]) -> Sequence[sqlite3.Row]:
    return [*rows[:1], *rows[1:][-1:]]


def _told(name: str, value: Any) -> Any:  # noqa: ANN401 - whatever a column holds
    return json.loads(value) if name in JSON_COLUMNS and value is not None else value


if __name__ == "__main__":
    asyncio.run(record(RECORDED / "short", SHORT, SHORT_DAYS))
    asyncio.run(record(RECORDED / "long", LONG, LONG_DAYS))
