"""Commands of `assay`, each in a process of its own."""

import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.support.forked import SERVICE, start

TIMEOUT_S = 120


def command(
    *arguments: str,
    environment: Mapping[str, str],
    stdin: str = "",
    files: tuple[int, int] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run `assay` with these arguments, and nothing in its environment but `environment`.

    `files` is how many files it may have open: the soft limit and the hard one.
    """
    with tempfile.TemporaryDirectory(prefix="assay-command-") as folder:
        read, out, err = (Path(folder) / name for name in ("in", "out", "err"))
        read.write_text(stdin, "utf-8")
        with read.open() as given, out.open("w") as said, err.open("w") as complained:
            process = start(
                "assay.__main__",
                *arguments,
                imported=SERVICE,
                environment=environment,
                streams=(given.fileno(), said.fileno(), complained.fileno()),
                files=files,
            )
            try:
                status = process.wait(TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                status = process.wait()
        texts = [path.read_text("utf-8") for path in (out, err)]
    return subprocess.CompletedProcess(["assay", *arguments], status, *texts)
