"""What became of authorisations, from the chain alone: many at once, and no refusal on one word.

An authorisation is used once, by a transfer or by its cancellation, and both leave a log. Whether
it was used is read at one block; one that is not used at a block younger than its end never will
be. Source: EIP-3009; ADR 0018.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from assay.chains.evm.abi import AbiReader, BadAnswer
from assay.chains.model import ChainUnavailable, Network
from assay.chains.rpc import ContractCall, Returned, Reverted, Rpc, RpcRefused
from assay.common.json import JsonValue, is_object
from assay.common.numbers import NotANumber, hex_number
from assay.common.tasks import all_results
from assay.payments.all_nodes import ENOUGH, ask_nodes, single_nodes
from assay.payments.model import LedgerEntry
from assay.payments.outcomes import PaymentOutcome, Rejected, Settled, Undecided, hashes, is_unused
from assay.payments.x402.codec import authorization_of
from assay.payments.x402.eip3009_contract import CANCELLED, event_of, gas_spent, pays, state_of
from assay.payments.x402.eip3009_logs import Block, Use, block_of, find_uses

UNUSED = Undecided("not used yet", is_unused=True, answers=1)
_EXPIRED = Rejected("expired_unused")
_CANCELLED = Rejected("authorization_cancelled")
_ELSEWHERE = Rejected("authorization_used_elsewhere")

LAG_BLOCKS = 8
"""How much deeper to read when a node has not seen its neighbour's newest block."""

BATCH_MAX = 200
"""Authorisations of one question: what a node answers in time even one by one. Of more, the next
are asked about side by side, so that a slow node holds up nobody at the end of a long list."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the nodes of one question have found, by the ids of entries."""

    uses: dict[str, Use]
    lost: set[str]
    """Those that a node knows to be used, and not by what."""


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Asks one node after the other; each alone, so that its answers are of one mind."""

    rpc: Rpc
    networks: Mapping[str, Network]

    async def find(
        self, entries: Sequence[LedgerEntry], *, every_node: bool = False
    ) -> list[PaymentOutcome]:
        """Of each, in order, as `ask_nodes` says. Raises `ChainUnavailable` when no node answers.

        A refusal is the word of two nodes where the network has two endpoints.
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
            try:  # who could not find it is shown by now what another one has found
                again = await ask_nodes(network, lost, ask, every_node=True)
            except ChainUnavailable:
                return found
            better = dict(zip((one.id for one in lost), again, strict=True))
            return [better.get(one.id, what) for one, what in zip(some, found, strict=True)]

        found = [*await outcomes_of(first)]  # alone: where no node answers, nothing more is asked
        for some, one in zip(more, await all_results(map(outcomes_of, more)), strict=True):
            if isinstance(one, ChainUnavailable):
                found += [Undecided(one.detail or one.message)] * len(some)
            elif isinstance(one, Exception):
                raise one
            else:
                found += one
        return found

    async def reverted(self, entry: LedgerEntry) -> PaymentOutcome:
        """What the receipts of our own attempts say; undecided without any.

        Refused when they are mined, none has paid and the authorisation was still unused there, by
        the word of two nodes where there are two. Undecided and unused only when every node has
        answered, none has a receipt and all say that it is unused. Raises `ChainUnavailable` when
        they cannot say, and when somebody else has used it.
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
        """What one node says of our own attempts: refused by their receipts alone."""
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
        """Raises `ChainUnavailable` where it is used in the last block of these receipts.

        What has just said that it is not may have been a balancer's older node.
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
        except RpcRefused:  # of nodes behind one address, another one was asked
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
        """Of authorisations that are used: by whom, and whether that has paid.

        What another node has found counts where this one's receipt shows it.
        """
        uses, is_complete = await find_uses(self.rpc, node, gone, head)
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
                # after its end, where nobody has to look for it
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
    """Whose receipts show whether it has paid, and what that has cost us.

    `said`: what another node has found, where this one finds nothing.
    """
    ours = hashes(entry.attempt)
    if use is None:
        return ours if said is None else (said.transaction, *ours)
    return ours if use.is_cancelled else (use.transaction, *ours)


def _shown(said: Use | None, receipts: Mapping[str, JsonValue], entry: LedgerEntry) -> Use | None:
    """What another node has found, where the transaction's receipt here shows it."""
    event = event_of(receipts.get(said.transaction), entry) if said else ""
    return Use(said.transaction, is_cancelled=event == CANCELLED) if said and event else None


def burnt(entry: LedgerEntry, receipts: Mapping[str, JsonValue]) -> int | None:
    """Wei that its own attempts have cost, of those that are mined; None where none is known."""
    spent = [gas_spent(receipts.get(transaction)) for transaction in hashes(entry.attempt)]
    known = [wei for wei in spent if wei is not None]
    return sum(known) if known else None


def _block_number(receipt: JsonValue) -> int:
    try:
        return hex_number(receipt.get("blockNumber") if is_object(receipt) else None, 64)
    except NotANumber:
        raise ChainUnavailable("A receipt is of no block.") from None


def _has_ended(entry: LedgerEntry, head: Block) -> bool:
    """Whether the block is too young for it, and every later one as well."""
    return head.time_s >= authorization_of(entry.credential).valid_before


def _is_used(answer: Returned | Reverted) -> bool:
    if isinstance(answer, Reverted):
        raise ChainUnavailable("The asset does not answer.", detail=answer.message)
    try:
        return AbiReader(answer.data).number(0) != 0
    except BadAnswer as error:
        raise ChainUnavailable("The asset's answer is none.", detail=str(error)) from error
