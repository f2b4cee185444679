"""What became of authorisations, from the chain alone: many at once, and no refusal on one word.

An authorisation is used once, by a transfer or by its cancellation, and both leave a log. Whether
it was used is read at one block; one that is not used at a block younger than its end never will
be. Source: EIP-3009; ADR 0018.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from assay.chains.abi import BadAnswer, Reader
from assay.chains.model import ChainUnavailable, Network
from assay.chains.ports import Call, Returned, Reverted, Rpc, RpcRefused
from assay.infra.payments.eip3009_contract import gas_spent, pays, state_of
from assay.infra.payments.eip3009_logs import Block, Use, block_of, find_uses
from assay.kit.json import JsonValue, is_object
from assay.kit.numbers import NotANumber, hex_number
from assay.payments.attempts import hashes
from assay.payments.model import Entry
from assay.payments.outcomes import Outcome, Rejected, Settled, Undecided
from assay.payments.x402_wire import authorization_of

UNUSED = Undecided("not used yet", is_unused=True)
_EXPIRED = Rejected("expired_unused")
_CANCELLED = Rejected("authorization_cancelled")
_ELSEWHERE = Rejected("authorization_used_elsewhere")

LAG_BLOCKS = 8
"""How much deeper to read when a node has not seen its neighbour's newest block."""

