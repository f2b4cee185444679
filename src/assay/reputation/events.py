"""Reads events of registries and listed assets from logs of untrusted nodes, in the background.

Converts feedback values to a scale of 0 to 100. Pure.

Source: EIP-8004, "Reputation Registry": tags are free, only value and decimals are mandatory, and a
few tags have scales of their own.

Reads events into the store, range by range, in the background and rate-limited.

Only blocks at least `TAIL` below the newest are stored. A cursor keeps the hash of its block: if
the chain has another block there, everything from `REWIND` blocks before is deleted. Two processes
may read the same range; one of them stores it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from types import MappingProxyType
from typing import Final

from assay.chains.evm.abi import WORD, AbiReader, BadAnswer, address_word, word
from assay.chains.evm.logs import hex_bytes
from assay.chains.model import ChainUnavailable, Network
from assay.chains.rpc import Rpc, RpcRefused
from assay.common.cache import BoundedMap
from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.common.numbers import NotANumber, hex_number
from assay.registries.erc8004 import DECIMALS_MAX, TAG_CHARS_MAX, VALUE_MAX
from assay.registries.model import Feedback
from assay.reputation.model import Batch, FeedbackRow, NoteRow, OwnerRow, PaymentChain, TransferRow
from assay.reputation.ports import EventCursor, EventKind, EventStore, Stream

_LOW, _HALF, _HIGH = Decimal(0), Decimal(50), Decimal(100)

Scale = Callable[[Decimal], Decimal | None]


def rating_of(feedback: Feedback) -> float | None:
    """Return the rating, 0 to 100; None if it is not an opinion (revenues) or off its scale.

    Negative values are bad on every scale; a tag without its own scale is read as 0 to 100.
    """
    if feedback.is_scored:
        return None if feedback.score is None else float(feedback.score)
    found = _SCALES.get(feedback.tag1.strip().lower(), _out_of_100)(feedback.value)
    return None if found is None else float(min(_HIGH, max(_LOW, found)))


def _out_of_100(value: Decimal) -> Decimal | None:
    return None if value > _HIGH else value


def _yes_or_no(value: Decimal) -> Decimal | None:
    return None if value > 1 else value * _HIGH


def _milliseconds(value: Decimal) -> Decimal:
    """Rate 0 ms as 100 and ten seconds as 0; a negative time is invalid, and bad."""
    return _LOW if value < 0 else _HIGH - value / 100


def _blocks(value: Decimal) -> Decimal:
    """Subtract ten points for every block behind."""
    return _LOW if value < 0 else _HIGH - value * 10


def _yield(value: Decimal) -> Decimal:
    """Rate percent, whatever the period: a loss of 20 is 0, a gain of 20 is 100."""
    return _HALF + value * Decimal("2.5")


def _no_opinion(value: Decimal) -> None:
    del value


_SCALES: Mapping[str, Scale] = MappingProxyType(
    {
        "starred": _out_of_100,
        "uptime": _out_of_100,
        "successrate": _out_of_100,
        "reachable": _yes_or_no,
        "ownerverified": _yes_or_no,
        "responsetime": _milliseconds,
        "blocktimefreshness": _blocks,
        "tradingyield": _yield,
        "revenues": _no_opinion,
    }
)


NEW_FEEDBACK = "0x6a4a61743519c9d648a14e6493f47dbe3ff1aa29e7785c96c8326a205e58febc"
REVOKED = "0x25156fd3288212246d8b008d5921fde376c71ed14ac2e072a506eb06fde6d09d"
RESPONDED = "0xb1c6be0b5b8aef6539e2fac0fd131a2faa7b49edf8e505b5eb0ad487d56051d4"
"""Events of the reputation registry. Source: erc8004.md#events."""

TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
"""ERC-20, and ERC-721 with one topic more."""

AUTHORIZATION_USED = "0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5"
"""`AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)`. Source: EIP-3009."""

LOGS_MAX = 20_000
URI_CHARS_MAX = 512
TIMES_AT_ONCE = 50
DAY_S = 86_400

_EXACT = Context(prec=60)
_INDEXED = 3


@dataclass(frozen=True, slots=True)
class RawLog:
    """An event and its position in its chain."""

    block: int
    tx: str
    index: int
    topics: tuple[bytes, ...]
    data: bytes

    @property
    def name(self) -> str:
        """Return its first topic."""
        return "0x" + self.topics[0].hex() if self.topics else ""


