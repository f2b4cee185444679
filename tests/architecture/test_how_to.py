"""`docs/dev/how-to.md` ends each section with commits and tests: all of them are there."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.architecture.test_threat_model import NODE_ID, names_in

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/dev/how-to.md").read_text("utf-8")
SECTIONS = dict(re.findall(r"(?ms)^## (Add [^\n]+)\n(.*?)(?=^## |\Z)", PAGE))
COMMIT = re.compile(r"(?m)^Done in `([0-9a-f]{8,40})` (.+)$")


def git(*arguments: str) -> str:
    """What git says; nothing where it fails or is not there."""
    command = ["git", "-C", str(ROOT), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def test_there_is_a_section_for_each_thing_that_is_added() -> None:
    assert list(SECTIONS) == [
        "Add a signal",
        "Add a probe",
        "Add a network",
        "Add a payment protocol",
        "Add an operation",
        "Add a field of wrappers",
    ]


@pytest.mark.parametrize("section", SECTIONS)
def test_every_section_names_a_commit_and_tests_that_exist(section: str) -> None:
    assert COMMIT.search(SECTIONS[section])
    tests = NODE_ID.findall(SECTIONS[section].rpartition("\nTests: ")[2])
    assert len(tests) >= 3
    assert [one for one in tests if one[1] not in names_in(one[0])] == []


@pytest.mark.parametrize(("commit", "subject"), COMMIT.findall(PAGE))
def test_every_commit_that_is_named_is_in_the_history(commit: str, subject: str) -> None:
    if git("rev-parse", "--is-shallow-repository") != "false":
        pytest.skip("there is no whole history here")
    assert git("log", "-1", "--format=%s", commit) == subject
