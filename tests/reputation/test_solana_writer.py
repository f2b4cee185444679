"""Scores written to the registry: signed, sent once, taken or refused by a real runtime."""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

import pytest
from solders.keypair import Keypair
from solders.message import Message

from assay.chains.evm.rpc_network import JsonRpc
from assay.chains.model import ChainUnavailable
from assay.chains.networks import Networks
from assay.common.tasks import Tasks
from assay.registries.model import OnchainAgent
from assay.registries.ports import WriteRefused
from assay.registries.solana_accounts import SolanaFeedback, give_feedback
from assay.registries.subjects import Subjects
from assay.reputation.solana_writer import SolanaWriter, keypair_of
from assay.reputation.write_back import WAITING_MAX, FeedbackPublisher, PublishResult
from tests.support.fakes.clock import FrozenClock
from tests.support.solana import golden, loopback
from tests.support.solana.clusters import keypair
from tests.support.solana.reading import QUICK, Reading, reading
from tests.support.solana.registry import Agent
from tests.support.solana.rpc import preflight_refusal

BLOCKHASH = "7LFMarcH16KQ1R7GDE6N2oSsoX7aBneXhKbrjGua417A"


@dataclass
class Writing:
    ground: Reading
    wallet: Keypair
    writer: SolanaWriter

    async def agent(self, agent: Agent) -> OnchainAgent:
        return await self.ground.reader.fetch_agent(self.ground.network, str(agent.asset))

    async def give(self, agent: Agent, score: int = 87) -> str:
        found = await self.agent(agent)
        return await self.writer.give_score(self.ground.network, found, score)

    def write_back(self, notes: list[PublishResult]) -> FeedbackPublisher:
        networks = Networks.built_in().with_solana(self.ground.network)
        subjects = Subjects({"solana": self.ground.reader})
        return FeedbackPublisher(subjects, networks, self.writer, notes.append)


@pytest.fixture
async def writing() -> AsyncGenerator[Writing]:
    async with reading() as ground:
        wallet = keypair("writer")
        ground.node.fund(wallet.pubkey())
        yield Writing(ground, wallet, SolanaWriter(ground.rpc, wallet, 0))


async def test_a_score_is_taken_as_the_registrys_program_wants_it(writing: Writing) -> None:
    agent = writing.ground.registry.agent(feedback_count=42)
    before = writing.ground.node.balance(writing.wallet.pubkey())
    signature = await writing.give(agent, 87)
    (sent,) = writing.ground.node.accepted
    assert str(sent.signature) == signature
    args = sent.given.args
    assert (args.value, args.decimals, args.score) == (87, 0, 87)
    assert (args.tag1, args.tag2, args.endpoint, args.uri) == ("starred", "", "", "")
    assert agent.account.feedback.count == 43
    assert before - writing.ground.node.balance(writing.wallet.pubkey()) == 5000


async def test_the_same_score_twice_is_two_transactions(writing: Writing) -> None:
    agent = writing.ground.registry.agent()
    first, second = await writing.give(agent, 50), await writing.give(agent, 50)
    assert first != second
    assert agent.account.feedback.count == 2


async def test_a_priority_fee_is_paid_when_one_is_set(writing: Writing) -> None:
    dear = SolanaWriter(writing.ground.rpc, writing.wallet, 1000)
    agent = writing.ground.registry.agent()
    before = writing.ground.node.balance(writing.wallet.pubkey())
    await dear.give_score(writing.ground.network, await writing.agent(agent), 50)
    assert before - writing.ground.node.balance(writing.wallet.pubkey()) == 5400


async def test_feedback_to_oneself_is_refused_with_the_programs_number(writing: Writing) -> None:
    agent = writing.ground.registry.agent(owner=writing.wallet.pubkey())
    with pytest.raises(WriteRefused, match="12300"):
        await writing.give(agent)
    assert writing.ground.node.accepted == []


async def test_a_wallet_without_money_is_refused_and_not_charged(writing: Writing) -> None:
    poor = SolanaWriter(writing.ground.rpc, keypair("poor"), 0)
    agent = await writing.agent(writing.ground.registry.agent())
    with pytest.raises(WriteRefused):
        await poor.give_score(writing.ground.network, agent, 50)
    assert await poor.balance(writing.ground.network) == 0


async def test_a_paused_engine_refuses_the_score(writing: Writing) -> None:
    agent = writing.ground.registry.agent(atom=golden.atom("one-feedback"))
    writing.ground.registry.pause_atom()
    with pytest.raises(WriteRefused, match="6004"):
        await writing.give(agent)


async def test_a_node_that_is_down_leaves_the_chain_unavailable(writing: Writing) -> None:
    agent = await writing.agent(writing.ground.registry.agent())
    clock = FrozenClock()
    async with aclosing(JsonRpc(clock, QUICK)) as rpc:
        writer = SolanaWriter(rpc, writing.wallet, 0)
        for method in ("getLatestBlockhash", "sendTransaction"):
            for fault in (loopback.unavailable(), loopback.garbage(), loopback.hang_up()):
                with (
                    writing.ground.node.faults.during(fault, only=method),
                    pytest.raises(ChainUnavailable),
                ):
                    await writer.give_score(writing.ground.network, agent, 50)
                clock.move(1.1)  # an endpoint that failed is left alone for a second


