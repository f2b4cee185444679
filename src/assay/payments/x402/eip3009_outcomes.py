"""Finds outcomes of authorisations from the chain alone, many at once.

One search of the logs finds which transactions used or cancelled many authorisations (events
`AuthorizationUsed` and `AuthorizationCanceled`). An authorisation is used once, by a transfer or by
its cancellation, and both leave a log. Whether it was used is read at one block. If it is not used
at a block younger than its end, it never will be. No refusal rests on one node's word. Source:
EIP-3009; ADR 0018.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from assay.chains.evm.abi import AbiReader, BadAnswer
from assay.chains.model import ChainUnavailable, Network
from assay.chains.rpc import ContractCall, Returned, Reverted, Rpc, RpcRefused
from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.common.numbers import NotANumber, hex_number
from assay.common.tasks import all_results
from assay.payments.finality import ENOUGH, ask_nodes, single_nodes
from assay.payments.model import LedgerEntry
from assay.payments.outcomes import PaymentOutcome, Rejected, Settled, Undecided, hashes, is_unused
from assay.payments.x402.codec import authorization_of
from assay.payments.x402.eip3009 import (
    CANCELLED,
    USED,
    event_of,
    gas_spent,
    key_topics,
    pays,
    state_of,
)

RECENT = (100, 1900)
"""Blocks that are searched first, back from the newest: over an hour on Base."""

WINDOW = sum(RECENT)
"""Blocks of one search: what public nodes answer. Source: evm-nodes.md#log-ranges."""

NARROW = 5
"""Blocks that every node searches at once; if a node refuses more, it is asked for the most recent
ones in such ranges. Source: evm-nodes.md#log-ranges."""

EARLIER_S = 600
"""How far a chain's clock may be behind ours when an authorisation is claimed."""

_NEAR_ENOUGH = 64
"""Blocks by which a search may begin too early."""

_HASH = re.compile(r"0x[0-9a-fA-F]{64}")


@dataclass(frozen=True, slots=True)
class Block:
    """A block's number, and its time in seconds since 1970."""

    number: int
    time_s: int


@dataclass(frozen=True, slots=True)
class Use:
    """The transaction that used an authorisation, and whether it cancelled it."""

    transaction: str
    is_cancelled: bool


async def block_of(rpc: Rpc, node: Network, tag: str) -> Block:
    """Return a block by its number in hex, or by its name. Raises `ChainUnavailable`."""
    found = await rpc.request(node, "eth_getBlockByNumber", (tag, False))
    shown: JsonObject = found if is_object(found) else {}
    try:
        return Block(hex_number(shown.get("number"), 64), hex_number(shown.get("timestamp"), 64))
    except NotANumber:
        raise ChainUnavailable("The chain has no such block.", detail=tag) from None


async def _find_uses(
    rpc: Rpc, node: Network, spent: Sequence[LedgerEntry], head: Block
) -> tuple[Mapping[str, Use], frozenset[str]]:
    """Return uses by the ids of their entries, and the entries whose lifetime was searched.

    What a node refuses to search is neither found nor searched. Raises `ChainUnavailable`.
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
    """Search when the oldest was claimed, in one window; the others follow when it has ended."""
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
    """Return the uses in these blocks; None if the node refuses the search."""
    try:
        logs = await rpc.request(node, "eth_getLogs", (_asked(entries, first, last),))
    except RpcRefused:
        return None
    return _uses_in(logs, entries)


async def _search_narrowly(
    rpc: Rpc, node: Network, entries: Sequence[LedgerEntry], first: int, last: int
) -> dict[str, Use] | None:
    """Search a node that takes few blocks at once, in one batch."""
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
    """Return the query of `eth_getLogs` for both events of all of them."""
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
        # If a node reports both events, the transfer counts, and its receipt decides.
        if entry_id and (kind == USED or (kind == CANCELLED and entry_id not in uses)):
            uses[entry_id] = use
    return uses


def _read(log: JsonValue) -> tuple[str, tuple[str, str, str], Use]:
    """Return the event, its authorisation and the transaction; malformed logs match nothing."""
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
    """Return a time at which it cannot have been used yet: it was unused when claimed."""
    return entry.created_at.timestamp() - EARLIER_S


UNUSED = Undecided("not used yet", is_unused=True, answers=1)
_EXPIRED = Rejected("expired_unused")
_CANCELLED = Rejected("authorization_cancelled")
_ELSEWHERE = Rejected("authorization_used_elsewhere")

LAG_BLOCKS = 8
"""How much deeper to read if a node has not seen its neighbour's newest block."""