TOGETHER_MAX = 200
"""Authorisations of one question: what a node answers in time even one by one."""


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Asks one node after the other; each alone, so that its answers are of one mind."""

    rpc: Rpc
    networks: Mapping[str, Network]

    async def find(self, entries: Sequence[Entry]) -> list[Outcome]:
        """Of each, in order. Raises `ChainUnavailable` when no node answers.

        A refusal is the word of two nodes where the network has two endpoints.
        """
        found = await self._find(entries[:TOGETHER_MAX])
        for start in range(TOGETHER_MAX, len(entries), TOGETHER_MAX):
            some = entries[start : start + TOGETHER_MAX]
            try:
                found += await self._find(some)
            except ChainUnavailable as error:
                detail = error.detail or error.message
                return [*found, *[Undecided(detail)] * (len(entries) - len(found))]
        return found

    async def reverted(self, entry: Entry) -> Outcome:
        """What the receipts of our own attempts say; undecided without any.

        Refused when they are mined, none has paid and the authorisation was still unused there, by
        the word of two nodes where there are two. Raises `ChainUnavailable` when they cannot say,
        and when somebody else has used it.
        """
        agreed = 0
        for node in (nodes := self._nodes(entry)):
            try:
                receipts = await self._receipts(node, hashes(entry.attempt))
            except ChainUnavailable:
                if node is nodes[-1] and not agreed:
                    raise
                continue
            for transaction, receipt in receipts.items():
                if pays(receipt, entry):
                    return Settled(transaction, _burnt(entry, receipts))
            if not any(receipts.values()):
                return Undecided("a node has no receipt yet")
            await self._require_unused(node, entry, receipts)
            agreed += 1
            if agreed == min(2, len(nodes)):
                reverted = Rejected("transaction_failed", _burnt(entry, receipts))
                return replace(reverted, is_agreed=agreed > 1)
        return Undecided("one node alone says that it has failed")

    async def _require_unused(
        self, node: Network, entry: Entry, receipts: Mapping[str, JsonValue]
    ) -> None:
        """Raises `ChainUnavailable` where it is used in the last block of these receipts.

        What has just said that it is not may have been a balancer's older node.
        """
        blocks = [_block_number(one) for one in receipts.values() if one is not None]
        call = Call(entry.asset, state_of(entry.payer, entry.nonce))
        (answer,) = await self.rpc.call_at(node, [call], max(blocks))
        if _is_used(answer):
            raise ChainUnavailable("Somebody else has used it.", detail="used, not found")

    async def _find(self, entries: Sequence[Entry]) -> list[Outcome]:
        nodes = iter(self._nodes(entries[0]))
        found = await self._ask_next(nodes, entries)
        doubtful = [n for n, one in enumerate(found) if isinstance(one, Rejected)]
        if not doubtful or len(self._nodes(entries[0])) == 1:
            return found
        try:
            second = await self._ask_next(nodes, [entries[place] for place in doubtful])
        except ChainUnavailable:
            second = [UNUSED] * len(doubtful)
        for place, other in zip(doubtful, second, strict=True):
            if isinstance(other, Undecided):
                found[place] = Undecided("one node alone says that nothing will be paid")
            else:
                is_refusal = isinstance(other, Rejected)
                found[place] = replace(other, is_agreed=True) if is_refusal else other
        return found

    def _nodes(self, entry: Entry) -> list[Network]:
        """The network as each of its endpoints alone has it."""
        network = self.networks[entry.network]
        return [replace(network, rpc_urls=(url,)) for url in dict.fromkeys(network.rpc_urls)]

    async def _ask_next(self, nodes: Iterator[Network], entries: Sequence[Entry]) -> list[Outcome]:
        """The word of the next node that answers."""
        fault = ChainUnavailable("No other endpoint is configured.")
        for node in nodes:
            try:
                return await self._ask(node, entries)
            except ChainUnavailable as error:
                fault = error
        raise fault

    async def _ask(self, node: Network, entries: Sequence[Entry]) -> list[Outcome]:
        head = await block_of(self.rpc, node, "latest")
        calls = [Call(one.asset, state_of(one.payer, one.nonce)) for one in entries]
        try:
            answers = await self.rpc.call_at(node, calls, head.number)
        except RpcRefused:  # of nodes behind one address, another one was asked
            head = await block_of(self.rpc, node, hex(max(0, head.number - LAG_BLOCKS)))
            answers = await self.rpc.call_at(node, calls, head.number)
        used = [_is_used(answer) for answer in answers]
        spent = [one for one, is_used in zip(entries, used, strict=True) if is_used]
        ends = await self._spent(node, spent, head) if spent else {}
        return [
            ends[one.id] if is_used else _EXPIRED if _has_ended(one, head) else UNUSED
            for one, is_used in zip(entries, used, strict=True)
        ]

    async def _spent(
        self, node: Network, spent: Sequence[Entry], head: Block
    ) -> dict[str, Outcome]:
        """Of authorisations that are used: by whom, and whether that has paid."""
        uses, is_complete = await find_uses(self.rpc, node, spent, head)
        asked = {one.id: _to_ask(one, uses.get(one.id)) for one in spent}
        receipts = await self._receipts(node, [one for some in asked.values() for one in some])
        ends: dict[str, Outcome] = {}
        for one in spent:
            shown = {transaction: receipts[transaction] for transaction in asked[one.id]}
            paid = next((t for t, receipt in shown.items() if pays(receipt, one)), None)
            use = uses.get(one.id)
            if paid is not None:
                ends[one.id] = Settled(paid, _burnt(one, shown))
            elif use is not None and use.is_cancelled:
                ends[one.id] = _CANCELLED
            elif use is not None and shown[use.transaction] is not None:
                ends[one.id] = _ELSEWHERE
            elif use is None and one.id in is_complete and _has_ended(one, head):
                ends[one.id] = _CANCELLED  # after its end, where nobody has to look for it
            else:
                ends[one.id] = Undecided("used, not found")
        return ends

    async def _receipts(self, node: Network, transactions: Sequence[str]) -> dict[str, JsonValue]:
        asked = list(dict.fromkeys(transactions))
        requests = [("eth_getTransactionReceipt", (one,)) for one in asked]
        return dict(zip(asked, await self.rpc.request_all(node, requests), strict=True))


def _to_ask(entry: Entry, use: Use | None) -> Sequence[str]:
    """Whose receipts show whether it has paid."""
    if use is None:
        return hashes(entry.attempt)
    return () if use.is_cancelled else (use.transaction,)


def _burnt(entry: Entry, receipts: Mapping[str, JsonValue]) -> int | None:
    """Wei that its own attempts have cost, of those that are mined; None where none is known."""
    spent = [gas_spent(receipts.get(transaction)) for transaction in hashes(entry.attempt)]
    known = [wei for wei in spent if wei is not None]
    return sum(known) if known else None


def _block_number(receipt: JsonValue) -> int:
    try:
        return hex_number(receipt.get("blockNumber") if is_object(receipt) else None, 64)
    except NotANumber:
        raise ChainUnavailable("A receipt is of no block.") from None


def _has_ended(entry: Entry, head: Block) -> bool:
    """Whether the block is too young for it, and every later one as well."""
    return head.time_s >= authorization_of(entry.credential).valid_before


def _is_used(answer: Returned | Reverted) -> bool:
    if isinstance(answer, Reverted):
        raise ChainUnavailable("The asset does not answer.", detail=answer.message)
    try:
        return Reader(answer.data).number(0) != 0
    except BadAnswer as error:
        raise ChainUnavailable("The asset's answer is none.", detail=str(error)) from error