async def test_a_node_that_says_another_signature_is_not_believed(writing: Writing) -> None:
    agent = await writing.agent(writing.ground.registry.agent())
    lie = loopback.rewritten(lambda body: {**body, "result": "1" * 64})
    with (
        writing.ground.node.faults.during(lie, only="sendTransaction"),
        pytest.raises(WriteRefused),
    ):
        await writing.writer.give_score(writing.ground.network, agent, 50)


def test_the_transaction_holds_exactly_the_sdks_instructions() -> None:
    for vector in golden.vectors():
        args, theirs = vector["encodedArgs"], vector["instruction"]
        signer = Keypair.from_seed(bytes.fromhex(vector["clientSeedHex"]))
        given = SolanaFeedback(
            value=int(args["value"]),
            score=args["score"],
            decimals=args["valueDecimals"],
            file_hash=bytes.fromhex(args["feedbackFileHash"] or "") or None,
            tag1=args["tag1"],
            tag2=args["tag2"],
            endpoint=args["endpoint"],
            uri=args["feedbackUri"],
        )
        made = give_feedback(
            vector["cluster"], vector["client"], vector["asset"], vector["collection"], given
        )
        writer = SolanaWriter(None, signer, 0)  # type: ignore[arg-type] - nobody is asked
        signed = writer.signed(made, vector["transaction"]["recentBlockhash"])
        signed.verify()
        message = signed.message
        budget, feedback = message.instructions
        keys = message.account_keys
        assert bytes(budget.data).hex() == vector["computeBudgetInstruction"]["dataHex"]
        assert bytes(feedback.data).hex() == theirs["dataHex"]
        assert str(keys[feedback.program_id_index]) == theirs["programId"]
        assert [
            (str(keys[i]), message.is_signer(i), _is_writable(message, i))
            for i in feedback.accounts
        ] == [(m["pubkey"], m["isSigner"], m["isWritable"]) for m in theirs["accounts"]]


def test_a_keypair_comes_as_an_array_or_a_file(tmp_path: Path) -> None:
    key = keypair("k")
    file = tmp_path / "id.json"
    file.write_text(key.to_json())
    assert keypair_of(key.to_json()) == keypair_of(str(file)) == key


WRONG = {
    "empty": "",
    "no integers": "[]",
    "too few": "[1,2,3]",
    "too large": json.dumps([256] * 64),
    "halves that do not match": json.dumps([7] * 64),
    "no file": "/nowhere/id.json",
    "texts": '["a"]',
    "deep": "[" * 5000,
    "an object": "{}",
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_a_keypair_that_is_none_is_refused_without_a_word_of_it(wrong: str) -> None:
    with pytest.raises(ValueError, match="ASSAY_SOLANA_KEYPAIR") as refusal:
        keypair_of(wrong)
    assert "7, 7" not in str(refusal.value)


async def test_scores_end_in_the_order_they_came_each_with_its_outcome(writing: Writing) -> None:
    notes: list[PublishResult] = []
    back, tasks = writing.write_back(notes), Tasks(lambda *_: None)
    theirs = writing.ground.registry.agent("theirs")
    own = writing.ground.registry.agent("own", owner=writing.wallet.pubkey())
    tasks.spawn("write back", back.run())
    back.offer("solana", str(theirs.asset), 86.5)
    back.offer("solana", str(own.asset), 50)
    back.offer("solana", str(keypair("nobody").pubkey()), 50)
    back.offer("ethereum", "22", 50)
    back.offer("solana", "0x" + "a" * 40, 50)
    await back.close(10)
    await tasks.drain(0)
    assert [note.outcome.value for note in notes] == ["submitted", "skipped", "refused"]
    assert notes[0].score == 87
    ended = {"submitted": 1, "refused": 1, "skipped": 1}
    assert back.counts == {**ended, "failed": 0, "dropped": 0, "unpaid": 0}
    (sent,) = writing.ground.node.accepted
    assert sent.given.args.score == 87


async def test_a_refusal_or_an_outage_is_never_tried_again(writing: Writing) -> None:
    notes: list[PublishResult] = []
    back, tasks = writing.write_back(notes), Tasks(lambda *_: None)
    agent = writing.ground.registry.agent()
    tasks.spawn("write back", back.run())
    with writing.ground.node.faults.during(
        preflight_refusal("AccountInUse"), only="sendTransaction"
    ):
        back.offer("solana", str(agent.asset), 10)
        await back.close(10)
    sent = [method for method, _ in writing.ground.node.calls() if method == "sendTransaction"]
    assert (len(sent), notes[0].outcome.value) == (1, "refused")
    with writing.ground.node.faults.during(loopback.hang(), only="getLatestBlockhash"):
        back.offer("solana", str(agent.asset), 20)
        await back.close(10)
    assert notes[1].outcome.value == "failed"
    await tasks.drain(0)


async def test_what_is_too_much_is_dropped_at_once_and_said(writing: Writing) -> None:
    notes: list[PublishResult] = []
    back = writing.write_back(notes)
    asset = str(writing.ground.registry.agent().asset)
    for _ in range(WAITING_MAX + 3):
        back.offer("solana", asset, 1)
    assert [note.outcome.value for note in notes] == ["dropped"] * 3
    await back.close(0)
    assert back.counts["dropped"] == WAITING_MAX + 3


def _is_writable(message: Message, index: int) -> bool:
    """By a message's header: the first of those that sign are, and the first of those that do not.

    Source: Solana's legacy message format.
    """
    header, count = message.header, len(message.account_keys)
    signers = header.num_required_signatures
    if index < signers:
        return index < signers - header.num_readonly_signed_accounts
    return index < count - header.num_readonly_unsigned_accounts
