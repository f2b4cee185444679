"""What the evidence about control means for a grade, and what documents list."""

import pytest

from assay.common.json import JsonObject
from assay.control import rules
from assay.control.statements_in_documents import lists_path, names, read_document
from assay.registries.model import Subject
from tests.support.fakes.trust import NETWORK, WALLET, onchain_agent

AGENT = Subject(NETWORK, "7", WALLET, onchain_agent())
REGISTRY = NETWORK.agent_registry


def test_control_that_is_disputed_or_unknown_keeps_the_rung_and_names_the_rivals() -> None:
    data: JsonObject = {
        "control": [
            {"service": "https://a.example", "conflict": True, "with": ["eip155:1/8"]},
            {"service": "https://b.example", "conflict": True},
            {"service": "https://c.example", "unfinished": True},
            {"service": "https://d.example", "proof": "dns"},
        ]
    }
    found = [(one.code, one.service, one.sentence) for one in rules.undecided(data)]
    assert [(code, service) for code, service, _ in found] == [
        ("control_conflict", "https://a.example"),
        ("control_conflict", "https://b.example"),
        ("unfinished", "https://c.example"),
    ]
    assert "for eip155:1/8" in found[0][2]
    assert "for another agent" in found[1][2]


@pytest.mark.parametrize(
    ("endpoint", "file"),
    [("https://a.example/x", "https://a.example/robots.txt"), ("https://[a/x", "/robots.txt")],
)
def test_a_site_that_opted_out_is_shown_the_file_to_change(endpoint: str, file: str) -> None:
    data: JsonObject = {
        "services": [
            {"service": "s", "endpoint": endpoint, "state": "opted_out"},
            {"service": "t", "endpoint": endpoint, "state": "visited"},
        ]
    }
    (found,) = rules.closed_to_us(data)
    assert f"Let {file} disallow nothing" in found.action


def test_an_operation_is_listed_below_each_base_of_its_document() -> None:
    document: JsonObject = {
        "openapi": "3.1.0",
        "paths": {"/quote": {}},
        "servers": [{"url": "https://a.example/v1/"}, {"url": "http://[a"}, "no object"],
        "basePath": "/old",
    }
    assert [lists_path(document, one) for one in ("/quote", "/v1/quote", "/old/quote")] == [
        True
    ] * 3
    assert not lists_path(document, "/v2/quote")
    assert not lists_path({"openapi": "3.1.0"}, "/quote")
    assert not lists_path([], "/quote")


@pytest.mark.parametrize(
    "row",
    [
        {"agentId": True, "agentRegistry": REGISTRY},
        {"agentId": None, "agentRegistry": REGISTRY},
        {"agentId": -7, "agentRegistry": REGISTRY},
        {"agentId": 2**256, "agentRegistry": REGISTRY},
        {"agentId": "7 ", "agentRegistry": REGISTRY},
        {"agentId": 7, "agentRegistry": None},
        {"agentId": 7, "agentRegistry": "r" * 10_000},
    ],
    ids=lambda row: str(row)[:40],
)
def test_what_is_no_id_of_a_registry_names_nobody(row: JsonObject) -> None:
    assert not names(read_document({"registrations": [row]}), AGENT)


def test_an_address_as_long_as_a_page_is_none() -> None:
    assert not names(read_document({"agentWallet": WALLET + "0" * 10_000}), AGENT)
    extensions = {"extensions": ["no object", {"params": "none"}]}
    assert not names(read_document({"capabilities": extensions}), AGENT)
