"""Chains by their CAIP-2 identifiers, wherever a slug is taken."""

import pytest

from assay.chains.networks import Networks
from assay.common.errors import InvalidRequest


def test_every_chain_is_found_by_its_caip2_identifier() -> None:
    networks = Networks.built_in()
    for row in networks.rows.values():
        assert networks.by_slug(row.caip2) is row


def test_every_evm_chain_is_found_by_its_number() -> None:
    networks = Networks.built_in()
    for row in networks.rows.values():
        if row.caip2.startswith("eip155:"):
            assert networks.by_slug(str(row.chain_id)) is row


@pytest.mark.parametrize(
    "name",
    ["eip155:999999999", "eip155:", "999999999", "08453", "8453.0", "+8453", "eip155:8453:0x00"],
)
def test_an_unknown_identifier_is_refused_with_what_is_accepted(name: str) -> None:
    with pytest.raises(InvalidRequest, match="eip155:8453"):
        Networks.built_in().by_slug(name)


def test_settings_name_known_chains_by_their_identifiers_too() -> None:
    urls = ["https://node.example"]
    networks = Networks.built_in().with_overrides({"eip155:8453": {"rpc_urls": urls}}, "eip155:10")
    assert networks.by_slug("base").rpc_urls == tuple(urls)
    assert networks.default.chain_id == 10
    assert "eip155:8453" not in networks.rows
    with pytest.raises(ValueError, match="not a known chain"):
        Networks.built_in().with_overrides({}, "eip155:999999999")
