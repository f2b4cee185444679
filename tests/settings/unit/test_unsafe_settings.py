"""What `assay doctor` calls unsafe, spelling by spelling; the command is tested end to end."""

import json
import secrets
import string
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from assay.cli.unsafe_connections import read_note
from assay.cli.unsafe_settings import findings
from assay.settings import load

KEY = "7325fa2e5c83ad812e61eff11ea30679342a72fcdf9b6de7a604051dd6c08c9c"
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
SAFE: dict[str, object] = {
    "public_url": "https://assay.example.com",
    "trusted_proxies": "127.0.0.1,::1",
}


def found(folder: Path, **values: object) -> dict[str, str]:
    settings = load(**{**SAFE, "data_dir": folder / "data", **values})
    return {finding.name: finding.what for finding in findings(settings)}


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "::ffff:0.0.0.0", "8.8.8.8", "h.example", "0", ""]
)
def test_open_binds(tmp_path: Path, host: str) -> None:
    assert list(found(tmp_path, host=host)) == ["open-bind"]


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "10.0.3.7", "fd00::7"])
def test_binds_that_are_not_open(tmp_path: Path, host: str) -> None:
    assert found(tmp_path, host=host) == {}


@pytest.mark.parametrize(
    "network", ["0.0.0.0/0", "::/0", "0.0.0.0/1", "10.0.0.0/8", "2000::/3", "::ffff:0:0/96"]
)
def test_wide_networks_of_proxies(tmp_path: Path, network: str) -> None:
    assert network in found(tmp_path, trusted_proxies=f"127.0.0.1,{network}")["trusted-proxies"]


@pytest.mark.parametrize("network", ["10.0.3.0/24", "172.16.0.0/12", "2001:db8::/32", "::1"])
def test_narrow_networks_of_proxies(tmp_path: Path, network: str) -> None:
    assert found(tmp_path, trusted_proxies=network, host="10.0.3.7") == {}


def test_networks_of_proxies_are_judged_together(tmp_path: Path) -> None:
    """Each is narrow enough by itself, and one named twice counts once."""
    networks = [f"{first}.0.0.0/12" for first in range(11, 16)]
    assert found(tmp_path, trusted_proxies=",".join(["127.0.0.1", *networks[:4]])) == {}
    assert found(tmp_path, trusted_proxies=",".join(["127.0.0.1", *networks[:4], *networks])) == {
        "trusted-proxies": "ASSAY_TRUSTED_PROXIES holds 5242880 IPv4 addresses in all"
    }


def test_a_key_beside_a_facilitator_pays_for_nothing(tmp_path: Path) -> None:
    key: dict[str, object] = {"x402_private_key": KEY, "sign_up": "open"}
    assert list(found(tmp_path, **key)) == ["open-sign-up"]
    assert found(tmp_path, **key, x402_facilitator_url="https://pay.example") == {}


def test_a_key_that_buys_of_sellers_spends(tmp_path: Path) -> None:
    key: dict[str, object] = {"paid_calls_key": KEY, "sign_up": "open"}
    assert found(tmp_path, **key) == {}
    assert found(tmp_path, **key, paid_calls_usd_per_day=5) == {
        "open-sign-up": "ASSAY_SIGN_UP is open, and ASSAY_PAID_CALLS_KEY is set"
    }


def test_a_user_before_the_host_is_found_and_not_shown(tmp_path: Path) -> None:
    told = found(tmp_path, public_url="https://admin:hidden@assay.example.com")
    assert list(told) == ["published-url"]
    assert "hidden" not in told["published-url"]


@pytest.mark.parametrize("url", ["http://127.0.0.1:8787", "http://localhost", "http://[::1]:80"])
def test_a_developers_public_url_is_safe(tmp_path: Path, url: str) -> None:
    assert found(tmp_path, public_url=url, trusted_proxies="") == {}


def test_the_defaults_are_safe(tmp_path: Path) -> None:
    assert found(tmp_path, public_url=None, trusted_proxies="") == {}


