"""Commands of `assay`, each in a process of its own that need not import everything first.

A process that has imported what commands need is forked for each of them: that takes a tenth of the
processor time of a new interpreter. Environment, folder, arguments, standard streams and exit are
those of a new process.
"""

import atexit
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 120
"""A command that takes longer is ended by SIGALRM."""

IMPORTED = (
    "assay.__main__",
    "assay.cli.account_security",
    "assay.cli.accounts",
    "assay.cli.doctor",
    "assay.cli.evidence",
    "assay.cli.serve",
    "assay.web.app",
    "assay.web.protocol",
)


def command(
    *arguments: str, environment: Mapping[str, str], stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run `assay` with these arguments, and nothing in its environment but `environment`."""
    with tempfile.TemporaryDirectory(prefix="assay-command-") as folder:
        streams = [Path(folder) / name for name in ("in", "out", "err")]
        streams[0].write_text(stdin, "utf-8")
        asked = {
            "arguments": arguments,
            "environment": dict(environment),
            "streams": [str(path) for path in streams],
        }
        status = _forker().ask(asked)
        out, err = (path.read_text("utf-8") for path in streams[1:])
    return subprocess.CompletedProcess(["assay", *arguments], status, out, err)


class _Forker:
    """The process that is forked, as its owner sees it."""

    def __init__(self) -> None:
        plain = {k: v for k, v in os.environ.items() if not k.startswith("ASSAY_")}  # noqa: TID251
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.services.commands"],
            cwd=ROOT,
            env=plain | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        atexit.register(self.end)

    def ask(self, asked: Mapping[str, Any]) -> int:
        """The exit status of a command, negative for a signal."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def end(self) -> None:
        self._process.communicate()


@cache
def _forker() -> _Forker:
    return _Forker()


def _serve() -> None:
    for module in IMPORTED:
        import_module(module)
    while line := sys.stdin.readline():
        pid = os.fork()
        if pid == 0:
            _become(json.loads(line))
            return
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)  # noqa: T201


def _become(asked: Mapping[str, Any]) -> None:
    """Be the command; this process ends with it, as an interpreter does."""
    signal.alarm(TIMEOUT_S)
    random.seed()
    os.environ.clear()  # noqa: TID251
    os.environ.update(asked["environment"])  # noqa: TID251
    flags = (os.O_RDONLY, *[os.O_WRONLY | os.O_CREAT] * 2)
    for number, (path, flag) in enumerate(zip(asked["streams"], flags, strict=True)):
        opened = os.open(path, flag, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.argv = ["assay", *asked["arguments"]]
    import_module("assay.__main__").main()


if __name__ == "__main__":
    _serve()
