"""The hash that shows whether processes run with the same settings."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from assay.app.heartbeat import config_hash
from assay.settings import load

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECRET = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def hashed(tmp_path: Path) -> Callable[..., str]:
    return lambda **settings: config_hash(load(**{"data_dir": tmp_path, **settings}), NOW)


def test_the_same_settings_have_the_same_hash_wherever_they_listen(
    hashed: Callable[..., str],
) -> None:
    places = {"port": 9, "host": "127.0.0.2", "ops_bind": "9464", "workers": 3}
    assert hashed() == hashed() == hashed(**places)
    assert len(hashed()) == 12


@pytest.mark.parametrize(
    "other",
    [
        {"keep_alive_s": 99},
        {"jwt_secret": SECRET},
        {"database_url": "postgresql://a:one@127.0.0.1/a"},
        {"chains": {"base": {"rpc_urls": ["https://node.example"]}}},
        {"trusted_proxies": "127.0.0.1"},
    ],
)
def test_another_setting_or_secret_has_another_hash(
    hashed: Callable[..., str], other: dict[str, object]
) -> None:
    assert hashed() != hashed(**other)


def test_a_password_alone_makes_another_hash_and_other_secrets_another_key(
    hashed: Callable[..., str], tmp_path: Path
) -> None:
    urls = [f"postgresql://a:{word}@127.0.0.1/a" for word in ("one", "two")]
    assert hashed(database_url=urls[0]) != hashed(database_url=urls[1])
    assert hashed() != hashed(data_dir=tmp_path / "other")  # it has secrets of its own
