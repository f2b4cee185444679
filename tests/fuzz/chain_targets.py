"""What chains, their nodes, indexers and agents' own files say."""

import json
import re
from typing import Any

from assay.chains.evm import eas, rpc_wire
from assay.chains.evm.abi import BadAnswer
from assay.chains.evm.calls import decode_aggregate3, encode_aggregate3
from assay.chains.evm.logs import _log
from assay.chains.model import ChainUnavailable
from assay.common import addresses
from assay.common.json import canonical_bytes, is_array, is_nested_beyond, is_object
from assay.net.egress.url import EgressPolicy, parse_target
from assay.payments.x402.transaction_sender import quantity
from assay.probing import probe_client as asking
from assay.probing.consent import _disallowed
from assay.probing.poisoning import looks_alike, poison
from assay.probing.probes.a2a import _wrong
from assay.probing.secret_formats import leaked_internals, leaked_secrets
from assay.registries import erc8004
from assay.registries import solana_index as index
from assay.registries.documents import (
    DataUriError,
    DocumentUnavailable,
    _next_hop,
    _sha256_of,
    _split_ipfs,
    read_data_uri,
)
from assay.registries.families import solana
from assay.registries.registration import NotRegistration, parse_registration
from assay.registries.solana_accounts import (
    BadAccount,
    agent_address,
    is_burnt,
    read_agent,
    read_atom,
    read_core_owner,
)
from tests.fuzz.target import Target, pieces, text

ASSET = "4vJ9JU1bJJE96FWSJKvHsmmFADCg4gpZQff4P3bkLKi"
SCHEMA = eas.parse_schema("string source, uint256 id, string[] handles, bytes proof, string url")
HTTPS_ONLY = EgressPolicy()
DATA_BYTES_MAX = 1024


def registration(data: bytes) -> None:
    found = parse_registration(data)
    for part in (found.name, found.image, found.description, *found.trust_models):
        assert len(part) <= 2048
    assert len(found.services) <= 64
    assert len(found.registrations) <= 64


def data_uri(data: bytes) -> None:
    assert len(read_data_uri("data:" + text(data), DATA_BYTES_MAX)) <= DATA_BYTES_MAX


def agent_card(data: bytes) -> None:
    """As the probes read it, after the official client has."""
    card = asking.decode(data)
    if is_object(card):
        canonical_bytes({"card": "read", "wrong": sorted(set(_wrong(card)))})
        for _, url in asking.interfaces(card):
            asking.same_site(url, "https://a.example/")


def rpc_reply(data: bytes) -> None:
    answer = rpc_wire.answer_of(rpc_wire.decode(data), 1)
    if isinstance(answer, rpc_wire.NodeError):
        rpc_wire.revert_of(answer)
        assert answer.says_block_is_unknown in {True, False}
        return
    rpc_wire.quantity_of(answer)
    rpc_wire.bytes_of(answer.value)


def rpc_batch(data: bytes) -> None:
    reply = rpc_wire.decode(data)
    if not is_array(reply):
        return
    assert len(rpc_wire.answers_of(reply, [1, 2])) == 2


def multicall(data: bytes) -> None:
    chosen, body = pieces(data)
    found = decode_aggregate3(body, chosen % 5)
    assert len(found) == chosen % 5
    assert sum(len(one.data) for one in found) <= len(body)


def eas_answer(data: bytes) -> None:
    assert len(eas.read_attestation(data).data) <= len(data)


def eas_fields(data: bytes) -> None:
    found = eas.read_fields(SCHEMA, data)
    told = [
        one for field in found.values() for one in ([field] if isinstance(field, str) else field)
    ]
    assert sum(len(one) for one in told) <= len(data)


def erc8004_answer(data: bytes) -> None:
    chosen, body = pieces(data)
    if chosen % 4 == 0:
        found = erc8004.read_feedback(body)
        assert len(found) <= len(body)
    elif chosen % 4 == 1:
        assert len(erc8004.read_addresses(body)) * 32 <= len(body)
    elif chosen % 4 == 2:
        assert len(erc8004.read_text(body)) <= len(body)
    else:
        assert re.fullmatch("0x[0-9a-f]{40}|None", str(erc8004.read_address(body)))


def event_log(data: bytes) -> None:
    rows: Any = asking.decode(data)
    for row in rows if is_array(rows) else [rows]:
        assert _log(row).block >= 0


def rpc_quantity(data: bytes) -> None:
    quantity(asking.decode(data))


