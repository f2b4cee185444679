"""For which agents a domain's key speaks."""

from dataclasses import replace

import pytest

from assay.identity.model import (
    DomainProof,
    IdentityMismatch,
    WebBotAuthRefused,
    controls,
    require_control,
)
from assay.registries.model import RegistrationFile, Service, Subject
from tests.support.fakes.trust import NETWORK
from tests.support.live_service import agent

ORIGIN = "https://agent.example:443"


def subject(*endpoints: str, agent_id: str = "7") -> Subject:
    services = tuple(Service("web", endpoint) for endpoint in endpoints)
    made = replace(agent(agent_id), registration=RegistrationFile(services=services))
    return Subject(NETWORK, agent_id, made.owner, made)


@pytest.mark.parametrize(
    "endpoint",
    ["https://agent.example", "https://AGENT.example.:443/mcp?x=1", "https://agent.example/a/b"],
)
def test_a_domain_speaks_for_an_agent_that_declares_a_service_there(endpoint: str) -> None:
    found = subject("not an address", endpoint)
    assert controls(ORIGIN, found, DomainProof(ORIGIN, found.key))
    require_control(ORIGIN, found, DomainProof(ORIGIN, found.key))


def test_a_literal_address_is_compared_as_it_is_dialled() -> None:
    found = subject("http://[::1]:8080/")
    assert controls("", found, DomainProof("http://[::1]:8080", found.key))


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://agent.example",
        "https://agent.example:8443",
        "https://agent.example.evil.example",
        "https://agent.example@evil.example",
        "https://sub.agent.example",
        "ipfs://agent.example",
    ],
)
def test_another_address_is_not_the_domain(endpoint: str) -> None:
    found = subject(endpoint)
    with pytest.raises(WebBotAuthRefused) as refusal:
        require_control(ORIGIN, found, DomainProof(ORIGIN, found.key))
    assert refusal.value.extras["reason"] == "web_bot_auth_domain_not_named"


def test_a_proof_for_one_agent_is_none_for_another() -> None:
    other = subject("https://agent.example", agent_id="8")
    assert not controls(ORIGIN, other, DomainProof(ORIGIN, subject().key))


def test_agents_without_a_registration_have_no_domain() -> None:
    found = subject()
    bare = replace(found, agent=replace(agent("7"), registration=None))
    key_agent = Subject(NETWORK, "0x" + "11" * 20, "0x" + "11" * 20, None)
    for one in (found, bare, key_agent):
        assert not controls(ORIGIN, one, DomainProof(ORIGIN, one.key))


def test_an_origin_is_no_address_that_controls() -> None:
    with pytest.raises(IdentityMismatch):
        require_control(ORIGIN, subject("https://agent.example"))
