"""What is read of Solana accounts and written to them, against the golden vectors.

The vectors come from the registry's own SDK (solana-registry.md).
"""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from solders.pubkey import Pubkey

from assay.chains.model import is_public_key, parse_wallet
from assay.chains.networks import Networks
from assay.chains.solana.clusters import CLUSTERS, PROGRAMS, cluster_row
from assay.common import addresses
from assay.common.errors import InvalidRequest
from assay.registries import solana_accounts
from assay.registries.model import parse_agent_id, sequential_id
from assay.registries.solana_accounts import (
    BadAccount,
    SolanaFeedback,
    give_feedback,
    read_agent,
    read_atom,
    read_core_owner,
)
from tests.support.solana import golden
from tests.support.solana.golden import GoldenAccount
from tests.support.solana.layouts import core_asset

SOLANA = CLUSTERS["mainnet-beta"]
ETHEREUM = Networks.built_in().default
KEY = "7NZRT48zAd5opYaFen15h8gnJSnyW5TYLZbn6KrgNkBY"

AGENTS = [one for one in golden.accounts() if one.kind == "AgentAccount"]
ATOMS = [one for one in golden.accounts() if one.kind == "AtomStats"]


@pytest.mark.parametrize("account", AGENTS, ids=lambda one: one.title)
def test_an_agents_account_is_read_as_the_sdk_reads_it(account: GoldenAccount) -> None:
    read = read_agent(account.data)
    ours = {
        "collection": read.collection,
        "creator": read.creator,
        "owner": read.owner,
        "asset": read.asset,
        "atomEnabled": read.atom_enabled,
        "agentWallet": read.wallet,
        "feedbackCount": str(read.feedback_count),
        "agentUri": read.uri,
        "nftName": read.name,
    }
    decoded = {k: str(v) if k == "feedbackCount" else v for k, v in account.decoded.items()}
    known = ours.keys() & decoded.keys()
    assert len(known) >= 6
    assert {k: ours[k] for k in known} == {k: decoded[k] for k in known}
    assert solana_accounts.agent_address(account.cluster, read.asset) == account.address


@pytest.mark.parametrize("account", ATOMS, ids=lambda one: one.title)
def test_the_engines_figures_are_those_of_the_sdk(account: GoldenAccount) -> None:
    read, decoded = read_atom(account.data), account.decoded
    assert read.trust_tier == decoded["trustTierName"]
    assert read.quality_score == decoded["qualityScore"]
    assert read.confidence == decoded["confidence"]
    assert read.risk_score == decoded["riskScore"]
    assert read.unique_callers == decoded["uniqueCallers"]
    assert read.average_score == decoded["averageScore"]
    assert solana_accounts.atom_address(account.cluster, decoded["asset"]) == account.address


@pytest.mark.parametrize(("kind", "name", "data"), golden.refused(), ids=lambda v: str(v)[:30])
def test_data_that_the_sdk_refuses_is_refused(kind: str, name: str, data: bytes) -> None:
    del name
    with pytest.raises(BadAccount):
        (read_agent if kind == "AgentAccount" else read_atom)(data)


@given(st.binary(max_size=900))
def test_no_bytes_break_the_readers(data: bytes) -> None:
    for read in (read_agent, read_atom, read_core_owner):
        for prefix in (b"", bytes.fromhex("f177458ce9097032"), bytes.fromhex("bebb323bcb2788f4")):
            with contextlib.suppress(BadAccount):
                read(prefix + data)


@given(st.integers(0, 747))
def test_an_account_cut_short_anywhere_is_refused_or_whole(length: int) -> None:
    whole = golden.account("AgentAccount", "max-strings")
    with contextlib.suppress(BadAccount):
        assert read_agent(whole.data[:length]) == read_agent(whole.data)


def test_the_owner_is_read_from_the_asset() -> None:
    owner, collection = Pubkey.from_string(KEY), Pubkey.new_unique()
    assert read_core_owner(core_asset(owner, collection, "A", "")) == KEY
    for wrong in (b"", b"\0" + bytes(40), b"\1" + bytes(31)):
        with pytest.raises(BadAccount):
            read_core_owner(wrong)


@pytest.mark.parametrize("vector", golden.vectors(), ids=lambda v: v["name"])
def test_the_instruction_is_the_sdks_byte_for_byte(vector: dict) -> None:
    args = vector["encodedArgs"]
    file_hash = args["feedbackFileHash"]
    made = give_feedback(
        vector["cluster"],
        vector["client"],
        vector["asset"],
        vector["collection"],
        SolanaFeedback(
            value=int(args["value"]),
            score=args["score"],
            decimals=args["valueDecimals"],
            file_hash=bytes.fromhex(file_hash) if file_hash else None,
            tag1=args["tag1"],
            tag2=args["tag2"],
            endpoint=args["endpoint"],
            uri=args["feedbackUri"],
        ),
    )
    theirs = vector["instruction"]
    assert made.program == theirs["programId"]
    assert made.data.hex() == theirs["dataHex"]
    assert [(m.key, m.is_signer, m.is_writable) for m in made.accounts] == [
        (m["pubkey"], m["isSigner"], m["isWritable"]) for m in theirs["accounts"]
    ]