@pytest.mark.parametrize(
    "secret",
    [
        "a" * 64,
        "changemechangemechangemechangeme",
        "0123456789abcdefghijklmnopqrstuv",
        "zyxwvutsrqponmlkjihgfedcba987654",
        "My-Super-SECRET-token-for-production",
        "abababababababababababababababab!",
        "0000000000000000000000000000000000000001",
        "qwertyuiopasdfgh" * 3,
    ],
)
@pytest.mark.parametrize("name", ["session_secret", "upstream_secrets"])
def test_weak_secrets(tmp_path: Path, name: str, secret: str) -> None:
    told = found(tmp_path, **{name: secret})
    assert list(told) == ["weak-secret"]
    assert secret not in told["weak-secret"]


def test_drawn_secrets_are_not_called_weak(tmp_path: Path) -> None:
    letters = string.ascii_letters + string.digits
    for _ in range(300):
        drawn = [secrets.token_hex(16), secrets.token_urlsafe(24)]
        drawn += ["".join(secrets.choice(letters) for _ in range(32)), secrets.token_hex(32)]
        names = ("jwt_secret", "session_secret", "snapshot_secret", "signing_secret")
        assert found(tmp_path, **dict(zip(names, drawn, strict=True))) == {}, drawn


def test_a_ring_that_holds_one_secret_twice(tmp_path: Path) -> None:
    drawn = secrets.token_hex(32)
    told = found(tmp_path, upstream_secrets=f"{drawn},{drawn}")
    assert list(told) == ["equal-secrets"]


@pytest.mark.parametrize(
    ("mode", "names"), [("open", ["open-sign-up"]), ("invite", []), ("closed", [])]
)
def test_sign_up_modes_with_a_key_that_spends(tmp_path: Path, mode: str, names: list[str]) -> None:
    given = {**SAFE, "data_dir": tmp_path, "x402_private_key": KEY}
    settings = load(**given).model_copy(update={"sign_up": mode})
    tmp_path.chmod(0o700)
    assert [finding.name for finding in findings(settings)] == names


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:p@db.example/assay",
        "postgresql://u:p@db.example/assay?sslmode=require",
        "postgresql://u:p@db.example/assay?sslmode=prefer",
        "postgresql://u:p@localhost,db.example:5432/assay",
        "postgresql://u:p@[2001:db8::1]:5432/assay",
        "postgresql://localhost/assay?host=db.example",
    ],
)
def test_databases_elsewhere(tmp_path: Path, url: str) -> None:
    assert list(found(tmp_path, database_url=url)) == ["database-plain"]


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:p@db.example/assay?sslmode=verify-full",
        "postgresql://u:p@db.example/assay?sslmode=verify-ca",
        "postgresql://u:p@127.0.0.1:5433/assay",
        "postgresql://u:p@[::1]:5433/assay",
        "postgresql:///assay?host=/var/run/postgresql",
        "sqlite:////var/lib/assay/assay.db",
        "postgresql://[broken/assay",
    ],
)
def test_databases_that_are_safe_or_refused_by_the_start(tmp_path: Path, url: str) -> None:
    assert found(tmp_path, database_url=url) == {}


@pytest.mark.parametrize(
    ("url", "lacks"),
    [
        ("valkey://:p@cache.example", "without TLS"),
        ("valkeys://cache.example", "without a password"),
        ("valkey://cache.example", "without TLS and without a password"),
        ("valkey://10.0.0.5", "without TLS and without a password"),
    ],
)
def test_valkeys_elsewhere(tmp_path: Path, url: str, lacks: str) -> None:
    assert found(tmp_path, state_url=url)["state-plain"].endswith(lacks)


@pytest.mark.parametrize(
    "url", ["valkeys://:p@cache.example", "valkey://127.0.0.1", "valkey://[::1]"]
)
def test_valkeys_that_are_safe(tmp_path: Path, url: str) -> None:
    assert found(tmp_path, state_url=url) == {}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("chains", {"base": {"rpc_urls": ["https://a.example", "http://n.example/hidden"]}}),
        ("payment_rpc", {"eip155:8453": ["http://user:hidden@n.example"]}),
        ("solana_rpc_url", "http://n.example/hidden"),
        ("solana_indexer_url", "http://n.example/?key=hidden"),
        ("x402_facilitator_url", "http://n.example/hidden"),
        ("ipfs_gateway", "http://n.example/hidden"),
    ],
)
def test_services_asked_in_clear_text(tmp_path: Path, name: str, value: object) -> None:
    told = found(tmp_path, **{name: value})
    assert list(told) == ["plain-http-service"]
    assert told["plain-http-service"] == f"ASSAY_{name.upper()} names http://n.example"


