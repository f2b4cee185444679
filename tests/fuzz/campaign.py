"""Fuzzes one target in a process of its own, from the corpus that is kept."""

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
    """What came of it; `crash` is the input that broke the target, with the end of its log."""

    name: str
    executions: int
    found: Sequence[bytes]
    crash: bytes | None
    log: str


def fuzz(name: str, seconds: int, folder: Path) -> Outcome:
    """Fuzz for so many seconds; `folder` is where the inputs are kept between runs."""
    inputs = folder / name
    inputs.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate([*load(CORPUS, name), *load(CRASHES, name)]):
        (inputs / f"kept-{number}").write_bytes(data)
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.run", name, str(seconds), str(inputs)],
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'src'}", "PATH": "", "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    log = done.stdout + done.stderr
    counted = re.findall(r"number_of_executed_units:\s*(\d+)", log)
    crashes = sorted(folder.glob(f"{name}.*"))
    crash = crashes[0].read_bytes() if crashes else None
    if done.returncode and crash is None:
        crash = b""
    found = [file.read_bytes() for file in inputs.iterdir()]
    return Outcome(name, int(counted[-1]) if counted else 0, found, crash, log[-4000:])
