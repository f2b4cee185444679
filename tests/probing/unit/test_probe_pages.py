"""Every probe is explained: what is asked, why, how to fix it, with a good and a bad answer."""

import re
from pathlib import Path

import pytest

from tests.probing.unit.test_probe_verdicts import PROBES

PAGE = (Path(__file__).parents[3] / "docs/probes.md").read_text("utf-8")
SECTIONS = dict(re.findall(r"^### (\w+)\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize("part", [r"\*Asked:\*", r"\*Why:\*", r"\*Fix:\*", "^- Good: ", "^- Bad: "])
@pytest.mark.parametrize("name", sorted(PROBES))
def test_the_page_of_a_probe_has(name: str, part: str) -> None:
    assert re.search(part + r".*\w", SECTIONS[name], re.MULTILINE)


def test_no_page_explains_a_probe_that_is_gone() -> None:
    assert {name for name in SECTIONS if "_" in name} <= set(PROBES)
