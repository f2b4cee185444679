"""Stock linters of deployment files, from wheels pinned by hash; installed once a checkout.

They are not in the environment of the tests, for they pin libraries that it has at other versions.
"""

import fcntl
import hashlib
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

TOOLS = Path(__file__).parents[2] / ".tools" / "linters"
LOCK = Path(__file__).with_name("linters.txt")
INSTALL_S = 300


@cache
def _installed() -> Path:
    folder = TOOLS / hashlib.sha256(LOCK.read_bytes()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)  # of several test processes one installs
        if not (folder / "installed").exists():
            options = ("--only-binary", ":all:", "--require-hashes", "--requirement", str(LOCK))
            command = [sys.executable, "-m", "uv", "pip", "install", "--target", str(folder)]
            done = subprocess.run(
                [*command, *options], capture_output=True, text=True, timeout=INSTALL_S, check=False
            )
            assert done.returncode == 0, done.stderr
            (folder / "installed").touch()
    return folder


def lint(program: str, *arguments: str) -> str:
    """What a linter's own program printed; fails with that if it found something."""
    return _run(str(_installed() / "bin" / program), *arguments)


def lint_module(*arguments: str) -> str:
    """The same for `python` with these arguments, among the linters' packages."""
    return _run(sys.executable, *arguments)


def _run(*command: str) -> str:
    environment = dict(os.environ) | {"PYTHONPATH": str(_installed())}  # noqa: TID251
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=INSTALL_S, check=False, env=environment
    )
    assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr
