"""The Solana grounds themselves: what the local node refuses is what a real one refuses."""

import base64
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from solders.instruction import AccountMeta, Instruction
from solders.keypair import Keypair
from solders.pubkey import Pubkey
from solders.signature import Signature
from solders.transaction import VersionedTransaction

from tests.support.solana import base58, golden
from tests.support.solana.clusters import CORE, DEVNET, MAINNET, SYSTEM_PROGRAM, keypair
from tests.support.solana.feedback import Args, leaf, longer
from tests.support.solana.ground import STARRED, WALLET, Ground
from tests.support.solana.ground import ground as grounded
from tests.support.solana.layouts import AgentAccount, Chain
from tests.support.solana.registry import Registry
from tests.support.solana.rpc import SOL
from tests.support.solana.runtime import feedback_of, instructions
from tests.support.solana.transactions import give_feedback, signed, wire


def refused(reply: dict[str, Any], err: Any, sentence: str) -> None:
    error = reply["error"]
    assert error["code"] == -32002
    assert error["message"] == f"Transaction simulation failed: {sentence}"
    assert error["data"]["err"] == err
    assert isinstance(error["data"]["logs"], list)


# --- what a transaction may be -------------------------------------------------------------


def test_a_rating_lands_and_lengthens_the_chain(ground: Ground) -> None:
    made = ground.rating()
    assert ground.send(made)["result"] == str(made.signatures[0])
    [sent] = ground.rpc.accepted
    assert sent.error is None
    assert sent.given is not None
    assert sent.given.args == STARRED
    assert bytes(feedback_of(sent).data) == STARRED.encoded()
    assert (
        feedback_of(sent).accounts == give_feedback(ground.agent, WALLET.pubkey(), STARRED).accounts
    )
    new = leaf(ground.agent.asset, WALLET.pubkey(), 42, STARRED.seal(), sent.slot)
    options = {"encoding": "base64"}
    shown = ground.get("getAccountInfo", str(ground.agent.address), options)["value"]["data"][0]
    after = AgentAccount.decoded(base64.b64decode(shown))
    assert after.feedback == longer(Chain(count=42), new)
    assert ground.rpc.balance(WALLET.pubkey()) == SOL - 5000
    [status] = ground.get("getSignatureStatuses", [str(sent.signature)])["value"]
    assert (status["err"], status["confirmationStatus"]) == (None, "finalized")
    [row] = ground.registry.feedbacks(ground.agent.asset)
    assert (row.signature, row.index) == (str(sent.signature), 42)


@pytest.mark.parametrize("vector", golden.vectors(), ids=lambda one: one["name"])
def test_the_sdks_own_transactions_run(vector: dict[str, Any]) -> None:
    """Every golden transaction, with a fresh blockhash, on the cluster it was made for."""
    registry = Registry(MAINNET if vector["cluster"] == "mainnet-beta" else DEVNET)
    key = Pubkey.from_string
    asset, owner, collection = (key(vector[name]) for name in ("asset", "owner", "collection"))
    agent = registry.agent(asset=asset, owner=owner, collection=collection)
    client = Keypair.from_seed(bytes.fromhex(vector["clientSeedHex"]))
    raw = base64.b64decode(vector["transaction"]["signedWireBase64"])
    golden_one = VersionedTransaction.from_bytes(raw)
    asked = instructions(golden_one.message)  # pyright: ignore[reportArgumentType]
    with grounded(registry, agent) as on:
        on.rpc.fund(client.pubkey())
        reply = on.send(signed(client, on.blockhash(), *asked))
        assert "error" not in reply, reply
        [sent] = on.rpc.accepted
        assert bytes(feedback_of(sent).data).hex() == vector["instruction"]["dataHex"]
        assert agent.account.feedback.count == 1


def test_a_bad_signature_is_refused_before_the_simulation(ground: Ground) -> None:
    made = VersionedTransaction.populate(ground.rating().message, [Signature.new_unique()])
    error = ground.send(made)["error"]
    assert error["code"] == -32003
    assert error["message"] == "Transaction signature verification failure"
    assert ground.rpc.accepted == []


def test_an_unfunded_wallet_is_unknown(ground: Ground) -> None:
    stranger = keypair("stranger")
    reply = ground.send(ground.rating(client=stranger))
    told = "Attempt to debit an account but found no record of a prior credit."
    refused(reply, "AccountNotFound", told)


def test_a_wallet_may_not_sink_below_rent(ground: Ground) -> None:
    poor = keypair("poor")
    ground.rpc.fund(poor.pubkey(), 890_880 + 5000)
    assert "result" in ground.send(ground.rating(client=poor))
    reply = ground.send(ground.rating(replace(STARRED, tag2="x"), poor))
    err = {"InsufficientFundsForRent": {"account_index": 0}}
    refused(reply, err, "Transaction results in an account (0) with insufficient funds for rent")


def test_the_same_transaction_is_not_processed_twice(ground: Ground) -> None:
    made = ground.rating()
    ground.send(made)
    refused(ground.send(made), "AlreadyProcessed", "This transaction has already been processed")
    assert "result" in ground.send(made, skipPreflight=True)
    assert ground.agent.account.feedback.count == 43
    [status] = ground.get("getSignatureStatuses", [str(made.signatures[0])])["value"]
    assert status["err"] is None


def test_an_expired_blockhash_is_refused_by_preflight(ground: Ground) -> None:
    made = ground.rating()
    ground.rpc.expire_blockhash()
    refused(ground.send(made), "BlockhashNotFound", "Blockhash not found")


def test_an_expired_blockhash_without_preflight_is_a_signature_and_nothing_else(
    ground: Ground,
) -> None:
    made = ground.rating()
    ground.rpc.expire_blockhash()
    assert ground.send(made, skipPreflight=True)["result"] == str(made.signatures[0])
    assert ground.agent.account.feedback.count == 42
    assert ground.get("getSignatureStatuses", [str(made.signatures[0])])["value"] == [None]
    assert ground.rpc.balance(WALLET.pubkey()) == SOL


def test_a_failure_on_chain_costs_the_fee(ground: Ground) -> None:
    made = ground.rating(replace(STARRED, score=101))
    ground.send(made, skipPreflight=True)
    [status] = ground.get("getSignatureStatuses", [str(made.signatures[0])])["value"]
    assert status["err"] == {"InstructionError": [1, {"Custom": 12050}]}
    assert ground.rpc.balance(WALLET.pubkey()) == SOL - 5000


def test_the_network_may_forget_what_the_node_accepted(ground: Ground) -> None:
    ground.rpc.forget_transactions()
    made = ground.rating()
    assert ground.send(made)["result"] == str(made.signatures[0])
    assert ground.agent.account.feedback.count == 42


def test_no_transaction_is_read_from_other_bytes(ground: Ground) -> None:
    for text, options in [
        ("%%%", {"encoding": "base64"}),
        (base64.b64encode(bytes(2000)).decode(), {"encoding": "base64"}),
        (base64.b64encode(b"\1\2\3").decode(), {"encoding": "base64"}),
        ("0OIl", {"encoding": "base58"}),
        ("1", {"encoding": "hex"}),
    ]:
        assert ground.ask("sendTransaction", text, options)["error"]["code"] == -32602
    made = ground.rating()
    sent = ground.ask("sendTransaction", base58.encode(bytes(made)), {"encoding": "base58"})
    assert sent["result"] == str(made.signatures[0])


def test_a_simulation_changes_nothing(ground: Ground) -> None:
    made = ground.rating()
    told = ground.get("simulateTransaction", wire(made), {"encoding": "base64", "sigVerify": True})
    assert told["value"]["err"] is None
    stale = VersionedTransaction.populate(made.message, [Signature.default()])
    ground.rpc.expire_blockhash()
    options = {"encoding": "base64", "replaceRecentBlockhash": True}
    assert ground.get("simulateTransaction", wire(stale), options)["value"]["err"] is None
    told = ground.get("simulateTransaction", wire(stale), {"encoding": "base64"})
    assert told["value"]["err"] == "BlockhashNotFound"
    assert ground.agent.account.feedback.count == 42


# --- what the registry's program refuses -----------------------------------------------------

Change = Callable[[Ground], VersionedTransaction]


def _owned(ground: Ground) -> VersionedTransaction:
    ground.registry.agent("own", owner=WALLET.pubkey())
    ground.agent = ground.registry.agents[-1]
    return ground.rating()


def _after(change: Callable[[Ground], object]) -> Change:
    def made(ground: Ground) -> VersionedTransaction:
        change(ground)
        return ground.rating()

    return made


def _saying(**words: Any) -> Change:
    return lambda ground: ground.rating(replace(STARRED, **words))


def _with(place: int, key: Pubkey, *, writable: bool = False) -> Change:
    return lambda ground: ground.rating(
        metas={place: AccountMeta(key, is_signer=False, is_writable=writable)}
    )


REFUSALS: dict[str, tuple[int, Change]] = {
    "its owner rates it": (12300, _owned),
    "score above 100": (12050, _saying(score=101)),
    "too many decimals": (12061, _saying(decimals=19)),
    "a tag of 33 bytes": (12056, _saying(tag1="t" * 33)),
    "the second tag counts bytes, not letters": (12056, _saying(tag2="é" * 17)),
    "an endpoint of 251 bytes": (12060, _saying(endpoint="e" * 251)),
    "a URI of 251 bytes": (12000, _saying(uri="u" * 251)),
    "another collection": (12010, _with(3, SYSTEM_PROGRAM)),
    "another agent's address": (3012, _with(1, keypair("x").pubkey(), writable=True)),
    "the registry's account belongs to another program": (
        3007,
        _after(lambda on: on.registry.hand_over(on.agent.address, CORE)),
    ),
    "the account is cut short": (
        3003,
        _after(lambda on: on.registry.truncate(on.agent.address, 200)),
    ),
    "there is no such agent": (3012, _after(lambda on: on.registry.vanish(on.agent.address))),
    "the asset is none of Metaplex Core": (
        12011,
        _after(lambda on: on.registry.hand_over(on.agent.asset, SYSTEM_PROGRAM)),
    ),
    "another AtomStats": (12401, _with(6, keypair("x").pubkey(), writable=True)),
    "another ATOM program": (12400, _with(7, CORE)),
    "another authority": (2006, _with(8, CORE)),
    "ATOM is paused": (6004, _after(lambda on: on.registry.pause_atom())),
    "not the System program": (3008, _with(4, CORE)),
    "a read-only AgentAccount": (2000, lambda on: _with(1, on.agent.address)(on)),
}


@pytest.mark.parametrize(("code", "made"), REFUSALS.values(), ids=REFUSALS)
def test_the_program_ends_with_its_own_code(ground: Ground, code: int, made: Change) -> None:
    reply = ground.send(made(ground))
    err = {"InstructionError": [1, {"Custom": code}]}
    refused(reply, err, f"Error processing Instruction 1: custom program error: {code:#x}")
    assert reply["error"]["data"]["logs"][-1].endswith(f"failed: custom program error: {code:#x}")


def test_five_accounts_are_not_enough(ground: Ground) -> None:
    """Absent accounts are the registry's own id in their places, and never left off."""
    whole = give_feedback(ground.agent, WALLET.pubkey(), STARRED)
    short = Instruction(whole.program_id, whole.data, whole.accounts[:5])
    made = signed(WALLET, ground.blockhash(), short)
    err = {"InstructionError": [0, {"Custom": 3005}]}
    assert ground.send(made)["error"]["data"]["err"] == err
    absent = [AccountMeta(MAINNET.registry, is_signer=False, is_writable=False)] * 4
    long = Instruction(whole.program_id, whole.data, whole.accounts[:5] + absent)
    assert "result" in ground.send(signed(WALLET, ground.blockhash(), long))


def test_an_unscored_rating_passes_while_atom_is_paused(ground: Ground) -> None:
    ground.registry.pause_atom()
    assert "result" in ground.send(ground.rating(Args(value=1, tag1="note")))


def test_a_program_that_is_not_there_cannot_be_called(ground: Ground) -> None:
    asked = Instruction(keypair("nothing").pubkey(), b"", [])
    reply = ground.send(signed(WALLET, ground.blockhash(), asked))
    assert reply["error"]["data"]["err"] in {"InvalidProgramForExecution", "ProgramAccountNotFound"}
