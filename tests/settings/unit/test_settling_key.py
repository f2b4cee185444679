"""The settling key that lies in the data directory: drawn once, and only its owner's to read."""

import re
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from assay.app.payments import key_in, settling_address
from assay.cli.unsafe_settings import findings
from assay.settings import SettingsError, load, settling_key_file

KEY = "7325fa2e5c83ad812e61eff11ea30679342a72fcdf9b6de7a604051dd6c08c9c"
GIVEN = "11" * 32


def test_a_key_is_drawn_once_and_readable_by_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "settling.key"
    first = key_in(path)
    assert re.fullmatch(r"[0-9a-f]{64}", first)
    assert key_in(path) == first
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in path.parent.iterdir()] == ["settling.key"]


def test_many_at_once_draw_one_key(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        keys = set(pool.map(key_in, [tmp_path / "settling.key"] * 64))
    assert len(keys) == 1


def test_the_settings_have_the_key_of_the_data_directory_unless_one_is_given(
    tmp_path: Path,
) -> None:
    assert load(data_dir=tmp_path).x402_private_key is None
    key_in(settling_key_file(tmp_path))
    settings = load(data_dir=tmp_path)
    assert settings.x402_private_key is not None
    drawn = settings.x402_private_key.get_secret_value()
    assert drawn == settling_key_file(tmp_path).read_text().strip()
    assert drawn not in repr(settings)
    given = load(data_dir=tmp_path, x402_private_key=GIVEN)
    assert given.x402_private_key is not None
    assert given.x402_private_key.get_secret_value() == GIVEN
    assert settling_address(given) != settling_address(settings)


@pytest.mark.parametrize(
    ("text", "mode", "said"),
    [(KEY, 0o644, "chmod 600"), ("no key", 0o600, "64 hex digits"), ("", 0o600, "64 hex digits")],
)
def test_a_key_that_others_read_or_that_is_none_stops_the_start(
    tmp_path: Path, text: str, mode: int, said: str
) -> None:
    path = settling_key_file(tmp_path)
    path.write_text(text)
    path.chmod(mode)
    with pytest.raises(SettingsError, match=said) as refused:
        load(data_dir=tmp_path)
    assert KEY not in str(refused.value)


def test_a_drawn_key_is_a_key_that_spends(tmp_path: Path) -> None:
    """`doctor` warns of open sign-up beside it, as beside one that a setting gives."""
    folder = tmp_path / "data"
    key_in(settling_key_file(folder))
    names = {finding.name for finding in findings(load(data_dir=folder))}
    assert names == {"open-sign-up"}
