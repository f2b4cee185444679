import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from assay.common.plugins import PluginError, load_plugins

PLUGIN = "class P:\n    name = {name!r}\nPLUGIN = P()\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    package = tmp_path / "someplugins"
    package.mkdir()
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    yield package
    for name in [n for n in sys.modules if n.split(".")[0] == "someplugins"]:
        del sys.modules[name]


def package() -> ModuleType:
    import someplugins  # noqa: PLC0415

    return someplugins


def test_every_file_is_found_and_known_by_its_plugins_name(folder: Path) -> None:
    (folder / "one.py").write_text(PLUGIN.format(name="zebra"))
    (folder / "two.py").write_text(PLUGIN.format(name="ant"))
    assert list(load_plugins(package(), "PLUGIN", object)) == ["ant", "zebra"]


def test_a_file_without_its_plugin_stops_the_boot(folder: Path) -> None:
    (folder / "one.py").write_text("")
    with pytest.raises(PluginError, match="offers no PLUGIN"):
        load_plugins(package(), "PLUGIN", object)


def test_two_plugins_of_one_name_stop_the_boot(folder: Path) -> None:
    (folder / "one.py").write_text(PLUGIN.format(name="same"))
    (folder / "two.py").write_text(PLUGIN.format(name="same"))
    with pytest.raises(PluginError, match="same"):
        load_plugins(package(), "PLUGIN", object)
