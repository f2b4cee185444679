"""The Solana grounds themselves: what the local node refuses is what a real one refuses."""

import base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import httpx2
import pytest
from solders.instruction import AccountMeta, Instruction
from solders.keypair import Keypair
from solders.pubkey import Pubkey
from solders.signature import Signature
from solders.transaction import VersionedTransaction

from tests.services.solana import base58, golden, loopback
from tests.services.solana.clusters import CORE, DEVNET, MAINNET, SYSTEM_PROGRAM, keypair
from tests.services.solana.feedback import Args, leaf, longer
from tests.services.solana.layouts import AgentAccount, Chain
from tests.services.solana.registry import Agent, Registry
from tests.services.solana.rpc import SOL, Node, behind, node, rpc_error
from tests.services.solana.runtime import feedback_of, instructions
from tests.services.solana.transactions import give_feedback, limit, signed, wire

WALLET = keypair("wallet")
STARRED = Args(value=87, score=87, tag1="starred")


@dataclass
class Ground:
    registry: Registry
    rpc: Node
    http: httpx2.Client
    agent: Agent

    def ask(self, method: str, *params: Any) -> dict[str, Any]:
        body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": list(params)}
        answer = self.http.post(self.rpc.url, json=body)
        assert answer.status_code == 200, answer.text
        reply = answer.json()
        assert (reply["jsonrpc"], reply["id"]) == ("2.0", 7)
        return reply

    def get(self, method: str, *params: Any) -> Any:
        return self.ask(method, *params)["result"]

    def blockhash(self) -> str:
        return self.get("getLatestBlockhash", {"commitment": "confirmed"})["value"]["blockhash"]

    def rating(
        self, args: Args = STARRED, client: Keypair = WALLET, **change: Any
    ) -> VersionedTransaction:
        made = give_feedback(self.agent, client.pubkey(), args)
        for place, meta in change.pop("metas", {}).items():
            accounts = made.accounts
            accounts[place] = meta
            made = Instruction(made.program_id, made.data, accounts)
        return signed(client, change.get("blockhash") or self.blockhash(), limit(), made)

    def send(self, made: VersionedTransaction, **options: Any) -> dict[str, Any]:
        asked = {"encoding": "base64", "preflightCommitment": "confirmed", **options}
        return self.ask("sendTransaction", wire(made), asked)


@pytest.fixture
def ground() -> Iterator[Ground]:
    registry = Registry(MAINNET)
    atom = golden.atom("five-clients")
    agent = registry.agent(
        "first", wallet=keypair("its wallet").pubkey(), feedback_count=42, atom=atom
    )
    with node(registry) as rpc, httpx2.Client(timeout=5) as http:
        rpc.fund(WALLET.pubkey())
        yield Ground(registry, rpc, http, agent)


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
    with node(registry) as rpc, httpx2.Client(timeout=5) as http:
        rpc.fund(client.pubkey())
        made = signed(client, str(rpc.runtime.svm.latest_blockhash()), *asked)
        reply = Ground(registry, rpc, http, agent).send(made)
        assert "error" not in reply, reply
        [sent] = rpc.accepted
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
    assert ground.agent.account.feedback.count == 43


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


# --- what may be read ----------------------------------------------------------------------


def test_accounts_are_read_as_they_are(ground: Ground) -> None:
    address = ground.agent.address
    told = ground.get("getAccountInfo", str(address), {"encoding": "base64"})
    assert told["context"]["slot"] == ground.get("getSlot")
    value = told["value"]
    assert base64.b64decode(value["data"][0]) == ground.agent.account.encoded()
    assert (value["owner"], value["space"]) == (str(MAINNET.registry), 748)
    assert value["lamports"] == 6_096_960
    assert ground.get("getAccountInfo", str(keypair("none").pubkey()))["value"] is None
    keys = [str(key) for key in (address, keypair("none").pubkey(), ground.agent.asset)]
    options = {"encoding": "base64", "dataSlice": {"offset": 1, "length": 32}}
    several = ground.get("getMultipleAccounts", keys, options)["value"]
    assert several[1] is None
    assert base64.b64decode(several[2]["data"][0]) == bytes(ground.agent.account.owner)


def test_programs_accounts_are_found_by_their_bytes(ground: Ground) -> None:
    for number in range(5):
        ground.registry.agent(f"other {number}")
    wallet = ground.agent.account.wallet
    assert wallet is not None
    disc = {"memcmp": {"offset": 0, "bytes": base58.encode(AgentAccount.DISCRIMINATOR)}}
    raw = b"\1" + bytes(wallet)
    for held in (
        {"bytes": base58.encode(raw)},
        {"bytes": base64.b64encode(raw).decode(), "encoding": "base64"},
    ):
        filters = [disc, {"memcmp": {"offset": 138, **held}}, {"dataSize": 748}]
        options: dict[str, Any] = {"filters": filters, "encoding": "base64"}
        options["dataSlice"] = {"offset": 104, "length": 32}
        [found] = ground.get("getProgramAccounts", str(MAINNET.registry), options)
        assert found["pubkey"] == str(ground.agent.address)
        assert base64.b64decode(found["account"]["data"][0]) == bytes(ground.agent.asset)
    every = ground.get(
        "getProgramAccounts", str(MAINNET.registry), {"filters": [disc], "encoding": "base64"}
    )
    assert len(every) == 6


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("getAccountInfo", [], -32602),
        ("getAccountInfo", ["0OIl"], -32602),
        ("getAccountInfo", ["1" * 31], -32602),
        ("getMultipleAccounts", [["1" * 32] * 101], -32602),
        ("getProgramAccounts", ["1" * 32, {"filters": [{"dataSize": 1}] * 5}], -32602),
        ("getAccountInfo", ["1" * 32, {"minContextSlot": 2**40}], -32016),
        ("getNothing", [], -32601),
        ("call", [], -32601),
    ],
)
def test_calls_that_make_no_sense_get_the_nodes_codes(
    ground: Ground, method: str, params: list[Any], code: int
) -> None:
    assert ground.ask(method, *params)["error"]["code"] == code


