"""Where metrics are served: on loopback, or with a token."""

from pathlib import Path

import pytest

from assay.app.limits import opened_upstreams
from assay.net.egress.address import OpenedAddresses
from assay.settings import SettingsError, bind_address, load

TOKEN = "t" * 32
ACCOUNT = "0190a0a0-0000-7000-8000-000000000000"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("9464", ("127.0.0.1", 9464)),
        ("0", ("127.0.0.1", 0)),
        ("127.0.0.1:9464", ("127.0.0.1", 9464)),
        ("[::1]:9464", ("::1", 9464)),
        ("10.0.0.5:1", ("10.0.0.5", 1)),
    ],
)
def test_an_address_is_a_port_or_an_ip_address_with_one(text: str, found: tuple[str, int]) -> None:
    assert bind_address(text) == found


@pytest.mark.parametrize(
    "text",
    [
        *("", ":", ":9464", "x", "9464:", "host:9464", "localhost:1", "::1:9464", "[127.0.0.1]:1"),
        *("65536", "-1", "+1", "1_0", "\u0661", "127.0.0.1", "127.0.0.1:", "[::1]", "[::1:1", " 1"),
    ],
)
def test_an_address_of_another_form_stops_the_start(text: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"ASSAY_OPS_BIND: .*must be a port"):
        load(data_dir=tmp_path, ops_bind=text)


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.5", "[::]", "[2001:db8::1]"])
def test_metrics_beyond_loopback_need_a_token(host: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="ASSAY_OPS_TOKEN"):
        load(data_dir=tmp_path, ops_bind=f"{host}:9464")
    made = load(data_dir=tmp_path, ops_bind=f"{host}:9464", ops_token=TOKEN)
    assert TOKEN not in repr(made)


@pytest.mark.parametrize("token", ["", "t" * 31, "t" * 201, "t" * 31 + " ", "t" * 32 + "\n"])
def test_a_token_is_long_and_fits_a_header(token: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="ASSAY_OPS_TOKEN"):
        load(data_dir=tmp_path, ops_token=token)


def test_the_port_of_metrics_is_no_upstream_unless_it_is_named(tmp_path: Path) -> None:
    made = load(
        data_dir=tmp_path,
        ops_bind="9464",
        upstream_allow="127.0.0.1",
        upstream_allow_operators=ACCOUNT,
    )
    opened: OpenedAddresses = opened_upstreams(made).addresses
    assert 9464 in opened.own_ports
