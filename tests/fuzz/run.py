"""Fuzzes one target in this process, guided by coverage of our own code (atheris, libFuzzer).

python -m tests.fuzz.run TARGET SECONDS FOLDER    FOLDER keeps what was found to be new

Ends with the status of libFuzzer: 0 when nothing was found. Crashing inputs are `FOLDER.crash-*`.
"""

import sys
from pathlib import Path

import atheris

TIMEOUT_S = 25
"""After which one input counts as a hang; generous, for machines are busy."""

MEMORY_MIB = 2048

with atheris.instrument_imports(include=["assay"]):
    from tests.fuzz.targets import TARGETS


def main(name: str, seconds: str, folder: Path) -> None:
    """Does not return: libFuzzer ends the process."""
    target = TARGETS[name]

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
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
