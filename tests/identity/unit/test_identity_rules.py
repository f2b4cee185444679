"""Which address stands for which agent."""

import pytest

from assay.identity.model import (
    AgentPrincipal,
    ContractProof,
    IdentityMismatch,
    canonical_address,
    controls,
    require_control,
)
from assay.registries.model import Subject
from tests.support.fakes.trust import NETWORK, WALLET, onchain_agent

SOLANA = "8oo4dC4JvBLwy5tGgiH3WwK4B9PWxL9Z4XjA2jzkQMbQ"
STRANGER = "0x" + "ee" * 20
REGISTERED = Subject(NETWORK, "7", WALLET, onchain_agent())
BY_ADDRESS = Subject(NETWORK, STRANGER, STRANGER, None)


def test_an_evm_address_is_lower_case_and_a_solana_address_as_it_is() -> None:
    assert canonical_address("0x" + "AB" * 20) == "0x" + "ab" * 20
    assert canonical_address(SOLANA) == SOLANA


@pytest.mark.parametrize("text", ["", "0x12", "0" * 44, "O0Il", SOLANA[:-4]])
def test_any_other_text_is_no_address(text: str) -> None:
    assert canonical_address(text) is None


def test_a_key_speaks_for_its_own_address_and_for_the_agents_it_controls() -> None:
    assert controls(WALLET, REGISTERED)
    assert controls(STRANGER, BY_ADDRESS)
    assert not controls(STRANGER, REGISTERED)
    assert not controls(WALLET, BY_ADDRESS)


def test_a_contract_speaks_only_on_the_chains_where_it_was_asked() -> None:
    here = ContractProof(chains=(NETWORK.caip2,), is_home=True)
    elsewhere = ContractProof(chains=("eip155:1",), is_home=False)
    assert controls(WALLET, REGISTERED, here)
    assert not controls(WALLET, REGISTERED, elsewhere)
    assert not controls(STRANGER, BY_ADDRESS, elsewhere)
    assert AgentPrincipal(STRANGER, contract=here).is_key_agent
    assert not AgentPrincipal(STRANGER, contract=elsewhere).is_key_agent
    assert AgentPrincipal(STRANGER).is_key_agent


def test_a_named_agent_that_the_address_does_not_control_is_refused_by_name() -> None:
    require_control(WALLET, REGISTERED, None)
    with pytest.raises(IdentityMismatch) as refused:
        require_control(STRANGER, REGISTERED, None)
    assert refused.value.extras == {"agentId": "7", "agentAddress": STRANGER}