def test_long_data_is_not_served_in_base_58(ground: Ground) -> None:
    assert ground.ask("getAccountInfo", str(ground.agent.address))["error"]["code"] == -32600


def test_a_batch_is_answered_in_order_and_nonsense_is_named(ground: Ground) -> None:
    calls = [{"jsonrpc": "2.0", "id": n, "method": "getHealth"} for n in (3, 1)]
    told = ground.http.post(ground.rpc.url, json=calls).json()
    assert [(one["id"], one["result"]) for one in told] == [(3, "ok"), (1, "ok")]
    json_type = {"content-type": "application/json"}
    bad = ground.http.post(ground.rpc.url, content=b"{", headers=json_type).json()
    assert bad["error"]["code"] == -32700
    assert ground.http.get(ground.rpc.url).status_code == 405
    assert ground.http.post(ground.rpc.url, content=b"{}").status_code == 415


@pytest.mark.parametrize("cluster", [MAINNET, DEVNET], ids=lambda one: one.name)
def test_each_cluster_has_its_genesis(cluster: Any) -> None:
    registry = Registry(cluster)
    with node(registry) as rpc, httpx2.Client(timeout=5) as http:
        ground = Ground(registry, rpc, http, registry.agent())
        assert ground.get("getGenesisHash") == cluster.genesis
        assert ground.get("getHealth") == "ok"
        assert "solana-core" in ground.get("getVersion")
        to = str(keypair("lucky").pubkey())
        ground.get("requestAirdrop", to, SOL)
        assert ground.get("getBalance", to)["value"] == SOL


# --- what may go wrong ------------------------------------------------------------------------


def test_golden_accounts_are_served_as_they_are() -> None:
    registry = Registry(MAINNET)
    whole = [one for one in golden.accounts() if one.cluster == "mainnet-beta"]
    registry.put_golden(*whole)
    with node(registry) as rpc, httpx2.Client(timeout=5) as http:
        ground = Ground(registry, rpc, http, registry.agent())
        for one in whole:
            told = ground.get("getAccountInfo", one.address, {"encoding": "base64"})["value"]
            assert base64.b64decode(told["data"][0]) == one.data, one.title
            assert told["owner"] == one.program


def test_a_hanging_node_says_nothing(ground: Ground) -> None:
    with ground.rpc.faults.during(loopback.hang()), pytest.raises(httpx2.ReadTimeout):
        ground.http.post(ground.rpc.url, json={"jsonrpc": "2.0"}, timeout=0.3)
    assert ground.get("getHealth") == "ok"


@pytest.mark.parametrize(
    ("fault", "status", "retry_after"),
    [
        (loopback.rate_limited(), 429, None),
        (loopback.rate_limited(7), 429, "7"),
        (loopback.unavailable(), 503, None),
    ],
)
def test_a_busy_node_says_so(
    ground: Ground, fault: loopback.Fault, status: int, retry_after: str | None
) -> None:
    ground.rpc.faults.on(fault, only="getHealth", times=1)
    call = {"jsonrpc": "2.0", "id": 1, "method": "getHealth"}
    answer = ground.http.post(ground.rpc.url, json=call)
    assert (answer.status_code, answer.headers.get("retry-after")) == (status, retry_after)
    assert ground.get("getHealth") == "ok"


def test_a_node_can_lie_in_every_way(ground: Ground) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "getHealth"}
    faults, url = ground.rpc.faults, ground.rpc.url
    with faults.during(behind()):
        told = ground.http.post(url, json=call).json()["error"]
        assert (told["code"], told["data"]) == (-32005, {"numSlotsBehind": 157})
    with faults.during(rpc_error(-32603, "Internal error")):
        assert ground.http.post(url, json=call).json()["error"]["code"] == -32603
    with faults.during(loopback.garbage()):
        assert ground.http.post(url, json=call).text.startswith("<html>")
    with faults.during(loopback.cut()), pytest.raises(httpx2.RemoteProtocolError):
        ground.http.post(url, json=call)
    with faults.during(loopback.hang_up()), pytest.raises(httpx2.RemoteProtocolError):
        ground.http.post(url, json=call)
    with faults.during(loopback.drip(0.001)):
        assert ground.http.post(url, json=call).json()["result"] == "ok"
    with faults.during(loopback.huge()), ground.http.stream("POST", url, json=call) as answer:
        assert int(answer.headers["content-length"]) == 100_000_000
        assert next(answer.iter_bytes()).startswith(b'{"jsonrpc"')
    with faults.during(loopback.rewritten(lambda told: told | {"id": 99})):
        assert ground.http.post(url, json=call).json()["id"] == 99
    assert ground.get("getHealth") == "ok"