@pytest.mark.parametrize(
    "given_",
    [
        SolanaFeedback(1, 1, tag1="t" * 33),
        SolanaFeedback(1, 1, tag2="\u8cea" * 11),
        SolanaFeedback(1, 1, endpoint="e" * 251),
        SolanaFeedback(1, 1, uri="e" * 251),
        SolanaFeedback(1, 101),
        SolanaFeedback(1, -1),
        SolanaFeedback(1, 1, decimals=19),
        SolanaFeedback(1, 1, file_hash=bytes(31)),
        SolanaFeedback(2**127, 1),
        SolanaFeedback(-(2**127) - 1, 1),
    ],
    ids=range(10),
)
def test_what_the_program_would_not_take_is_not_made(given_: SolanaFeedback) -> None:
    with pytest.raises(ValueError, match=r"is|are|has|more"):
        give_feedback("devnet", KEY, KEY, KEY, given_)


def test_the_addresses_of_the_programs_are_those_of_the_table() -> None:
    pdas = golden.read("give-feedback")["pdas"]
    assert pdas.keys() == PROGRAMS.keys()
    for cluster, table in pdas.items():
        assert PROGRAMS[cluster].registry == table["agentRegistry"]
        assert PROGRAMS[cluster].atom == table["atomEngine"]
        assert solana_accounts.atom_config_address(cluster) == table["atomConfig"]["address"]
        assert (
            solana_accounts.cpi_authority_address(cluster) == table["atomCpiAuthority"]["address"]
        )


def test_a_cluster_can_be_reached_elsewhere() -> None:
    row = cluster_row("devnet", "http://127.0.0.1:8899", "")
    assert (row.slug, row.cluster, row.rpc_urls) == ("solana", "devnet", ("http://127.0.0.1:8899",))
    assert row.index_urls == ()
    assert cluster_row("devnet").index_urls == CLUSTERS["devnet"].index_urls
    assert SOLANA.caip2 == "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp"


@given(st.binary(max_size=90))
def test_base58_reads_what_it_wrote(data: bytes) -> None:
    assert addresses.decode(addresses.encode(data)) == data


@given(st.binary(min_size=32, max_size=32))
def test_base58_writes_keys_as_solana_does(data: bytes) -> None:
    assert addresses.encode(data) == str(Pubkey.from_bytes(data))


@given(st.text(alphabet=addresses.ALPHABET + "0OIl +/=\n\u00e9", max_size=60))
def test_what_is_a_key_is_what_solana_takes_for_one(text: str) -> None:
    try:
        Pubkey.from_string(text)
        theirs = True
    except ValueError:
        theirs = False
    assert is_public_key(text) == theirs


@pytest.mark.parametrize(
    ("text", "canonical", "number"),
    [
        ("42", "42", 42),
        ("sol:42", "42", 42),
        ("007", "7", 7),
        ("1" * 18, "1" * 18, int("1" * 18)),
        ("1" * 32, "1" * 32, None),
        (KEY, KEY, None),
    ],
)
def test_an_agent_is_named_by_its_asset_or_its_number(
    text: str, canonical: str, number: int | None
) -> None:
    assert parse_agent_id(SOLANA, text) == canonical
    assert sequential_id(SOLANA, canonical) == number


@pytest.mark.parametrize(
    "text",
    [
        *("", "0", "-1", "1.5", "abc", "sol:", "SOL:4", "1" * 19, " 7 ", "\u0664\u0662"),
        *(KEY[:-1] + "0", KEY + "1" * 9, "0x" + "a" * 40, KEY.replace("7", "l")),
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        parse_agent_id(SOLANA, text)


def test_numbers_are_sequential_ids_on_solana_only() -> None:
    assert sequential_id(ETHEREUM, "42") is None
    with pytest.raises(InvalidRequest):
        parse_agent_id(ETHEREUM, KEY)
    assert parse_wallet(SOLANA, KEY, "wallet") == KEY
    with pytest.raises(InvalidRequest):
        parse_wallet(SOLANA, "0x" + "a" * 40, "wallet")
    with pytest.raises(InvalidRequest):
        parse_wallet(ETHEREUM, KEY, "wallet")
