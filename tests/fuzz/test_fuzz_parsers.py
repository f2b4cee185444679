"""Coverage-guided fuzzing of every parser of outside bytes. `FUZZ_SECONDS` is for all of them."""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.fuzz.campaign import fuzz
from tests.fuzz.targets import TARGETS

SECONDS = int(os.environ.get("FUZZ_SECONDS", "180"))  # noqa: TID251 - of the suite, no setting
EACH_S = max(1, SECONDS // len(TARGETS))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("atheris") is None, reason="no atheris for this platform"),
]


@pytest.mark.parametrize("name", TARGETS)
def test_only_documented_exceptions_escape_a_parser(
    name: str, tmp_path: Path, record_property: pytest.RecordProperty
) -> None:
    outcome = fuzz(name, EACH_S, tmp_path)
    record_property("executions", outcome.executions)
    assert outcome.crash is None, f"{outcome.crash!r}\n{outcome.log}"
    assert outcome.executions > 0, outcome.log
