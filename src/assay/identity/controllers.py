"""Whether a proven address speaks for an agent."""

from assay.identity.model import ContractProof, IdentityMismatch
from assay.registries.subject import Subject


def require_control(address: str, subject: Subject, contract: ContractProof | None = None) -> None:
    """An agent id is a claim until proven (decisions, section 6). Raises `IdentityMismatch`.

    An address that is only asserted is held to the same rule: believing a header is no reason to
    believe one that contradicts the registry.
    """
    if not controls(address, subject, contract):
        raise IdentityMismatch(
            "This address does not control the named agent: prove its owner or agentWallet.",
            agentId=subject.agent_id,
            agentAddress=address,
        )


def controls(address: str, subject: Subject, contract: ContractProof | None = None) -> bool:
    """Whether the address speaks for the subject.

    An address that a contract proved speaks on the chains it was proven on: a contract at the same
    address of another chain can be anybody's.
    """
    agent = subject.agent
    if agent is None:
        return address == subject.agent_id and (contract is None or contract.is_home)
    on_chain = contract is None or subject.network.caip2 in contract.chains
    return on_chain and address in agent.controllers
