"""Coverage-guided fuzzing of every parser of outside bytes. `FUZZ_SECONDS` is for all of them."""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.fuzz.campaign import fuzz
from tests.fuzz.targets import TARGETS

SECONDS = int(os.environ.get("FUZZ_SECONDS", "180"))  # noqa: TID251 - of the suite, no setting
EACH_S = max(1, SECONDS // len(TARGETS))
PARTS = 3
"""Tests that can run beside each other; each loads the whole package once."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("atheris") is None, reason="no atheris for this platform"),
]


@pytest.mark.parametrize("part", range(PARTS))
def test_only_documented_exceptions_escape_a_parser(part: int, tmp_path: Path) -> None:
    outcomes = fuzz(list(TARGETS)[part::PARTS], EACH_S, tmp_path)
    broken = [f"{one.name}: {one.crash!r}\n{one.log}" for one in outcomes if one.crash is not None]
    assert not broken, "\n".join(broken)
    for outcome in outcomes:
        print(f"{outcome.name}: {outcome.executions} executions")  # noqa: T201 - a figure to report
        assert outcome.executions > 0, outcome.log
