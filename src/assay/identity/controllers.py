"""Decides whether a proven address acts for an agent."""

from assay.identity.model import ContractProof, IdentityMismatch
from assay.registries.subject import Subject


def require_control(address: str, subject: Subject, contract: ContractProof | None = None) -> None:
    """Raise `IdentityMismatch` unless the address controls the subject.

    An agent id is a claim until proven. An address that is only asserted is treated the same:
    trusting a header does not mean trusting one that contradicts the registry. Source:
    conventions.md#agent-identity.
    """
    if not controls(address, subject, contract):
        raise IdentityMismatch(
            "This address does not control the named agent: prove its owner or agentWallet.",
            agentId=subject.agent_id,
            agentAddress=address,
        )


def controls(address: str, subject: Subject, contract: ContractProof | None = None) -> bool:
    """Return whether the address controls the subject.

    An address proven by a contract controls only on the chains it was proven on: another party may
    own a contract at the same address of another chain.
    """
    agent = subject.agent
    if agent is None:
        return address == subject.agent_id and (contract is None or contract.is_home)
    on_chain = contract is None or subject.network.caip2 in contract.chains
    return on_chain and address in agent.controllers
