"""Receipts of many payments in one exchange. Implements `payments.witness.Receipts`."""

from collections.abc import Mapping, Sequence

from assay.chains.model import ChainUnavailable, Network
from assay.chains.ports import Rpc
from assay.infra.payments.eip3009_contract import pays
from assay.kit.json import JsonObject, JsonValue, is_object
from assay.kit.numbers import NotANumber, hex_number
from assay.payments.model import Entry


class ChainReceipts:
    """Receipts as the endpoints of `chains` show them."""

    def __init__(self, rpc: Rpc, chains: Mapping[str, Network]) -> None:
        self._rpc = rpc
        self._chains = chains

    async def depths(self, network: str, entries: Sequence[Entry]) -> Sequence[int]:
        named = [entry for entry in entries if entry.attempt.transaction]
        if not named:
            return [0] * len(entries)
        asked = [("eth_getTransactionReceipt", (one.attempt.transaction,)) for one in named]
        # The height comes last: no receipt is then of a block above it.
        *receipts, head = await self._rpc.request_all(
            self._chains[network], [*asked, ("eth_blockNumber", ())]
        )
        height = _number(head)
        if height is None:
            raise ChainUnavailable(f"{network} cannot be read right now", detail="no height")
        depths = {
            one.id: _depth(receipt, one, height)
            for one, receipt in zip(named, receipts, strict=True)
        }
        return [depths.get(entry.id, 0) for entry in entries]


def _depth(receipt: JsonValue, entry: Entry, height: int) -> int:
    if not is_object(receipt) or not _paid(receipt, entry):
        return 0
    block = _number(receipt.get("blockNumber"))
    return 0 if block is None else max(height - block + 1, 0)


def _paid(receipt: JsonObject, entry: Entry) -> bool:
    """An MPP transaction was read before it was sent: that it went through is what is left."""
    return pays(receipt, entry) if entry.protocol == "x402" else receipt.get("status") == "0x1"


def _number(value: JsonValue) -> int | None:
    try:
        return hex_number(value, 64)
    except NotANumber:
        return None