async def head_of(rpc: Rpc, network: Network, tag: str = "latest") -> tuple[int, int, str]:
    """Return number, time and hash of a block. Raises `ChainUnavailable`."""
    answer = await rpc.request(network, "eth_getBlockByNumber", [tag, False])
    block: JsonObject = answer if is_object(answer) else {}
    try:
        number, at_s = hex_number(block.get("number"), 64), hex_number(block.get("timestamp"), 64)
    except NotANumber:
        raise ChainUnavailable(f"{network.slug} has no block {tag}.", retry_after_s=10) from None
    return number, at_s, str(block.get("hash"))


async def fetch_logs(
    rpc: Rpc,
    network: Network,
    addresses: Sequence[str],
    topics: Sequence[JsonValue],
    first: int,
    last: int,
) -> list[RawLog]:
    """Return all events of a range. Raises `ChainUnavailable` and `BadAnswer`."""
    query: JsonValue = {
        "address": addresses[0] if len(addresses) == 1 else list(addresses),
        "topics": list(topics),
        "fromBlock": hex(first),
        "toBlock": hex(last),
    }
    answer = await rpc.request(network, "eth_getLogs", [query])
    if not is_array(answer) or len(answer) > LOGS_MAX:
        raise BadAnswer("eth_getLogs answered no list, or one without end")
    logs = [raw_log(row) for row in answer if not (is_object(row) and row.get("removed") is True)]
    if any(not first <= log.block <= last for log in logs):
        raise BadAnswer("a log of a block that was not asked for")
    return logs


async def _days_of(rpc: Rpc, network: Network, logs: Sequence[RawLog]) -> Mapping[int, int]:
    """Return the day of each block with one of the logs. Raises `ChainUnavailable`."""
    blocks = sorted({log.block for log in logs})
    parts = [blocks[at : at + TIMES_AT_ONCE] for at in range(0, len(blocks), TIMES_AT_ONCE)]
    days: dict[int, int] = {}
    for part in parts:
        asked = [("eth_getBlockByNumber", [hex(block), False]) for block in part]
        answers = await rpc.request_all(network, asked)
        for block, answer in zip(part, answers, strict=True):
            row: JsonObject = answer if is_object(answer) else {}
            try:
                days[block] = hex_number(row.get("timestamp"), 64) // DAY_S
            except NotANumber:
                raise ChainUnavailable(f"{network.slug} has no block {block}.") from None
    return days


async def read_feedback(
    rpc: Rpc, network: Network, first: int, last: int, agent_id: str | None = None
) -> Batch:
    """Read feedback, revocations and responses: of one agent, or of all."""
    about: list[JsonValue] = [] if agent_id is None else ["0x" + word(int(agent_id)).hex()]
    topics: list[JsonValue] = [[NEW_FEEDBACK, REVOKED, RESPONDED], *about]
    logs = await fetch_logs(rpc, network, [network.reputation_registry], topics, first, last)
    whole = [log for log in logs if len(log.topics) >= _INDEXED]
    given = [log for log in whole if log.name == NEW_FEEDBACK]
    days = await _days_of(rpc, network, given)
    return Batch(
        feedback=[row for log in given if (row := _feedback(log, days[log.block]))],
        notes=[_note(log) for log in whole if log.name in {REVOKED, RESPONDED}],
    )


async def read_owners(
    rpc: Rpc, network: Network, first: int, last: int, agent_id: str | None = None
) -> Batch:
    """Read the recipients of agents' tokens."""
    topics: list[JsonValue] = [TRANSFER]
    if agent_id is not None:
        topics += [None, None, "0x" + word(int(agent_id)).hex()]
    logs = await fetch_logs(rpc, network, [network.identity_registry], topics, first, last)
    return Batch(
        owners=[
            OwnerRow(log.tx, log.index, str(_number(log.topics[3])), _address(log.topics[2]),
                     log.block)
            for log in logs
            if len(log.topics) == _INDEXED + 1
        ]
    )  # fmt: skip


async def read_payments(
    rpc: Rpc, chain: PaymentChain, first: int, last: int, payees: Sequence[str]
) -> Batch:
    """Read transfers to and from payees, and which of them were EIP-3009 authorisations."""
    words: list[JsonValue] = ["0x" + address_word(one).hex() for one in payees]
    assets = [asset.address for asset in chain.assets]
    network = chain.network
    incoming = await fetch_logs(rpc, network, assets, [TRANSFER, None, words], first, last)
    outgoing = await fetch_logs(rpc, network, assets, [TRANSFER, words], first, last)
    whole = [log for log in (*incoming, *outgoing) if len(log.topics) == _INDEXED]
    charged = await _charged(rpc, chain, incoming, first, last)
    days = await _days_of(rpc, network, whole)
    rows = {(log.tx, log.index): _transfer(log, chain, days[log.block], charged) for log in whole}
    return Batch(transfers=[rows[key] for key in sorted(rows) if rows[key].amount])


