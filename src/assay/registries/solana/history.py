"""Reads an address's history on a Solana cluster (conventions.md#signals-and-score).

Any party can name another's address in a transaction, so a mention proves nothing: only the age of
a transaction that the address itself signed counts.
"""

from collections.abc import Mapping, Sequence

from assay.chains.model import Account, Network
from assay.chains.rpc import Rpc
from assay.common.clock import Clock
from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.common.numbers import NotANumber, whole_number

SIGNATURES_READ = 1000
"""Newest transactions examined: the most a node lists at once."""

DAY_S = 86_400
LAMPORT_IN_WEI = 10**9
"""A lamport is 10^-9 SOL; balances are compared on the scale of coins with 18 decimals."""


class Histories:
    """Reads the history of addresses."""

    def __init__(self, rpc: Rpc, clock: Clock) -> None:
        self._rpc = rpc
        self._clock = clock

    async def account(self, network: Network, address: str) -> Account:
        """Return what is known of an address now. Raises `ChainUnavailable`."""
        options = {"commitment": "confirmed"}
        answer = await self._rpc.request(network, "getBalance", [address, options])
        balance = _count(answer.get("value")) if is_object(answer) else None
        oldest = await self._oldest(network, [address])
        first_s, count = oldest.get(address, (None, None))
        return Account(
            transactions=count,
            is_contract=not _on_curve(address),
            balance=None if balance is None else balance * LAMPORT_IN_WEI,
            since_days=None if first_s is None else self._days_since(first_s),
        )

    def _days_since(self, time_s: int) -> int:
        return max(0, int(self._clock.now().timestamp()) - time_s) // DAY_S

    async def _oldest(
        self, network: Network, addresses: Sequence[str]
    ) -> Mapping[str, tuple[int | None, int]]:
        """Return by address the oldest transaction's time, if it signed that, and a count."""
        options: JsonObject = {"limit": SIGNATURES_READ, "commitment": "confirmed"}
        asked = [("getSignaturesForAddress", (address, options)) for address in addresses]
        listed = await self._rpc.request_all(network, asked)
        rows = {a: _last(r) for a, r in zip(addresses, listed, strict=True) if is_array(r)}
        signatures = [str(row.get("signature")) for row in rows.values() if row is not None]
        transactions = await self._transactions(network, signatures)
        found: dict[str, tuple[int | None, int]] = {}
        for address, answer in zip(addresses, listed, strict=True):
            row = rows.get(address)
            if is_array(answer):
                signed = row is not None and address in _signers(
                    transactions.get(str(row.get("signature")))
                )
                time_s = _count(row.get("blockTime")) if row is not None and signed else None
                found[address] = (time_s, len(answer))
        return found

    async def _transactions(
        self, network: Network, signatures: Sequence[str]
    ) -> Mapping[str, JsonValue]:
        options: JsonObject = {
            "encoding": "json",
            "commitment": "confirmed",
            "maxSupportedTransactionVersion": 0,
        }
        asked = [("getTransaction", (one, options)) for one in signatures]
        answers = await self._rpc.request_all(network, asked) if asked else ()
        return dict(zip(signatures, answers, strict=True))


def _count(value: JsonValue) -> int | None:
    """Return lamports or seconds: numbers that fit 64 bits."""
    try:
        return whole_number(value, 2**64 - 1)
    except NotANumber:
        return None


def _last(rows: Sequence[JsonValue]) -> JsonObject | None:
    """Return the oldest row: nodes list the newest first."""
    last = rows[-1] if rows else None
    return last if is_object(last) else None


def _signers(answer: JsonValue) -> Sequence[JsonValue]:
    """Return the first accounts of a message, its signers. Source: Solana's transaction format."""
    transaction = answer.get("transaction") if is_object(answer) else None
    message = transaction.get("message") if is_object(transaction) else None
    if not is_object(message):
        return ()
    keys, header = message.get("accountKeys"), message.get("header")
    count = header.get("numRequiredSignatures") if is_object(header) else None
    return keys[:count] if is_array(keys) and isinstance(count, int) and count > 0 else ()


def _on_curve(address: str) -> bool:
    """Return whether a key can sign for the address; the others belong to programs."""
    from solders.pubkey import Pubkey  # noqa: PLC0415 - 25 ms and 14 MiB that only Solana needs

    return Pubkey.from_string(address).is_on_curve()
