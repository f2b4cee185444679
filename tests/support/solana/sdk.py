"""The registry's own SDK (npm 8004-solana) at work on the loopback node; skips without Node."""

import json
from typing import Any

from solders.instruction import AccountMeta, Instruction
from solders.keypair import Keypair
from solders.pubkey import Pubkey

from tests.support import node
from tests.support.solana.feedback import Args
from tests.support.solana.indexer import Indexer
from tests.support.solana.registry import Agent
from tests.support.solana.rpc import Node


def sdk_transactions(
    rpc: Node, agent: Agent, wallet: Keypair, many: list[Args]
) -> list[list[Instruction]]:
    """What the SDK would send for each feedback: compute budget and give_feedback."""
    told = _run(rpc, agent, wallet, act="build", feedbacks=[_shown(args) for args in many])
    assert not any("error" in one for one in told), told
    return [[_instruction(one) for one in made] for made in told]


def sdk_give_feedback(rpc: Node, agent: Agent, wallet: Keypair, args: Args) -> Instruction:
    """The SDK's instruction, data and accounts, to compare another one with."""
    [[_, made]] = sdk_transactions(rpc, agent, wallet, [args])
    return made


def sdk_send(rpc: Node, agent: Agent, wallet: Keypair, *many: Args) -> dict[str, Any]:
    """`before`, `sent` and `after`, as the SDK sees them; it signs, sends and confirms."""
    return _run(rpc, agent, wallet, act="send", feedbacks=[_shown(args) for args in many])


def sdk_read(rpc: Node, index: Indexer, agent: Agent) -> dict[str, Any]:
    """`account`, `summary`, `byId`, `byWallet` and `feedbacks` of an agent."""
    number = None if agent.number is None else str(agent.number + index.shift)
    reader = Keypair()  # the SDK wants a signer for reading too
    return _run(rpc, agent, reader, act="read", indexerUrl=index.url, agentId=number)


def sdk_liveness(rpc: Node, agent: Agent, timeout_s: float = 1) -> dict[str, Any]:
    """The SDK's report; the agent's addresses are to be `http://ANYTHING.example:PORT/...`."""
    return _run(rpc, agent, Keypair(), act="alive", timeoutMs=int(timeout_s * 1000))


def _run(rpc: Node, agent: Agent, wallet: Keypair, **asked: Any) -> Any:
    here = {
        "rpcUrl": rpc.url,
        "cluster": agent.registry.cluster.name,
        "asset": str(agent.asset),
        "secretKey": list(bytes(wallet)),
    }
    return json.loads(node.run("solana_8004.mjs", here | asked).body)


def _shown(args: Args) -> dict[str, Any]:
    told: dict[str, Any] = {
        "value": str(args.value),
        "valueDecimals": args.decimals,
        "tag1": args.tag1,
        "tag2": args.tag2,
        "endpoint": args.endpoint,
        "feedbackUri": args.uri,
    }
    if args.score is not None:
        told["score"] = args.score
    if args.file_hash is not None:
        told["feedbackFileHash"] = args.file_hash.hex()
    return told


def _instruction(told: dict[str, Any]) -> Instruction:
    accounts = [
        AccountMeta(Pubkey.from_string(one["pubkey"]), one["isSigner"], one["isWritable"])
        for one in told["accounts"]
    ]
    program = Pubkey.from_string(told["programId"])
    return Instruction(program, bytes.fromhex(told["dataHex"]), accounts)
