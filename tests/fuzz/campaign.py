"""Fuzzes targets in a process of their own, from the corpus that is kept."""

import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.corpus import CORPUS, CRASHES, load

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one target; `crash` is the input that broke it, with the end of its log."""

    name: str
    executions: int
    found: Sequence[bytes]
    crash: bytes | None
    log: str


def fuzz(names: Sequence[str], seconds: int, folder: Path) -> list[Outcome]:
    """Fuzz each for so many seconds; `folder` is where the inputs are kept between runs."""
    for name in names:
        (folder / name).mkdir(parents=True, exist_ok=True)
        for number, data in enumerate([*load(CORPUS, name), *load(CRASHES, name)]):
            (folder / name / f"kept-{number}").write_bytes(data)
    subprocess.run(
        [sys.executable, "-m", "tests.fuzz.run", str(seconds), str(folder), *names],
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'src'}", "PYTHONHASHSEED": "0"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,  # a line for each module that is instrumented
        check=True,
    )
    return [_outcome(name, folder) for name in names]


def _outcome(name: str, folder: Path) -> Outcome:
    log = (folder / f"{name}.log").read_text("utf-8", "replace")
    counted = re.findall(r"number_of_executed_units:\s*(\d+)", log)
    crashes = [file for file in folder.glob(f"{name}.*") if file.suffix != ".log"]
    found = [file.read_bytes() for file in (folder / name).iterdir()]
    crash = crashes[0].read_bytes() if crashes else None
    if crash is None and not counted:  # it ended without a word, and without an input to show
        crash = b""
    return Outcome(name, int(counted[-1]) if counted else 0, found, crash, log[-4000:])
