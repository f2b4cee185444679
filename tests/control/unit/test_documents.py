"""What documents of strangers name, and what they do not."""

import json
from dataclasses import replace
from typing import Any

import pytest

from assay.control.statements_in_documents import (
    BYTES_MAX,
    NamedAgents,
    is_openapi,
    names,
    payees_named,
    read_document,
    read_json,
    read_records,
    subject_key,
)
from assay.registries.model import Subject
from tests.support.fakes.trust import NETWORK, OWNER, STRANGER, WALLET, onchain_agent

AGENT = Subject(NETWORK, "7", WALLET, onchain_agent())
REGISTRY = NETWORK.agent_registry
OURS = {"agentId": 7, "agentRegistry": REGISTRY}


@pytest.mark.parametrize(
    "document",
    [
        {"registrations": [OURS]},
        {"registrations": [{"agentId": "7", "agentRegistry": REGISTRY.replace("0x1", "0X1")}]},
        {"registrations": [{"agentId": 1, "agentRegistry": REGISTRY}, OURS]},
        {"agentWallet": WALLET.upper().replace("0X", "0x")},
        {"wallet": f"eip155:31337:{WALLET}"},
        {"provider": {"x-agent-wallet": OWNER}},
        {"openapi": "3.1.0", "info": {"x-agent-registrations": [OURS]}},
        {"capabilities": {"extensions": [{"uri": "urn:x", "params": {"registrations": [OURS]}}]}},
    ],
    ids=str,
)  # fmt: skip
def test_an_id_and_a_wallet_name_an_agent(document: dict[str, object]) -> None:
    assert names(read_document(document), AGENT)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"registrations": [{"agentId": 70, "agentRegistry": REGISTRY}]},
        {"registrations": [{"agentId": 7, "agentRegistry": "eip155:1:0x" + "1" * 40}]},
        {"registrations": [{"agentId": "07", "agentRegistry": REGISTRY}]},
        {"registrations": [{"agentId": 7.0, "agentRegistry": REGISTRY}]},
        {"registrations": [{"agentId": True, "agentRegistry": REGISTRY}]},
        {"registrations": [{"agentId": [7], "agentRegistry": REGISTRY}]},
        {"registrations": [{"agentId": 7, "agentRegistry": [REGISTRY]}]},
        {"registrations": [{"agentId": "7/../7", "agentRegistry": REGISTRY}]},
        {"registrations": {"agentId": 7, "agentRegistry": REGISTRY}},
        {"registrations": "7"},
        {"description": f"I am not {REGISTRY}/7 of wallet {WALLET}"},
        {"agentWallet": STRANGER},
        {"agentWallet": f"{WALLET} {STRANGER}"},
        {"skills": [{"registrations": [OURS], "agentWallet": WALLET}]},
        {"info": [OURS]},
        {"capabilities": {"extensions": {"params": OURS}}},
        [OURS],
        "text",
        None,
    ],
    ids=str,
)  # fmt: skip
def test_nothing_else_names_it(document: object) -> None:
    assert not names(read_document(document), AGENT)  # type: ignore[arg-type]


def test_a_file_of_ten_thousand_registrations_is_no_proof() -> None:
    rows = [{"agentId": n, "agentRegistry": REGISTRY} for n in range(10_000)]
    body = json.dumps({"registrations": rows}).encode()
    assert len(body) > BYTES_MAX
    assert read_json(body) is None


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"\xff\xfe", b"[" * 100_000, b'{"a":' * 5000 + b"1" + b"}" * 5000,
        b'{"registrations": [{"agentId": ' + b"9" * 5000 + b"}]}", b"[" + b"0," * 30_000 + b"0]",
        b'"' + b"x" * (BYTES_MAX + 1) + b'"',
    ],
    ids=range(8),
)  # fmt: skip
def test_hostile_bytes_name_nobody(body: bytes) -> None:
    assert read_document(read_json(body)) == NamedAgents()


def test_records_name_agents_and_wallets() -> None:
    assert names(read_records([f"agent-registration={REGISTRY}/7"]), AGENT)
    assert names(read_records(["v=spf1 -all", f" agent-wallet=eip155:31337:{WALLET} "]), AGENT)
    assert not names(read_records([f"agent-registration={REGISTRY}/70"]), AGENT)
    assert not names(read_records([f"xagent-registration={REGISTRY}/7", "agent-wallet="]), AGENT)
    assert not names(read_records([f"agent-registration={REGISTRY}/7/"]), AGENT)


def test_a_payee_proves_control_only_where_it_is_the_registered_wallet_and_all_are() -> None:
    assert payees_named(frozenset({WALLET}), AGENT)
    assert not payees_named(frozenset({WALLET, STRANGER}), AGENT)
    assert not payees_named(frozenset({OWNER}), AGENT)
    assert not payees_named(frozenset(), AGENT)
    unset = replace(AGENT, agent=onchain_agent(wallet=None))
    assert not payees_named(frozenset({OWNER}), unset)


def test_a_key_agent_is_named_by_nothing() -> None:
    assert not names(NamedAgents(wallets=frozenset({WALLET})), replace(AGENT, agent=None))


def test_the_agents_that_a_document_names_have_the_keys_of_their_subjects() -> None:
    assert subject_key(f"{REGISTRY}/7") == AGENT.key
    assert subject_key("no registry") == "/no registry"


@pytest.mark.parametrize(
    ("document", "is_one"),
    [({"openapi": "3.1.0"}, True), ({"swagger": "2.0"}, True), ({"info": {}}, False), ([], False)],
)
def test_an_openapi_document_says_that_it_is_one(document: Any, *, is_one: bool) -> None:
    assert is_openapi(document) is is_one
