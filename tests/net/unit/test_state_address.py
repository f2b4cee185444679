import sys
from pathlib import Path

import pytest

from assay.app import assemble
from assay.net.valkey import StateUrlError, ValkeyWindow, state_address
from assay.settings import load


def test_a_url_says_where_and_how() -> None:
    found = state_address("valkeys://ann:p%40ss%2Fword@[::1]:7000/3")
    assert (found.host, found.port, found.db, found.tls) == ("::1", 7000, 3, True)
    assert (found.username, found.password, found.place) == ("ann", "p@ss/word", "[::1]:7000")
    plain = state_address("valkey://cache.example")
    assert (plain.host, plain.port, plain.db, plain.tls) == ("cache.example", 6379, 0, False)
    assert (plain.username, plain.password, plain.place) == (None, None, "cache.example:6379")


WRONG = [
    "redis://:hush@host:6379/0",
    "http://:hush@host",
    "hush",
    "",
    "valkey:///0",
    "valkey://:hush@:6379",
    "valkey://:hush@host:sixty",
    "valkey://:hush@host:0",
    "valkey://:hush@host:99999",
    "valkey://:hush@host/zero",
    "valkey://:hush@host/-1",
    "valkey://:hush@host/99999",
    "valkey://:hush@host/²",
    "valkey://:hush@host/0/1",
    "valkey://:hush@host/0?db=1",
    "valkey://:hush@host/0#1",
    "valkey://:hush@[::1",
    "unix:///hush",
]


@pytest.mark.parametrize("url", WRONG)
def test_any_other_url_is_refused_and_never_repeated(url: str) -> None:
    with pytest.raises(StateUrlError, match="ASSAY_STATE_URL") as refusal:
        state_address(url)
    assert "hush" not in str(refusal.value)
    assert refusal.value.__suppress_context__ or refusal.value.__context__ is None


def test_a_password_is_not_shown_with_the_place() -> None:
    assert "hush" not in repr(state_address("valkey://hush-name:hush@host"))


@pytest.mark.parametrize("url", ["redis://:hush@host", "valkey://:hush@host/x"])
async def test_a_wrong_url_stops_the_boot_before_anything_is_opened(
    url: str, tmp_path: Path
) -> None:
    settings = load(state_url=url, data_dir=tmp_path / "data", log_level="error")
    with pytest.raises(StateUrlError):
        async with assemble(settings, serving=False):
            raise AssertionError("it began")
    assert not (tmp_path / "data").exists()


def test_without_the_client_library_the_sentence_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "valkey"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "valkey", None)
    with pytest.raises(StateUrlError, match=r"pip install 'assay\[valkey\]'"):
        ValkeyWindow(state_address("valkey://host"))


def test_the_url_is_not_shown_with_the_settings() -> None:
    assert "hush" not in repr(load(state_url="valkey://:hush@host"))