BATCH_MAX = 200
"""Authorisations of one question, which a node answers in time even one by one. Further ones are
asked about concurrently, so that a slow node delays nobody at the end of a long list."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the nodes of one question have found, by the ids of entries."""

    uses: dict[str, Use]
    lost: set[str]
    """Those that a node knows to be used, without knowing by what."""


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Asks one node after the other, each alone, so that its answers are consistent."""

    rpc: Rpc
    networks: Mapping[str, Network]

    async def find(
        self, entries: Sequence[LedgerEntry], *, every_node: bool = False
    ) -> list[PaymentOutcome]:
        """Return each outcome, in order, like `ask_nodes`.

        A refusal needs the word of two nodes if the network has two endpoints. Raises
        `ChainUnavailable` if no node answers.
        """
        network = self.networks[entries[0].network]
        starts = range(0, len(entries), BATCH_MAX)
        first, *more = [entries[start : start + BATCH_MAX] for start in starts]

        async def outcomes_of(some: Sequence[LedgerEntry]) -> Sequence[PaymentOutcome]:
            seen = _Seen({}, set())
            ask = partial(self._ask, seen=seen)
            found = await ask_nodes(network, some, ask, every_node=every_node)
            lost = [one for one in some if one.id in seen.lost and one.id in seen.uses]
            if not lost:
                return found
            try:  # a node that could not find it now learns what another one has found
                again = await ask_nodes(network, lost, ask, every_node=True)
            except ChainUnavailable:
                return found
            better = dict(zip((one.id for one in lost), again, strict=True))
            return [better.get(one.id, what) for one, what in zip(some, found, strict=True)]

        found = [*await outcomes_of(first)]  # alone: if no node answers, nothing more is asked
        for some, one in zip(more, await all_results(map(outcomes_of, more)), strict=True):
            if isinstance(one, ChainUnavailable):
                found += [Undecided(one.detail or one.message)] * len(some)
            elif isinstance(one, Exception):
                raise one
            else:
                found += one
        return found

    async def reverted(self, entry: LedgerEntry) -> PaymentOutcome:
        """Return what the receipts of our own attempts say; undecided without any.

        It is a refusal if they are mined, none has paid, and the authorisation was still unused
        there, by the word of two nodes if there are two. It is undecided and unused only if every
        node has answered, none has a receipt, and all say that it is unused. Raises
        `ChainUnavailable` if they cannot say, and if somebody else has used it.
        """
        nodes, outcomes_of = single_nodes(self.networks[entry.network]), list[PaymentOutcome]()
        fault = ChainUnavailable("No endpoint is configured.")
        for node in nodes:
            try:
                found, receipts = await self._attempts(node, entry)
            except ChainUnavailable as error:
                fault = error
                continue
            if isinstance(found, Settled):
                return found
            outcomes_of.append(found)
            if isinstance(found, Rejected):
                await self._require_unused(node, entry, receipts)
        if not outcomes_of:
            raise fault
        refusals = [one for one in outcomes_of if isinstance(one, Rejected)]
        if len(refusals) >= min(ENOUGH, len(nodes)):
            return replace(refusals[-1], is_agreed=len(nodes) > 1)
        if refusals:
            return Undecided("one node alone says that it has failed", answers=len(outcomes_of))
        is_everybodys = len(outcomes_of) == len(nodes) and all(
            is_unused(one) for one in outcomes_of
        )
        return Undecided("no node has a receipt yet", is_unused=is_everybodys)

    async def _attempts(
        self, node: Network, entry: LedgerEntry
    ) -> tuple[PaymentOutcome, Mapping[str, JsonValue]]:
        """Return what one node says of our own attempts: refused by their receipts alone."""
        receipts = await self._receipts(node, hashes(entry.attempt))
        for transaction, receipt in receipts.items():
            if pays(receipt, entry):
                return Settled(transaction, burnt(entry, receipts)), receipts
        if any(receipts.values()):
            return Rejected("transaction_failed", burnt(entry, receipts)), receipts
        (found,) = await self._ask(node, [entry])
        is_refusal = isinstance(found, Rejected)
        return (Undecided(found.reason) if is_refusal else found), receipts

    async def _require_unused(
        self, node: Network, entry: LedgerEntry, receipts: Mapping[str, JsonValue]
    ) -> None:
        """Raise `ChainUnavailable` if it is used in the last block of these receipts.

        The answer that says that it is not used may come from a balancer's older node.
        """
        blocks = [_block_number(one) for one in receipts.values() if one is not None]
        call = ContractCall(entry.asset, state_of(entry.payer, entry.nonce))
        (answer,) = await self.rpc.call_at(node, [call], max(blocks))
        if _is_used(answer):
            raise ChainUnavailable("Somebody else has used it.", detail="used, not found")

    async def _ask(
        self, node: Network, entries: Sequence[LedgerEntry], seen: _Seen | None = None
    ) -> list[PaymentOutcome]:
        head = await block_of(self.rpc, node, "latest")
        calls = [ContractCall(one.asset, state_of(one.payer, one.nonce)) for one in entries]
        try:
            answers = await self.rpc.call_at(node, calls, head.number)
        except RpcRefused:  # another node behind the same address was asked
            head = await block_of(self.rpc, node, hex(max(0, head.number - LAG_BLOCKS)))
            answers = await self.rpc.call_at(node, calls, head.number)
        used = [_is_used(answer) for answer in answers]
        spent = [one for one, is_used in zip(entries, used, strict=True) if is_used]
        ends = await self._spent(node, spent, head, seen or _Seen({}, set())) if spent else {}
        return [
            ends[one.id] if is_used else _EXPIRED if _has_ended(one, head) else UNUSED
            for one, is_used in zip(entries, used, strict=True)
        ]

    async def _spent(
        self, node: Network, gone: Sequence[LedgerEntry], head: Block, seen: _Seen
    ) -> dict[str, PaymentOutcome]:
        """Return for used authorisations who used them, and whether that has paid.

        What another node has found counts if this node's receipt shows it.
        """
        uses, is_complete = await _find_uses(self.rpc, node, gone, head)
        asked = {one.id: _to_ask(one, uses.get(one.id), seen.uses.get(one.id)) for one in gone}
        receipts = await self._receipts(node, [one for some in asked.values() for one in some])
        ends: dict[str, PaymentOutcome] = {}
        for one in gone:
            shown = {transaction: receipts[transaction] for transaction in asked[one.id]}
            paid = next((t for t, receipt in shown.items() if pays(receipt, one)), None)
            use = uses.get(one.id) or _shown(seen.uses.get(one.id), shown, one)
            spent = burnt(one, shown)
            if paid is not None:
                ends[one.id] = Settled(paid, spent)
            elif use is not None and use.is_cancelled:
                ends[one.id] = replace(_CANCELLED, gas_wei=spent)
            elif use is not None and shown[use.transaction] is not None:
                ends[one.id] = replace(_ELSEWHERE, gas_wei=spent)
            elif use is None and one.id in is_complete and _has_ended(one, head):
                # after its end, when nobody searches for it
                ends[one.id] = replace(_CANCELLED, gas_wei=spent)
            else:
                ends[one.id] = Undecided("used, not found", is_used=True)
                seen.lost.add(one.id)
        seen.uses.update(uses)
        return ends

    async def _receipts(self, node: Network, transactions: Sequence[str]) -> dict[str, JsonValue]:
        asked = list(dict.fromkeys(transactions))
        requests = [("eth_getTransactionReceipt", (one,)) for one in asked]
        return dict(zip(asked, await self.rpc.request_all(node, requests), strict=True))


def _to_ask(entry: LedgerEntry, use: Use | None, said: Use | None) -> Sequence[str]:
    """Return the transactions whose receipts show whether it has paid, and our cost.

    `said`: what another node has found, if this one finds nothing.
    """
    ours = hashes(entry.attempt)
    if use is None:
        return ours if said is None else (said.transaction, *ours)
    return ours if use.is_cancelled else (use.transaction, *ours)


def _shown(said: Use | None, receipts: Mapping[str, JsonValue], entry: LedgerEntry) -> Use | None:
    """Return what another node has found, if the transaction's receipt here shows it."""
    event = event_of(receipts.get(said.transaction), entry) if said else ""
    return Use(said.transaction, is_cancelled=event == CANCELLED) if said and event else None


def burnt(entry: LedgerEntry, receipts: Mapping[str, JsonValue]) -> int | None:
    """Return the wei that its own mined attempts have cost; None if none is known."""
    spent = [gas_spent(receipts.get(transaction)) for transaction in hashes(entry.attempt)]
    known = [wei for wei in spent if wei is not None]
    return sum(known) if known else None


def _block_number(receipt: JsonValue) -> int:
    try:
        return hex_number(receipt.get("blockNumber") if is_object(receipt) else None, 64)
    except NotANumber:
        raise ChainUnavailable("A receipt is of no block.") from None


def _has_ended(entry: LedgerEntry, head: Block) -> bool:
    """Return whether the block is too young for it, and every later one as well."""
    return head.time_s >= authorization_of(entry.credential).valid_before


def _is_used(answer: Returned | Reverted) -> bool:
    if isinstance(answer, Reverted):
        raise ChainUnavailable("The asset does not answer.", detail=answer.message)
    try:
        return AbiReader(answer.data).number(0) != 0
    except BadAnswer as error:
        raise ChainUnavailable("The asset's answer is none.", detail=str(error)) from error
