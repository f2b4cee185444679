"""Receipts of many payments in one exchange. Implements `payments.finality.Receipts`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from assay.chains.model import ChainUnavailable, Network
from assay.chains.rpc import Rpc
from assay.common.json import JsonValue, is_object
from assay.common.numbers import NotANumber, hex_number
from assay.payments.model import WatchedPayment
from assay.payments.mpp import transfers as mpp_transfers
from assay.payments.x402 import eip3009_contract


class ChainReceipts:
    """Receipts as the endpoints of `chains` show them."""

    def __init__(self, rpc: Rpc, chains: Mapping[str, Network]) -> None:
        self._rpc = rpc
        self._chains = chains

    async def depths(self, network: str, watched: Sequence[WatchedPayment]) -> Sequence[int]:
        return await self._depths(self._chains[network], watched)

    async def agreed_depths(self, network: str, watched: Sequence[WatchedPayment]) -> Sequence[int]:
        chain, depths_of_nodes = self._chains[network], list[Sequence[int]]()
        urls, fault = dict.fromkeys(chain.rpc_urls), ChainUnavailable("No endpoint is configured.")
        for url in urls:
            try:
                depths_of_nodes.append(await self._depths(replace(chain, rpc_urls=(url,)), watched))
            except ChainUnavailable as error:
                fault = error
        if len(depths_of_nodes) < min(2, len(urls)):
            raise fault
        return [min(depths) for depths in zip(*depths_of_nodes, strict=True)]

    async def _depths(self, chain: Network, watched: Sequence[WatchedPayment]) -> Sequence[int]:
        named = [one for one in watched if one.transaction]
        if not named:
            return [0] * len(watched)
        asked = [("eth_getTransactionReceipt", (one.transaction,)) for one in named]
        # The height comes last: no receipt is then of a block above it.
        *receipts, head = await self._rpc.request_all(chain, [*asked, ("eth_blockNumber", ())])
        height = _number(head)
        if height is None:
            raise ChainUnavailable(f"{chain.slug} cannot be read right now", detail="no height")
        depths = {
            one.id: _depth(receipt, one, height)
            for one, receipt in zip(named, receipts, strict=True)
        }
        return [depths.get(one.id, 0) for one in watched]


def _depth(receipt: JsonValue, one: WatchedPayment, height: int) -> int:
    reads = eip3009_contract if one.protocol == "x402" else mpp_transfers
    return depth_of(receipt, height) if reads.pays(receipt, one) else 0


def depth_of(receipt: JsonValue, height: int) -> int:
    """In how many blocks a transaction stands, its own counted; 0 where it is not mined."""
    block = _number(receipt.get("blockNumber")) if is_object(receipt) else None
    return 0 if block is None else max(height - block + 1, 0)


def _number(value: JsonValue) -> int | None:
    try:
        return hex_number(value, 64)
    except NotANumber:
        return None