def solana_account(data: bytes) -> None:
    chosen, body = pieces(data)
    if chosen % 3 == 0:
        found = read_agent(body)
        assert addresses.encode(addresses.decode(found.owner) or b"") == found.owner
    elif chosen % 3 == 1:
        stats = read_atom(body)
        assert stats.unique_callers >= 0
    else:
        is_burnt(body)
        assert len(addresses.decode(read_core_owner(body)) or b"") == 32


def solana_rpc(data: bytes) -> None:
    """An account as a node tells it."""
    row = asking.decode(data)
    solana._data_of(solana._account_of(row), ASSET)


def base58_text(data: bytes) -> None:
    assert addresses.decode(addresses.encode(data[:90])) == data[:90]
    found = addresses.decode(text(data))
    if found is not None:
        assert addresses.encode(found) == text(data)
        if len(found) == 32:
            agent_address("devnet", text(data))


def index_rows(data: bytes) -> None:
    chosen, body = pieces(data)
    query = index.feedback_page(ASSET, 0)
    rows = query.rows(asking.decode(body), graphql=chosen % 2 == 1)
    if chosen % 3 == 0:
        index.entries_of(rows, ASSET)
    elif chosen % 3 == 1:
        index.asset_of_number(rows, 7)
    else:
        index.assets_of(rows)


def cid(data: bytes) -> None:
    """An `ipfs:` URI, what its CID names, and where a gateway may send us on."""
    found, path = _split_ipfs("ipfs://" + text(data))
    assert len(_sha256_of(found) or b"") in {0, 32}
    assert ".." not in path.split("/")


def redirect(data: bytes) -> None:
    """Wherever a document's server points, the guard can say whether it is called."""
    target = _next_hop("https://a.example/x", text(data))
    parse_target(target, HTTPS_ONLY)


def robots(data: bytes) -> None:
    _disallowed(data.decode("utf-8", "replace"))


def hostile_text(data: bytes) -> None:
    """Descriptions and error messages, as the probes scan them."""
    said = data.decode("utf-8", "replace")
    poison(said)
    leaked_secrets(said)
    leaked_internals(said, ["a.example"])
    looks_alike(said)


def json_depth(data: bytes) -> None:
    """What is said to be shallow enough can be parsed, and is."""
    if is_nested_beyond(data, 8):
        return
    try:
        value = json.loads(data.decode())
    except ValueError:
        return
    assert _depth(value) <= 8


def _depth(value: Any) -> int:
    inner = (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    )
    return 0 if inner is None else 1 + max((_depth(one) for one in inner), default=0)


def multicall_request(data: bytes) -> None:
    """Ours, so that what we ask can be read by whoever answers: every call is in it."""
    from assay.chains.rpc import ContractCall  # noqa: PLC0415

    calls = [
        ContractCall("0x" + "ab" * 20, data[at : at + 7]) for at in range(0, min(len(data), 70), 7)
    ]
    assert all(call.data in encode_aggregate3(calls) for call in calls)


TARGETS = (
    Target("registration", registration, (NotRegistration,), 16_384),
    Target("data_uri", data_uri, (DataUriError,)),
    Target("agent_card", agent_card, (), 16_384),
    Target("rpc_reply", rpc_reply, (rpc_wire.MalformedRpcAnswer,)),
    Target("rpc_batch", rpc_batch, (rpc_wire.MalformedRpcAnswer,)),
    Target("multicall", multicall, (rpc_wire.MalformedRpcAnswer,)),
    Target("multicall_request", multicall_request, (), 128),
    Target("eas_answer", eas_answer, (BadAnswer,)),
    Target("eas_fields", eas_fields, (BadAnswer,)),
    Target("erc8004_answer", erc8004_answer, (BadAnswer,)),
    Target("event_log", event_log, (BadAnswer,)),
    Target("rpc_quantity", rpc_quantity, (ChainUnavailable,), 256),
    Target("solana_account", solana_account, (BadAccount,)),
    Target("solana_rpc", solana_rpc, (BadAccount,)),
    Target("base58_text", base58_text, (), 256),
    Target("index_rows", index_rows, (index.MalformedIndexAnswer,)),
    Target("cid", cid, (DocumentUnavailable,), 512),
    Target("redirect", redirect, (DocumentUnavailable,), 1024),
    Target("robots", robots),
    Target("hostile_text", hostile_text),
    Target("json_depth", json_depth),
)
