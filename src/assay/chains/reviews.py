"""Who gave feedback, and when: read from the reputation registry's events and from accounts.

All of it is best effort within `BUDGET_S`: what a node does not tell stays unknown, and whoever
weighs feedback counts the unknown as missing. Source: EIP-8004, `NewFeedback`; facts, evm 1.2.
"""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence

from assay.chains import erc8004
from assay.chains.abi import BadAnswer, Reader, address_word, word
from assay.chains.logs import Log, Logs, read_logs
from assay.chains.model import Account, ChainUnavailable, Network, OnchainAgent, Reviewer, Reviewers
from assay.chains.ports import Returned, Rpc
from assay.kit.clock import Clock
from assay.kit.json import JsonObject, JsonValue, is_object
from assay.kit.numbers import NotANumber, hex_number

NEW_FEEDBACK = "0x6a4a61743519c9d648a14e6493f47dbe3ff1aa29e7785c96c8326a205e58febc"
"""`NewFeedback(uint256 indexed, address indexed, uint64, ...)`. Source: facts, evm 1.2."""

BUDGET_S = 2.5
"""For events, and as much again for accounts; below an endpoint's own time limit."""

REVIEWERS_MAX = 2000
"""Reviewers looked at: the first half and the last, so that a flood cannot push the others out."""

TOPICS_MAX = 500
"""Reviewers whose events are asked for: those that sent most; the rest have little to lose."""

BATCH = 50
"""Requests in one body."""

RATED_KEPT = 20
"""Other agents kept of one reviewer."""

RECIPROCAL_MAX = 50
"""Agents rated by this agent's owner whose own owners are looked up."""

TIMES_MAX = 24
"""Blocks whose time is asked for; between them time is taken to pass evenly."""

DAYS_LOOKED_AT = (7, 30, 90, 365)
"""Days ago on which an account's transactions are counted, where the node still knows."""

_DAY_S = 86_400
_ADDRESS_WORDS = 12
_SAMPLE_BLOCKS = 1000
_U64 = 64


def crowd_key(reviewers: Sequence[str]) -> str:
    """One short name for the same reviewers in any order."""
    return hashlib.sha256("\n".join(sorted(reviewers)).encode()).hexdigest()[:32]


