"""Which transactions used or cancelled authorisations: one search of the logs for many of them.

Source: EIP-3009, events `AuthorizationUsed` and `AuthorizationCanceled`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from assay.chains.model import ChainUnavailable, Network
from assay.chains.rpc import Rpc, RpcRefused
from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.common.numbers import NotANumber, hex_number
from assay.payments.model import LedgerEntry
from assay.payments.x402.codec import authorization_of
from assay.payments.x402.eip3009_contract import CANCELLED, USED, key_topics

RECENT = (100, 1900)
"""Blocks searched first, counted back from the newest: over an hour on Base."""

WINDOW = sum(RECENT)
"""Blocks of one search: what public nodes answer. Source: evm-nodes.md#log-ranges."""

NARROW = 5
"""Blocks that every node searches at once; it is asked for the most recent ones so where it refuses
more. Source: evm-nodes.md#log-ranges."""

EARLIER_S = 600
"""How far a chain's clock may be behind ours when an authorisation is claimed."""

_NEAR_ENOUGH = 64
"""Blocks by which a search may begin too early."""

_HASH = re.compile(r"0x[0-9a-fA-F]{64}")


@dataclass(frozen=True, slots=True)
class Block:
    """A block's number, and when it was made in seconds since 1970."""

    number: int
    time_s: int


@dataclass(frozen=True, slots=True)
class Use:
    """The transaction that used an authorisation up, and whether by cancelling it."""

    transaction: str
    is_cancelled: bool


async def block_of(rpc: Rpc, node: Network, tag: str) -> Block:
    """A block by its number in hex, or by its name. Raises `ChainUnavailable`."""
    found = await rpc.request(node, "eth_getBlockByNumber", (tag, False))
    shown: JsonObject = found if is_object(found) else {}
    try:
        return Block(hex_number(shown.get("number"), 64), hex_number(shown.get("timestamp"), 64))
    except NotANumber:
        raise ChainUnavailable("The chain has no such block.", detail=tag) from None


async def find_uses(
    rpc: Rpc, node: Network, spent: Sequence[LedgerEntry], head: Block
) -> tuple[Mapping[str, Use], frozenset[str]]:
    """Uses by the ids of their entries; and the entries all of whose lifetime was searched.

    Raises `ChainUnavailable`. What a node refuses to search is not found, and not searched.
    """
    uses: dict[str, Use] = {}
    first = head.number + 1
    for blocks in RECENT:
        missing = [one for one in spent if one.id not in uses]
        if not missing or first == 0:
            break
        last, first = first - 1, max(0, first - blocks)
        found = await _search(rpc, node, missing, first, last)
        if found is None and blocks == RECENT[0]:
            found = await _search_narrowly(rpc, node, missing, first, last)
        if found is None:
            return uses, frozenset()
        uses |= found
    missing = [one for one in spent if one.id not in uses]
    if not missing:
        return uses, frozenset()
    since = await block_of(rpc, node, hex(first)) if first else Block(0, 0)
    searched = frozenset(one.id for one in missing if _born_s(one) >= since.time_s)
    older = [one for one in missing if one.id not in searched]
    if older:
        found, also_searched = await _search_at_birth(rpc, node, older, head)
        uses |= found
        searched |= also_searched
    return uses, searched


async def _search_at_birth(
    rpc: Rpc, node: Network, older: Sequence[LedgerEntry], head: Block
) -> tuple[Mapping[str, Use], frozenset[str]]:
    """Where the oldest was claimed, in one window; the others' turn comes when it has ended."""
    born_s = min(_born_s(one) for one in older)
    low, high = 0, head.number
    while high - low > _NEAR_ENOUGH:
        middle = (low + high) // 2
        block = await block_of(rpc, node, hex(middle))
        low, high = (middle, high) if block.time_s < born_s else (low, middle)
    last = min(low + WINDOW - 1, head.number)
    found = await _search(rpc, node, older, low, last)
    if found is None:
        return {}, frozenset()
    until = await block_of(rpc, node, hex(last))
    ended = (one for one in older if authorization_of(one.credential).valid_before <= until.time_s)
    return found, frozenset(one.id for one in ended)


async def _search(
    rpc: Rpc, node: Network, entries: Sequence[LedgerEntry], first: int, last: int
) -> dict[str, Use] | None:
    """Those in these blocks; None where the node refuses the search."""
    try:
        logs = await rpc.request(node, "eth_getLogs", (_asked(entries, first, last),))
    except RpcRefused:
        return None
    return _uses_in(logs, entries)


async def _search_narrowly(
    rpc: Rpc, node: Network, entries: Sequence[LedgerEntry], first: int, last: int
) -> dict[str, Use] | None:
    """The same of a node that searches few blocks at once; in one batch, once it has done so."""
    ends = range(last, first - 1, -NARROW)
    pieces = [_asked(entries, max(first, end - NARROW + 1), end) for end in ends]
    newest, *others = [("eth_getLogs", (piece,)) for piece in pieces]
    found = [*await rpc.request_all(node, [newest])]
    if is_array(found[0]):
        found += await rpc.request_all(node, others)
    if not all(is_array(logs) for logs in found):
        return None
    return _uses_in([log for logs in found if is_array(logs) for log in logs], entries)


def _asked(entries: Sequence[LedgerEntry], first: int, last: int) -> JsonObject:
    """What `eth_getLogs` is asked for both events of all of them."""
    keys = [key_topics(one) for one in entries]
    return {
        "address": entries[0].asset,
        "fromBlock": hex(first),
        "toBlock": hex(last),
        "topics": [
            [USED, CANCELLED],
            list(dict.fromkeys(payer for payer, _ in keys)),
            list(dict.fromkeys(nonce for _, nonce in keys)),
        ],
    }


def _uses_in(logs: JsonValue, entries: Sequence[LedgerEntry]) -> dict[str, Use]:
    wanted = {(one.asset, *key_topics(one)): one.id for one in entries}
    uses: dict[str, Use] = {}
    for log in logs if is_array(logs) else ():
        kind, key, use = _read(log)
        entry_id = wanted.get(key)
        # A transfer counts where a node tells of both: then its receipt decides.
        if entry_id and (kind == USED or (kind == CANCELLED and entry_id not in uses)):
            uses[entry_id] = use
    return uses


def _read(log: JsonValue) -> tuple[str, tuple[str, str, str], Use]:
    """The event, whose it is, and the transaction; of no form and so nobody's otherwise."""
    if not is_object(log) or log.get("removed") is True:
        return "", ("", "", ""), Use("", is_cancelled=False)
    topics, shown = log.get("topics"), str(log.get("transactionHash"))
    listed = [str(topic).lower() for topic in topics] if is_array(topics) else []
    if len(listed) != 3 or not _HASH.fullmatch(shown):  # noqa: PLR2004 - event, payer, nonce
        return "", ("", "", ""), Use("", is_cancelled=False)
    kind, payer, nonce = listed
    key = (str(log.get("address")).lower(), payer, nonce)
    return kind, key, Use(shown.lower(), is_cancelled=kind == CANCELLED)


def _born_s(entry: LedgerEntry) -> float:
    """When it cannot have been used yet: it was unused when it was claimed."""
    return entry.created_at.timestamp() - EARLIER_S
