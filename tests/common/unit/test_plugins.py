import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from assay.common.plugins import PluginError, load_plugins, values_of

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


@dataclass
class Value:
    name: str


def module(**values: object) -> ModuleType:
    made = ModuleType("a_module")
    vars(made).update(values)
    return made


def test_every_value_of_a_list_of_modules_is_found_by_its_name() -> None:
    one, two = module(a=Value("zebra"), other=1), module(b=Value("bee"), c=Value("ant"))
    assert list(values_of((one, two), Value)) == ["ant", "bee", "zebra"]


def test_a_listed_module_without_a_value_stops_the_boot() -> None:
    with pytest.raises(PluginError, match="a_module defines no Value"):
        values_of((module(a=1),), Value)


def test_two_values_of_one_name_stop_the_boot() -> None:
    with pytest.raises(PluginError, match="same"):
        values_of((module(a=Value("same")), module(b=Value("same"))), Value)


def test_a_value_without_a_name_stops_the_boot() -> None:
    with pytest.raises(PluginError, match="without a name"):
        values_of((module(a=1),), int)
