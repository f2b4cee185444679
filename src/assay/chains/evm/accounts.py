"""Reads the current state of an account on an EVM chain."""

from collections.abc import Sequence

from assay.chains.model import Account, ChainUnavailable, Network
from assay.chains.rpc import Rpc
from assay.common.json import JsonObject, JsonValue, is_object
from assay.common.numbers import NotANumber, hex_number

DAYS_LOOKED_AT = (7, 30, 90, 365)
"""Days ago for which an account's transactions are counted, if the node still has that state."""

_DAY_S = 86_400
_SAMPLE_BLOCKS = 1000
_U64 = 64


class Accounts:
    """Reads accounts of one family of chains."""

    def __init__(self, rpc: Rpc) -> None:
        self._rpc = rpc

    async def account(self, network: Network, address: str) -> Account:
        """Return the account. Raises `ChainUnavailable`."""
        head, head_s = await self._head(network)
        blocks = await self._blocks_ago(network, head, head_s)
        at: JsonValue = hex(head)
        asked: list[tuple[str, Sequence[JsonValue]]] = [
            ("eth_getTransactionCount", [address, at]),
            ("eth_getCode", [address, at]),
            ("eth_getBalance", [address, at]),
        ]
        asked += [("eth_getTransactionCount", [address, hex(block)]) for _, block in blocks]
        answers = await self._rpc.request_all(network, asked)
        code = answers[1]
        before = [
            days
            for (days, _), answer in zip(blocks, answers[3:], strict=True)
            if (_number(answer) or 0) > 0
        ]
        return Account(
            transactions=_number(answers[0]),
            is_contract=code != "0x" if isinstance(code, str) else None,
            balance=_number(answers[2]),
            since_days=max(before, default=0) if any(a is not None for a in answers[3:]) else None,
        )

    async def _head(self, network: Network) -> tuple[int, int]:
        """Return number and time of the newest block."""
        block = await self._rpc.request(network, "eth_getBlockByNumber", ["latest", False])
        found = _block(block)
        if found is None:
            raise ChainUnavailable(
                f"The chain {network.slug} gave no answer that can be believed.", retry_after_s=10
            )
        return found

    async def _blocks_ago(self, network: Network, head: int, head_s: int) -> list[tuple[int, int]]:
        """Return the days examined, each with the block from about that many days ago."""
        earlier = max(0, head - _SAMPLE_BLOCKS)
        (sample,) = await self._rpc.request_all(
            network, [("eth_getBlockByNumber", [hex(earlier), False])]
        )
        found = _block(sample)
        if found is None or found[0] != earlier or head == earlier or head_s <= found[1]:
            return []
        seconds = (head_s - found[1]) / (head - earlier)
        ago = [(days, head - int(days * _DAY_S / seconds)) for days in DAYS_LOOKED_AT]
        return [(days, block) for days, block in ago if block > 0]


def _block(answer: JsonValue) -> tuple[int, int] | None:
    block: JsonObject = answer if is_object(answer) else {}
    try:
        return hex_number(block.get("number"), _U64), hex_number(block.get("timestamp"), _U64)
    except NotANumber:
        return None


def _number(answer: JsonValue) -> int | None:
    """Read a quantity or a balance."""
    try:
        return hex_number(answer, 256)
    except NotANumber:
        return None