def test_the_world_id_api_is_asked_only_where_it_verifies(tmp_path: Path) -> None:
    api: dict[str, object] = {"world_id_api": "http://n.example/hidden", "world_id_app": "app_1"}
    assert found(tmp_path, **api, world_id_verifier="router") == {}
    told = found(tmp_path, **api, world_id_verifier="cloud")
    assert told == {"plain-http-service": "ASSAY_WORLD_ID_API names http://n.example"}


def test_rows_of_chains_that_the_start_refuses_are_no_concern(tmp_path: Path) -> None:
    for rows in (7, "http://a.example", [7, None], None):
        assert found(tmp_path, chains={"base": {"rpc_urls": rows}}) == {}


@pytest.mark.parametrize(
    "address",
    [
        "0x" + "0" * 40,
        "0x000000000000000000000000000000000000dEaD",
        "0x0000000000000000000000000000000000000004",
        "0x" + "f" * 40,
    ],
)
def test_wallets_nobody_owns(tmp_path: Path, address: str) -> None:
    assert list(found(tmp_path, payout_address=address)) == ["payout-address"]


@pytest.mark.parametrize(
    ("name", "safe", "unsafe"),
    [
        ("anonymous_per_minute", 60_000, 60_001),
        ("wrapper_per_minute", 60_000, 60_001),
        ("sandbox_per_minute", 600, 601),
        ("sandbox_per_agent_minute", 600, 601),
        ("body_bytes_max", 2**26, 2**26 + 1),
        ("accounts_per_network", 10_000, 10_001),
    ],
)
def test_limits_that_limit_nobody(tmp_path: Path, name: str, safe: int, unsafe: int) -> None:
    assert found(tmp_path, **{name: safe}) == {}
    assert list(found(tmp_path, **{name: unsafe})) == ["limits-lifted"]


@pytest.mark.parametrize("mode", [0o757, 0o730, 0o707, 0o770])
def test_modes_of_the_data_directory(tmp_path: Path, mode: int) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data").chmod(mode)
    assert f"{mode:04o}" in found(tmp_path)["data-directory"]


def note(at: object, **changed: object) -> str:
    return json.dumps({"address": "203.0.113.7", "held": 1300, "of": 2000, "at": at, **changed})


@pytest.mark.parametrize("at", ["2026-11-22T10:00:00Z", "2026-11-21T12:00:00.000Z"])
def test_a_fresh_note_of_connections_is_told(tmp_path: Path, at: str) -> None:
    (tmp_path / "connections.json").write_text(note(at), "utf-8")
    told = read_note(tmp_path, NOW)
    assert told == f"203.0.113.7 held 1300 of 2000 connections at {at}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        "\xff",
        "[" * 3000,
        note("now"),
        note(None),
        note("2026-11-22T10:00:00"),
        note("0001-01-01T00:00:00+23:00"),
        note(f"{NOW - timedelta(hours=25):%Y-%m-%dT%H:%M:%SZ}"),
        note(f"{NOW + timedelta(hours=25):%Y-%m-%dT%H:%M:%SZ}"),
        note("2026-11-22T10:00:00Z", address=5),
        note("2026-11-22T10:00:00Z", held="1300"),
        note("2026-11-22T10:00:00Z", of=None),
        note("2026-11-22T10:00:00Z", pad="x" * 5000),
    ],
)
def test_an_old_or_malformed_note_of_connections_is_not(tmp_path: Path, text: str) -> None:
    (tmp_path / "connections.json").write_text(text, "latin-1")
    assert read_note(tmp_path, NOW) is None


def test_without_a_note_of_connections_nothing_is_told(tmp_path: Path) -> None:
    assert read_note(tmp_path, NOW) is None
