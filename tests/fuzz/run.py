"""Fuzzes targets, one after the other, guided by coverage of our own code (atheris, libFuzzer).

python -m tests.fuzz.run SECONDS FOLDER TARGET...   so many seconds each

`FOLDER/TARGET` keeps what was found to be new, `FOLDER/TARGET.log` is libFuzzer's, and an input
that broke the target is `FOLDER/TARGET.crash-*`. The package is instrumented once, which takes
seconds; each target then has a process of its own, which libFuzzer ends.
"""

import os
import sys
from pathlib import Path

import atheris

TIMEOUT_S = 25
"""After which one input counts as a hang; generous, for machines are busy."""

MEMORY_MIB = 2048

with atheris.instrument_imports(include=["assay"]):
    from tests.fuzz.targets import TARGETS


def main(seconds: str, folder: Path, names: list[str]) -> None:
    """Fuzz each; status 0 whatever is found: the logs and the crashing inputs tell."""
    for name in names:
        child = os.fork()
        if child == 0:
            fuzz(name, seconds, folder / name)
        os.waitpid(child, 0)


def fuzz(name: str, seconds: str, folder: Path) -> None:
    """Does not return: libFuzzer ends the process."""
    target = TARGETS[name]
    log = os.open(f"{folder}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)

    def one_input(data: bytes) -> None:
        target(data)

    options = [
        sys.argv[0],
        str(folder),
        f"-max_total_time={seconds}",
        f"-max_len={target.bytes_max}",
        f"-timeout={TIMEOUT_S}",
        f"-rss_limit_mb={MEMORY_MIB}",
        f"-artifact_prefix={folder}.",
        "-print_final_stats=1",
        "-verbosity=0",
    ]
    atheris.Setup(options, one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