class Reviews:
    """Reads reviewers and accounts of one family of chains."""

    def __init__(self, rpc: Rpc, clock: Clock) -> None:
        self._rpc = rpc
        self._clock = clock

    async def fetch(
        self, network: Network, agent: OnchainAgent, reviewers: Sequence[str]
    ) -> Reviewers:
        """What could be learnt of the reviewers."""
        looked_at = _first_and_last(list(dict.fromkeys(reviewers)))
        try:
            head, head_s = await self._head(network)
        except (ChainUnavailable, BadAnswer):
            return Reviewers({}, {}, None)
        sent = await self._transactions(network, looked_at)
        busiest = sorted(looked_at, key=lambda one: (-sent.get(one, 0), one))[:TOPICS_MAX]
        async with asyncio.TaskGroup() as group:
            of_agent = group.create_task(self._logs(network, head, agent=agent.agent_id))
            of_reviewers = group.create_task(self._logs(network, head, clients=busiest))
            of_owner = group.create_task(
                self._logs(network, head, clients=sorted(agent.controllers))
            )
        everything = (of_agent.result(), of_reviewers.result())
        clock = await self._block_times(network, everything, (head, head_s))
        reciprocal = await self._owners_of(network, _agents_in(of_owner.result(), agent.agent_id))
        histories = _histories(of_reviewers.result(), agent.agent_id, clock)
        return Reviewers(
            known={
                address: Reviewer(
                    transactions=sent.get(address),
                    first_s=histories.get(address, (None, None))[0],
                    rated=histories.get(address, (None, None))[1],
                    is_reciprocal=address in reciprocal,
                )
                for address in looked_at
            },
            given_s={_key(log): clock(log.block) for log in of_agent.result().found},
            since_s=None if everything[0].since is None else clock(everything[0].since),
        )

    async def account(self, network: Network, address: str) -> Account:
        """Raises `ChainUnavailable`."""
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
        """Number and time of the newest block."""
        block = await self._rpc.request(network, "eth_getBlockByNumber", ["latest", False])
        found = _block(block)
        if found is None:
            raise ChainUnavailable(
                f"The chain {network.slug} gave no answer that can be believed.", retry_after_s=10
            )
        return found

    async def _blocks_ago(self, network: Network, head: int, head_s: int) -> list[tuple[int, int]]:
        """The days looked at, with the block that was about that many days ago."""
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

    async def _logs(
        self,
        network: Network,
        head: int,
        *,
        agent: str | None = None,
        clients: Sequence[str] = (),
    ) -> Logs:
        """`NewFeedback` events of an agent, or by clients."""
        of_agent: JsonValue = None if agent is None else "0x" + word(int(agent)).hex()
        topics: list[JsonValue] = [NEW_FEEDBACK, of_agent]
        if clients:
            topics.append(["0x" + address_word(one).hex() for one in clients])
        registry = network.reputation_registry
        logs = await read_logs(self._rpc, network, registry, topics, head, self._clock, BUDGET_S)
        return Logs(tuple(log for log in logs.found if _is_feedback(log)), logs.since)

    async def _transactions(self, network: Network, addresses: Sequence[str]) -> dict[str, int]:
        """Of each address that the node told in time."""
        sent: dict[str, int] = {}

        async def ask(some: Sequence[str]) -> None:
            asked = [("eth_getTransactionCount", [address, "latest"]) for address in some]
            try:
                async with asyncio.timeout(BUDGET_S):
                    answers = await self._rpc.request_all(network, asked)
            except (ChainUnavailable, TimeoutError):
                return
            counted = zip(some, (_number(answer) for answer in answers), strict=True)
            sent.update((address, count) for address, count in counted if count is not None)

        async with asyncio.TaskGroup() as group:
            for at in range(0, len(addresses), BATCH):
                group.create_task(ask(addresses[at : at + BATCH]))
        return sent

    async def _owners_of(self, network: Network, agents: Sequence[str]) -> frozenset[str]:
        """Owners and wallets of the agents."""
        registry = network.identity_registry
        calls = [erc8004.owner_of(registry, one) for one in agents]
        calls += [erc8004.agent_wallet(registry, one) for one in agents]
        try:
            answers = await self._rpc.call(network, calls)
            found = [erc8004.read_address(a.data) for a in answers if isinstance(a, Returned)]
        except (ChainUnavailable, BadAnswer):
            return frozenset()
        return frozenset(address for address in found if address is not None)

    async def _block_times(
        self, network: Network, everything: Sequence[Logs], head: tuple[int, int]
    ) -> "_BlockTimes":
        blocks = sorted({log.block for logs in everything for log in logs.found})
        blocks += [logs.since for logs in everything if logs.since is not None]
        step = max(1, -(-len(blocks) // (TIMES_MAX - 1)))
        wanted = sorted({*blocks[::step], *blocks[-1:]})
        asked = [("eth_getBlockByNumber", [hex(block), False]) for block in wanted]
        try:
            answers = await self._rpc.request_all(network, asked)
        except ChainUnavailable:
            answers = ()
        known = dict(found for a in answers if (found := _block(a)) is not None)
        return _BlockTimes(known | {head[0]: head[1]})


class _BlockTimes:
    """When a block was: known for some, taken to pass evenly between them."""

    def __init__(self, known: Mapping[int, int]) -> None:
        self._known = sorted(known.items())

    def __call__(self, block: int) -> int:
        earlier = [pair for pair in self._known if pair[0] <= block]
        later = [pair for pair in self._known if pair[0] >= block]
        if not earlier or not later:
            return (earlier or later)[-1 if earlier else 0][1]
        (low, low_s), (high, high_s) = earlier[-1], later[0]
        return low_s if high == low else low_s + (high_s - low_s) * (block - low) // (high - low)


def _histories(
    logs: Logs, agent_id: str, clock: _BlockTimes
) -> dict[str, tuple[int | None, frozenset[str] | None]]:
    """First feedback and other agents rated, by reviewer."""
    first: dict[str, int] = {}
    rated: dict[str, set[str]] = {}
    for log in logs.found:
        client = _client(log)
        first[client] = min(log.block, first.get(client, log.block))
        others = rated.setdefault(client, set())
        other = str(int.from_bytes(log.topics[1]))
        if other != agent_id and len(others) < RATED_KEPT:
            others.add(other)
    return {client: (clock(first[client]), frozenset(rated[client])) for client in first}


def _first_and_last(reviewers: list[str]) -> list[str]:
    if len(reviewers) <= REVIEWERS_MAX:
        return reviewers
    half = REVIEWERS_MAX // 2
    return reviewers[:half] + reviewers[-half:]


def _agents_in(logs: Logs, but: str) -> list[str]:
    found = dict.fromkeys(str(int.from_bytes(log.topics[1])) for log in logs.found)
    return [agent for agent in found if agent != but][:RECIPROCAL_MAX]


def _is_feedback(log: Log) -> bool:
    return (
        len(log.topics) >= 3  # noqa: PLR2004 - the event, the agent, the client
        and all(len(topic) == 32 for topic in log.topics)  # noqa: PLR2004 - a word
        and "0x" + log.topics[0].hex() == NEW_FEEDBACK
        and not any(log.topics[2][:_ADDRESS_WORDS])
        and len(log.data) >= 32  # noqa: PLR2004 - a word
    )


def _client(log: Log) -> str:
    return "0x" + log.topics[2][_ADDRESS_WORDS:].hex()


def _key(log: Log) -> tuple[str, int]:
    return _client(log), Reader(log.data).number(0)


def _block(answer: JsonValue) -> tuple[int, int] | None:
    block: JsonObject = answer if is_object(answer) else {}
    try:
        return hex_number(block.get("number"), _U64), hex_number(block.get("timestamp"), _U64)
    except NotANumber:
        return None


def _number(answer: JsonValue) -> int | None:
    """A quantity or a balance."""
    try:
        return hex_number(answer, 256)
    except NotANumber:
        return None
