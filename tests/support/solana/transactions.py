"""Transactions as a careful client builds them, for the tests of the grounds themselves."""

import base64

from solders.hash import Hash
from solders.instruction import AccountMeta, Instruction
from solders.keypair import Keypair
from solders.message import Message
from solders.pubkey import Pubkey
from solders.transaction import VersionedTransaction

from tests.support.solana.clusters import COMPUTE_BUDGET, SYSTEM_PROGRAM
from tests.support.solana.feedback import Args
from tests.support.solana.registry import Agent

UNITS = 400_000


def limit(units: int = UNITS) -> Instruction:
    """SetComputeUnitLimit."""
    return Instruction(COMPUTE_BUDGET, b"\2" + units.to_bytes(4, "little"), [])


def give_feedback(agent: Agent, client: Pubkey, args: Args) -> Instruction:
    cluster, account = agent.registry.cluster, agent.registered
    metas = [
        (client, True, True),
        (agent.address, False, True),
        (agent.asset, False, False),
        (account.collection, False, False),
        (SYSTEM_PROGRAM, False, False),
        (cluster.atom_config()[0], False, False),
        (agent.stats_address, False, True),
        (cluster.atom, False, False),
        (cluster.atom_authority(), False, False),
    ]
    accounts = [AccountMeta(key, signer, writable) for key, signer, writable in metas]
    return Instruction(cluster.registry, args.encoded(), accounts)


def signed(client: Keypair, blockhash: str, *asked: Instruction) -> VersionedTransaction:
    recent = Hash.from_string(blockhash)
    message = Message.new_with_blockhash(list(asked), client.pubkey(), recent)
    return VersionedTransaction(message, [client])


def wire(made: VersionedTransaction) -> str:
    return base64.b64encode(bytes(made)).decode()
