"""Stock JavaScript clients and the local chain that comes from npm; installed once a machine."""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

CLIENTS = Path(__file__).parent / "clients"
INSTALL_S = 400
RUN_S = 60


@dataclass(frozen=True)
class Answer:
    """What a client got in the end; header names in lower case."""

    status: int
    body: str
    headers: Mapping[str, str]


def needs_node(packages: Path = CLIENTS) -> Path:
    """The folder with the clients; skips the test where Node is absent, but never in CI."""
    folder = installed(packages)
    if folder is None:
        reason = "Node.js or npm is missing: the stock JavaScript clients cannot be run"
        assert not os.environ.get("CI"), reason  # noqa: TID251
        pytest.skip(reason)
    return folder


@cache
def installed(packages: Path = CLIENTS) -> Path | None:
    """The packages of a folder's `package-lock.json`, installed once; None without Node."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        return None
    lock = (packages / "package-lock.json").read_bytes()
    version = hashlib.sha256(lock).hexdigest()[:16]
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")  # noqa: TID251
    folder = home / "assay-tests" / version
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)  # of several test processes one installs
        if not (folder / "installed").exists():
            for name in ("package.json", "package-lock.json"):
                shutil.copy(packages / name, folder / name)
            options = ("--ignore-scripts", "--no-audit", "--no-fund", "--legacy-peer-deps")
            done = subprocess.run(
                ["npm", "ci", "--omit=optional", *options],
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=INSTALL_S,
                check=False,
            )
            assert done.returncode == 0, f"npm ci: {done.stdout[-2000:]}{done.stderr[-2000:]}"
            (folder / "installed").touch()
    return folder


def run(script: str, asked: Mapping[str, Any]) -> Answer:
    """One call of a stock client."""
    folder = needs_node()
    target = folder / script
    shutil.copy(CLIENTS / script, target)  # modules are looked for beside the script
    done = subprocess.run(
        ["node", str(target), json.dumps(asked)],
        capture_output=True,
        text=True,
        timeout=RUN_S,
        check=False,
    )
    assert done.returncode == 0, f"{script}: {done.stdout[-1000:]}{done.stderr[-3000:]}"
    return Answer(**json.loads(done.stdout.splitlines()[-1]))
