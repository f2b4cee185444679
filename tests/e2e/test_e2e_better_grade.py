"""The page "How to get a better grade": its commands are run, and lift the flaky agent."""

import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import command
from tests.support.forked import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

PAGE = (ROOT / "docs" / "better-grade.md").read_text("utf-8")
LINES = [
    line.strip()
    for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    for line in block.splitlines()
]


def free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as door:
        return str(door.getsockname()[1])


@contextmanager
def started(line: str) -> Iterator[None]:
    """A command of the page that ends with `&`."""
    words = line.removesuffix("&").split()
    assert words[0] == "python"
    process = subprocess.Popen([sys.executable, *words[1:]], stdout=subprocess.PIPE, cwd=ROOT)
    try:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["url"]
        yield
    finally:
        process.kill()
        process.communicate()


def checked(line: str, tmp_path: Path) -> dict[str, Any]:
    words = line.split()
    assert words[:2] == ["assay", "check"]
    environment = {"ASSAY_DATA_DIR": str(tmp_path), "HOME": str(tmp_path)}
    done = command(*words[1:], "--format", "json", environment=environment)
    assert done.returncode in {0, 1}, done.stderr
    return json.loads(done.stdout)


def test_the_steps_of_the_page_lift_the_flaky_agent(tmp_path: Path) -> None:
    port = free_port()
    lines = [line.replace("8931", port) for line in LINES]
    starts = [line for line in lines if line.endswith("&")]
    checks = [line for line in lines if line.startswith("assay check")]
    assert len(starts) == len(checks) == 2
    assert len(starts) + len(checks) + lines.count("kill %1") == len(lines)
    found = []
    for start, check in zip(starts, checks, strict=True):
        with started(start):
            found.append(checked(check, tmp_path))
    slugs = [{one["slug"] for one in report["improve"]} for report in found]
    assert slugs[1] <= {"control"}, found[1]["improve"]
    assert any(one["points"] > 0 for one in found[0]["improve"] if one["slug"] != "control")
    # Which of the flaky agent's requests fail is chance, and so is which check that shows in.
    assert {one["outcome"] for one in found[0]["checks"]} > {"pass"}
    assert {one["outcome"] for one in found[1]["checks"]} == {"pass"}
    assert (found[0]["rung"], found[0]["rungName"], found[0]["ceiling"]) == (0, "unproven", 64)
    assert found[1]["scoreBeforeCeiling"] > found[0]["scoreBeforeCeiling"]
    assert found[1]["score"] >= found[0]["score"]


def test_a_target_that_is_not_there_is_status_2(tmp_path: Path) -> None:
    environment = {"ASSAY_DATA_DIR": str(tmp_path), "HOME": str(tmp_path)}
    done = command("check", str(tmp_path / "none.json"), environment=environment)
    assert done.returncode == 2
    assert "there is no file" in done.stderr
