from pathlib import Path

import pytest

from assay.app.payments import payment_rows
from assay.settings import SettingsError, load


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    import os  # noqa: PLC0415

    for name in [n for n in os.environ if n.startswith("ASSAY_")]:  # noqa: TID251
        monkeypatch.delenv(name)


def test_everything_has_a_default() -> None:
    settings = load()
    assert settings.address == "http://127.0.0.1:8787"
    assert settings.default_chain == "ethereum"
    assert settings.database.startswith("sqlite:////")
    assert settings.allow_private_upstreams is False


def test_confirmations_are_named_by_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_CONFIRMATIONS", "eip155:8453=2, tempo:4217=1,")
    settings = load()
    assert settings.confirmations == {"eip155:8453": 2, "tempo:4217": 1}
    networks = payment_rows(settings)
    assert networks["eip155:8453"].confirmations == 2
    assert networks["eip155:84532"].confirmations == 1
    with pytest.raises(ValueError, match=r"ASSAY_CONFIRMATIONS.*no payment network is called"):
        payment_rows(load(confirmations={"eip155:1": 2}))


def test_an_unknown_setting_stops_the_boot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_PROT", "80")
    with pytest.raises(SettingsError, match="ASSAY_PROT"):
        load()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ASSAY_PORT", "70000"),
        ("ASSAY_PORT", "http"),
        ("ASSAY_PUBLIC_URL", "ftp://x"),
        ("ASSAY_TRUSTED_PROXIES", "10.0.0.0/99"),
        ("ASSAY_OPEN_ENDPOINTS", "gate"),
        ("ASSAY_IDENTITY_PROOF", "maybe"),
        ("ASSAY_CHAINS", "{"),
        ("ASSAY_GATE_EVALUATION_S", "0"),
        ("ASSAY_FEE_RATE", "1.5"),
        ("ASSAY_CONFIRMATIONS", "eip155:8453=0"),
        ("ASSAY_CONFIRMATIONS", "eip155:8453"),
        ("ASSAY_CONFIRMATIONS", "eip155:8453=1.5"),
    ],
)
def test_a_value_that_does_not_hold_stops_the_boot_and_is_named(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=name):
        load()


def test_a_short_secret_is_refused_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_JWT_SECRET", "hush-hush")
    with pytest.raises(SettingsError, match="at least 32") as refusal:
        load()
    assert "hush-hush" not in str(refusal.value)


def test_secrets_do_not_print(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_SESSION_SECRET", "s" * 40)
    monkeypatch.setenv("ASSAY_DATABASE_URL", "postgresql://u:hush@h/d")
    settings = load()
    assert "ssss" not in repr(settings)
    assert "hush" not in repr(settings)


def test_lists_are_comma_separated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_TRUSTED_PROXIES", "10.0.0.0/8, 192.168.1.1/32")
    assert load().trusted_proxies == ("10.0.0.0/8", "192.168.1.1/32")


def test_the_file_counts_and_the_environment_wins(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "assay.toml"
    file.write_text('port = 9001\nhost = "0.0.0.0"\n[chains.x]\nchain_id = 5\n')
    monkeypatch.setenv("ASSAY_CONFIG", str(file))
    monkeypatch.setenv("ASSAY_HOST", "127.0.0.2")
    settings = load()
    assert (settings.port, settings.host) == (9001, "127.0.0.2")
    assert settings.chains == {"x": {"chain_id": 5}}


@pytest.mark.parametrize("text", ["port = ", "prot = 1\n"])
def test_a_file_that_does_not_hold_stops_the_boot(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str
) -> None:
    file = tmp_path / "assay.toml"
    file.write_text(text)
    monkeypatch.setenv("ASSAY_CONFIG", str(file))
    with pytest.raises(SettingsError):
        load()


def test_a_wrong_value_is_told_of_and_no_other_setting() -> None:
    with pytest.raises(SettingsError) as refusal:
        load(port="x", fee_rate="y")
    assert [line.partition(":")[0] for line in str(refusal.value).split("; ")] == [
        "ASSAY_PORT",
        "ASSAY_FEE_RATE",
    ]


FIRST = "ASSAY_X402_FACILITATOR_URL"
MORE = "ASSAY_X402_FALLBACK_FACILITATORS"


@pytest.mark.parametrize("user", ["me:hidden@", "hidden@", ":hidden@"])
def test_a_facilitators_password_that_would_travel_in_clear_text_stops_the_boot(
    monkeypatch: pytest.MonkeyPatch, user: str
) -> None:
    """Nor is it shown, wherever it is named; over TLS or to this machine it is private."""
    monkeypatch.setenv(FIRST, f"http://{user}pay.example")
    with pytest.raises(SettingsError, match=FIRST) as first:
        load()
    assert "https://" in str(first.value)
    monkeypatch.setenv(FIRST, f"https://{user}pay.example")
    monkeypatch.setenv(MORE, f"http://127.0.0.1:9,http://{user}127.0.0.1.pay.example")
    with pytest.raises(SettingsError, match=MORE) as second:
        load()
    assert "hidden" not in f"{first.value} {second.value}"
    private = [f"http://{user}{host}" for host in ("127.0.0.1:9", "[::1]", "localhost")]
    monkeypatch.setenv(MORE, ",".join(private))
    assert load().x402_facilitators == (f"https://{user}pay.example", *private)


def test_a_facilitator_without_a_password_may_be_named_in_clear_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(FIRST, "http://pay.example")
    assert load().x402_facilitators == ("http://pay.example",)
