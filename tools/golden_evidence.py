"""Recorded evaluations, recomputed from their evidence by the commands that operators use."""

import contextlib
import io
import json
import os
import sqlite3
import tempfile
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any

from cyclopts import App

Visited = Mapping[str, Mapping[str, Any]]
Migrate = Callable[[Path], object]


def verdicts(recorded: Path, commands: App, migrate: Migrate) -> Mapping[str, Any]:
    """What the evaluations of each recording are recomputed to, and what does not hold.

    `migrate` puts a new database at a path.
    """
    folders = (folder for folder in recorded.iterdir() if folder.is_dir())
    return {folder.name: _recomputed(folder, commands, migrate) for folder in folders}


def _recomputed(recorded: Path, commands: App, migrate: Migrate) -> Mapping[str, Any]:
    """Every agent's first evaluation is put into a new database and replayed, then its last one.

    Of all of them the hashes are recomputed, of record and evidence, byte for byte.
    """
    agents = {path.stem: json.loads(path.read_text("utf-8")) for path in recorded.glob("*.json")}
    found: dict[str, dict[str, Any]] = {name: {} for name in agents}
    with tempfile.TemporaryDirectory() as data, only_data_in(data):
        migrate(path := Path(data) / "assay.db")
        for place, when in ((0, "first"), (-1, "last")):
            for agent in agents.values():
                if place == 0 or len(agent["visited"]) > 1:
                    _put(path, agent["visited"][place])
            scored = {
                row["subject"]: row
                for row in json.loads(_said(commands, "replay", "--all", "--json"))
            }
            for name, agent in agents.items():
                found[name][when] = _verdict(agent["visited"][place], scored)
        said = _said(commands, "snapshots", "verify")
    return {"agents": found, "verified": said.splitlines()}


def _verdict(one: Visited, scored: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    snapshot = one["snapshot"]
    row = scored[snapshot["subject_key"]]
    return {
        "subject": row["subject"],
        "score": row["newScore"],
        "rung": row["newRung"],
        "tier": row["newTier"],
        "snapshotHash": snapshot["snapshot_hash"],
        "evidenceHash": snapshot["evidence_hash"],
    }


@contextlib.contextmanager
def only_data_in(folder: str) -> Generator[None]:
    """Every setting is the default one, but for where data lies."""
    kept = {n: os.environ.pop(n) for n in [*os.environ] if n.startswith("ASSAY_")}  # noqa: TID251
    os.environ["ASSAY_DATA_DIR"] = folder  # noqa: TID251 - what an operator would do
    try:
        yield
    finally:
        del os.environ["ASSAY_DATA_DIR"]  # noqa: TID251
        os.environ |= kept  # noqa: TID251


def _put(path: Path, one: Visited) -> None:
    """The rows as they were; what was written down as JSON is text again."""
    connection = sqlite3.connect(path)
    with connection:
        for table, row in (("evaluations", one["evaluation"]), ("snapshots", one["snapshot"])):
            names = ", ".join(row)
            values = [json.dumps(v) if isinstance(v, list | dict) else v for v in row.values()]
            marks = ", ".join("?" * len(values))
            connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", values)  # noqa: S608 - our own names
    connection.close()


def _said(commands: App, *words: str) -> str:
    """What a command prints, and what it complains of."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        commands(words)
    return out.getvalue()
