import json
from pathlib import Path
from types import MappingProxyType

import pytest

from assay.chains.networks import ROWS, Networks
from assay.common.errors import InvalidRequest

VECTORS = json.loads(
    (Path(__file__).parents[2] / "vectors" / "erc8004_chains.json").read_text("utf-8")
)["chains"]
LOCAL = {
    "chain_id": 31337,
    "identity_registry": "0x" + "Aa" * 20,
    "reputation_registry": "0x" + "Bb" * 20,
    "rpc_urls": ["http://127.0.0.1:8545"],
}


def test_the_table_has_exactly_the_chains_of_the_source() -> None:
    assert [row.slug for row in ROWS] == [v["slug"] for v in VECTORS]
    assert len(ROWS) == 50


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: v["slug"])
def test_every_row_is_as_the_source_has_it(vector: dict[str, object]) -> None:
    row = Networks.built_in().by_slug(str(vector["slug"]))
    registries = vector["registries"]
    assert isinstance(registries, dict)
    assert row.name == vector["name"]
    assert row.chain_id == vector["chainId"]
    assert row.testnet == vector["testnet"]
    assert row.identity_registry == str(registries["identity"]).lower()
    assert row.reputation_registry == str(registries["reputation"]).lower()
    assert list(row.rpc_urls) == vector["rpc"]
    assert row.explorer == vector["explorer"]
    assert row.multicall3 == vector["multicall3"]
    assert row.agent_registry == str(vector["agentRegistry"]).lower()
    assert row.source
    assert row.family == "evm"


def test_ethereum_is_the_default_and_listed_first() -> None:
    networks = Networks.built_in()
    assert networks.default.chain_id == 1
    assert networks.slugs[0] == "ethereum"
    assert set(networks.slugs) == set(networks.rows)


def test_a_chain_is_found_in_any_case() -> None:
    assert Networks.built_in().by_slug("Base-Sepolia").chain_id == 84532


@pytest.mark.parametrize("slug", ["atlantis", "", "0", "ethereum ", "x" * 10_000])
def test_an_unknown_chain_is_refused_naming_some_that_are_known(slug: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        Networks.built_in().by_slug(slug)
    assert "ethereum" in refused.value.message
    assert refused.value.extras["details"] == [
        {"loc": ["query", "chain"], "message": refused.value.message}
    ]


def test_configuration_adds_a_chain() -> None:
    networks = Networks.built_in().with_overrides({"local": LOCAL}, "local")
    assert networks.default is networks.by_slug("local")
    assert networks.default.caip2 == "eip155:31337"
    assert networks.default.identity_registry == "0x" + "aa" * 20
    assert networks.default.source == "configuration"
    assert len(networks.rows) == 52


def test_configuration_replaces_fields_and_leaves_the_rest() -> None:
    given = {"base": {"rpc_urls": ["https://rpc.example/key"], "multicall3": False}}
    row = Networks.built_in().with_overrides(given, "ethereum").by_slug("base")
    assert row.rpc_urls == ("https://rpc.example/key",)
    assert (row.chain_id, row.multicall3, row.explorer) == (8453, False, "https://basescan.org")


def test_the_built_in_table_does_not_change_under_overrides() -> None:
    before = dict(Networks.built_in().rows)
    networks = Networks.built_in()
    networks.with_overrides({"base": {"name": "Mine"}}, "ethereum")
    assert dict(networks.rows) == before
    assert isinstance(networks.rows, MappingProxyType)


@pytest.mark.parametrize(
    ("slug", "values", "said"),
    [
        ("base", {"rpc": []}, "there is no field 'rpc'"),
        ("base", {"slug": "x"}, "there is no field 'slug'"),
        ("base", {"family": "evm"}, "there is no field 'family'"),
        ("base", {"rpc_urls": []}, "'rpc_urls' does not hold"),
        ("base", {"rpc_urls": "https://rpc.example"}, "'rpc_urls' does not hold"),
        ("base", {"rpc_urls": ["https://ok.example", "ftp://no.example"]}, "'rpc_urls'"),
        ("base", {"rpc_urls": ["https://[::1"]}, "'rpc_urls' does not hold"),
        ("base", {"rpc_urls": ["https://a.example:99999"]}, "'rpc_urls' does not hold"),
        ("base", {"rpc_urls": ["https://a.example/\n"]}, "'rpc_urls' does not hold"),
        ("base", {"rpc_urls": ["https://"]}, "'rpc_urls' does not hold"),
        ("base", {"rpc_urls": [7]}, "'rpc_urls' does not hold"),
        ("base", {"identity_registry": "0x12"}, "'identity_registry' does not hold"),
        ("base", {"identity_registry": None}, "'identity_registry' does not hold"),
        ("base", {"chain_id": "8453"}, "'chain_id' does not hold"),
        ("base", {"chain_id": True}, "'chain_id' does not hold"),
        ("base", {"chain_id": 0}, "'chain_id' does not hold"),
        ("base", {"start_block": -1}, "'start_block' does not hold"),
        ("base", {"testnet": "no"}, "'testnet' does not hold"),
        ("base", {"explorer": "basescan.org"}, "'explorer' does not hold"),
        ("base", {"name": ""}, "'name' does not hold"),
        ("base", {"chain_id": 1}, "'ethereum' and 'base' have the same chain_id"),
        ("Local", LOCAL, "a slug is made of"),
        ("local", {"chain_id": 31337}, "'identity_registry' is missing"),
    ],
)
def test_a_configuration_that_does_not_hold_is_refused_in_a_sentence(
    slug: str, values: dict[str, object], said: str
) -> None:
    with pytest.raises(ValueError, match="chain") as refused:
        Networks.built_in().with_overrides({slug: values}, "ethereum")
    assert said in str(refused.value)


def test_an_unknown_default_chain_is_refused() -> None:
    with pytest.raises(ValueError, match="atlantis"):
        Networks.built_in().with_overrides({}, "atlantis")
