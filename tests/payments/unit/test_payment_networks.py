"""Payment networks by the names people use, kept by the ids of the interface."""

import pytest

from assay.payments.networks import (
    NETWORK_NAMES,
    ROWS,
    accepted_names,
    by_network,
    network_id,
    payment_networks,
)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("base", "eip155:8453"),
        ("base-sepolia", "eip155:84532"),
        ("Base-Sepolia", "eip155:84532"),
        (" eip155:84532 ", "eip155:84532"),
        ("EIP155:84532", "eip155:84532"),
        ("tempo", "tempo:4217"),
        ("tempo:4217", "tempo:4217"),
        ("eip155:4217", "tempo:4217"),
        ("tempo-moderato", "tempo:42431"),
        ("eip155:42431", "tempo:42431"),
        ("sepolia", None),
        ("eip155:1", None),
        ("", None),
        ("8453", None),
    ],
)
def test_a_network_has_one_id_and_several_names(name: str, found: str | None) -> None:
    assert network_id(name) == found


def test_every_name_that_is_accepted_leads_to_a_network() -> None:
    assert {network_id(name) for name in NETWORK_NAMES} == {row.id for row in ROWS}
    assert all(row.id in accepted_names() and row.short_name in accepted_names() for row in ROWS)
    assert "tempo" not in accepted_names("x402")


def test_endpoints_are_set_by_any_name_and_only_once() -> None:
    networks = payment_networks({"base-sepolia": ("https://a.example",)})
    assert networks["eip155:84532"].rpc_urls == ("https://a.example",)
    assert set(networks) == {row.id for row in ROWS}
    with pytest.raises(ValueError, match="named twice"):
        by_network({"base": 1, "eip155:8453": 2})
    with pytest.raises(ValueError, match="base-sepolia"):
        payment_networks({"sepolia": ()})