async def read_fundings(
    rpc: Rpc, chain: PaymentChain, first: int, last: int, accounts: Sequence[str]
) -> Batch:
    """Read each account's first incoming transfer of a listed asset in the range."""
    words: list[JsonValue] = ["0x" + address_word(one).hex() for one in accounts]
    assets = [asset.address for asset in chain.assets]
    logs = await fetch_logs(rpc, chain.network, assets, [TRANSFER, None, words], first, last)
    found: dict[str, tuple[str, int]] = {}
    for log in sorted(logs, key=lambda one: (one.block, one.index)):
        if len(log.topics) == _INDEXED and _number(log.data[:WORD]) > 0:
            found.setdefault(_address(log.topics[2]), (_address(log.topics[1]), log.block))
    return Batch(fundings=found)


async def _charged(
    rpc: Rpc, chain: PaymentChain, incoming: Sequence[RawLog], first: int, last: int
) -> frozenset[tuple[str, str]]:
    """Return transaction and payer of every authorisation used for one of the transfers."""
    payers = sorted({_address(log.topics[1]) for log in incoming if len(log.topics) == _INDEXED})
    if chain.charges_only or not payers:
        return frozenset()
    assets = [asset.address for asset in chain.assets]
    used: list[RawLog] = []
    for at in range(0, len(payers), 100):
        words: list[JsonValue] = ["0x" + address_word(p).hex() for p in payers[at : at + 100]]
        topics: list[JsonValue] = [AUTHORIZATION_USED, words]
        used += await fetch_logs(rpc, chain.network, assets, topics, first, last)
    return frozenset((log.tx, _address(log.topics[1])) for log in used if len(log.topics) > 1)


def _transfer(
    log: RawLog, chain: PaymentChain, day: int, charged: frozenset[tuple[str, str]]
) -> TransferRow:
    sender = _address(log.topics[1])
    return TransferRow(
        tx=log.tx,
        log=log.index,
        sender=sender,
        recipient=_address(log.topics[2]),
        amount=transferred(log, chain),
        block=log.block,
        day=day,
        is_charge=chain.charges_only or (log.tx, sender) in charged,
    )


