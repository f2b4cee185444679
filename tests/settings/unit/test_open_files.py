"""The caps of connections follow what the system has room for."""

from pathlib import Path

import pytest

from assay.cli.unsafe_connections import (
    CONNECTIONS_MIN,
    FILES_PER_CONNECTION,
    RESERVED,
    fitting,
    needed,
)
from assay.settings import load


@pytest.mark.parametrize("files", [0, 256, 600, 1024, 2048, 4575])
def test_too_few_files_lower_every_cap_in_proportion(tmp_path: Path, files: int) -> None:
    asked = load(data_dir=tmp_path)
    found = fitting(asked, files)
    total = found.connections_max
    assert CONNECTIONS_MIN <= total < asked.connections_max
    if total > CONNECTIONS_MIN:
        assert total * FILES_PER_CONNECTION + RESERVED <= files
    assert found.connections_per_address == 512 * total // 2000
    assert found.connections_per_network == 1024 * total // 2000


def test_enough_files_change_nothing(tmp_path: Path) -> None:
    asked = load(data_dir=tmp_path)
    assert fitting(asked, needed(asked)) is asked
    assert fitting(asked, needed(asked) - 1).connections_max == asked.connections_max - 1
