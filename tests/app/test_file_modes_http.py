"""What is kept on disk is for its owner alone, whoever made the data directory."""

import os
from pathlib import Path

import pytest

from tests.support.live_service import start_test_service


@pytest.mark.parametrize("umask", [0o000, 0o022])
@pytest.mark.parametrize("made_by", ["us", "others"])
async def test_files_of_the_data_directory_are_for_their_owner_alone(
    tmp_path: Path, umask: int, made_by: str
) -> None:
    folder, before = tmp_path / "data", os.umask(umask)
    try:
        if made_by == "others":
            (folder / "blocks").mkdir(parents=True)
            folder.chmod(0o755)
        async with start_test_service(folder) as service:
            headers = await service.operator() | await service.session()
            assert (await service.gate(headers)).status_code == 200
            made = list(folder.rglob("*"))
            assert {"assay.db", "assay.db-wal", "secrets.json", "blocks"} <= {
                one.name for one in made
            }
            assert any(one.parent.name == "blocks" for one in made)
            for one in made:
                mode = one.stat().st_mode & 0o777
                assert mode == (0o700 if one.is_dir() else 0o600), one.name
        if made_by == "us":
            assert folder.stat().st_mode & 0o777 == 0o700
    finally:
        os.umask(before)