def transferred(log: RawLog, chain: PaymentChain) -> int:
    """Return the amount of a listed asset's transfer, in millionths of a dollar."""
    decimals = {asset.decimals for asset in chain.assets}
    return min(_number(log.data[:WORD]) * 10**6 // 10 ** min(decimals), 2**62)


def _feedback(log: RawLog, day: int) -> FeedbackRow | None:
    """Return the entry; None for data that the registry does not emit."""
    reader = AbiReader(log.data)
    try:
        number, value = reader.number(0, 64), reader.signed(WORD, 128)
        decimals = reader.number(2 * WORD, 8)
        tags = [reader.content(reader.number(at * WORD)) for at in (3, 4)]
        uri = reader.content(reader.number(6 * WORD)).decode("utf-8", "replace")
        digest = log.data[7 * WORD : 8 * WORD]
    except BadAnswer:
        return None
    if decimals > DECIMALS_MAX or abs(value) > VALUE_MAX:
        return None
    tag1, tag2 = (t.decode("utf-8", "replace")[:TAG_CHARS_MAX] for t in tags)
    client, exact = _address(log.topics[2]), _EXACT.scaleb(Decimal(value), -decimals)
    rating = rating_of(Feedback(client, number, exact, decimals, tag1, tag2))
    return FeedbackRow(
        agent_id=str(_number(log.topics[1])),
        client=client,
        number=number,
        block=log.block,
        day=day,
        rating=rating,
        uri=uri if len(uri) <= URI_CHARS_MAX and "\0" not in uri else "",
        digest=digest.hex() if any(digest) else "",
    )


def _note(log: RawLog) -> NoteRow:
    """Read a note.

    `FeedbackRevoked` has the entry's number as a topic, `ResponseAppended` in data.
    """
    revocation = log.name == REVOKED
    number = log.topics[3] if revocation and len(log.topics) > _INDEXED else log.data[:WORD]
    return NoteRow(
        log.tx,
        log.index,
        str(_number(log.topics[1])),
        _address(log.topics[2]),
        _number(number) & (2**63 - 1),
        log.block,
        revocation,
    )


def raw_log(row: JsonValue) -> RawLog:
    """Parse an event as a node returns it. Raises `BadAnswer`."""
    if not is_object(row):
        raise BadAnswer("a log that is no object")
    topics, tx = row.get("topics"), row.get("transactionHash")
    if not is_array(topics) or len(topics) > 4:  # noqa: PLR2004 - topics of an event
        raise BadAnswer("a log without topics")
    words = tuple(hex_bytes(topic) for topic in topics)
    if any(len(one) != WORD for one in words) or len(hex_bytes(tx)) != WORD:
        raise BadAnswer("a log without topics or transaction")
    try:
        block = hex_number(row.get("blockNumber"), 62)
        index = hex_number(row.get("logIndex"), 31)
    except NotANumber:
        raise BadAnswer("a log without its block") from None
    return RawLog(block, str(tx).lower(), index, words, hex_bytes(row.get("data")))


def _address(topic: bytes) -> str:
    return "0x" + topic[12:].hex()


def _number(raw: bytes) -> int:
    return int.from_bytes(raw)


TAIL = 128
"""Blocks that may still be reorganised."""

REWIND = 5_000
RANGE = 10_000
"""Initial size of a range in blocks, and what an evaluation reads at once beyond the index."""

RANGE_MOST = 1_000_000
SUBJECTS = 100
"""Addresses in one query."""

NETWORKS_KEPT = 200

KINDS: Final[Sequence[EventKind]] = ("feedback", "owners", "payments", "funding")


class Indexer:
    """Reads one range at a time of the stream that is furthest behind."""

    def __init__(
        self, rpc: Rpc, store: EventStore, chains: Mapping[str, PaymentChain], tail: int = TAIL
    ) -> None:
        self._rpc = rpc
        self._store = store
        self._chains = chains
        self._tail = tail
        self._sizes: BoundedMap[tuple[str, str], int] = BoundedMap(NETWORKS_KEPT * len(KINDS))

    async def step(self, network: Network, kinds: Sequence[EventKind] = KINDS) -> bool:
        """Read the next range of each kind; return whether there is more to read now.

        Raises `ChainUnavailable` and `BadAnswer`; unread ranges are read again.
        """
        head, _, _ = await head_of(self._rpc, network)
        more = False
        for kind in kinds:
            more |= await self._step(network, kind, head - self._tail)
        return more

    async def _step(self, network: Network, kind: EventKind, last: int) -> bool:
        due = await self._store.due(kind, network.slug, last, SUBJECTS)
        if not due:
            return False
        streams, was = [stream for stream, _ in due], due[0][1]
        if was.block_hash and not await self._stands(network, was):
            await self._store.rewind(network.slug, max(-1, was.block - REWIND))
            return True
        key = network.slug, kind
        size = self._sizes.get(key) or RANGE
        until = min(last, was.block + size)
        try:
            batch = await self.read(network, kind, was.block + 1, until, streams)
        except (RpcRefused, BadAnswer):
            self._sizes.put(key, max(1, size // 2))
            if size == 1:
                raise
            return True
        _, _, block_hash = await head_of(self._rpc, network, hex(until))
        self._sizes.put(key, min(RANGE_MOST, size * 2))
        now = EventCursor(until, block_hash, is_whole=until == last)
        await self._store.advance(streams, was, now, batch)
        return True

    async def read(
        self, network: Network, kind: EventKind, first: int, last: int, streams: Sequence[Stream]
    ) -> Batch:
        """Read a range of streams of one kind. Raises `ChainUnavailable` and `BadAnswer`."""
        if kind == "feedback":
            return await read_feedback(self._rpc, network, first, last)
        if kind == "owners":
            return await read_owners(self._rpc, network, first, last)
        chain, subjects = self._chains.get(network.slug), [one.subject for one in streams]
        if chain is None:
            raise ChainUnavailable(f"{network.slug} has no listed asset.")
        reading = read_payments if kind == "payments" else read_fundings
        return await reading(self._rpc, chain, first, last, subjects)

    async def _stands(self, network: Network, cursor: EventCursor) -> bool:
        """Return whether the chain still has the block that was read last."""
        try:
            _, _, block_hash = await head_of(self._rpc, network, hex(cursor.block))
        except RpcRefused:
            return False
        return block_hash == cursor.block_hash
