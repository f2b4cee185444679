"""Writes scores back to the registry on Solana, outside the request and within a budget.

A write never delays or fails the evaluation that caused it, is never retried, and may be lost.
There is one write per evaluation that really ran: the registry's own engine counts many writes by
one wallet against the agent (conventions.md#solana-write-back).
Source: interface.md#write-back-to-solana.

Bounds the cost of writing scores to Solana: a daily budget, and the wallet's balance.

Watches the balance of the wallet that writes scores back, for metrics.

Metrics of scores written back, and of the wallet that pays for them.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Final, Protocol

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from assay.chains.model import ChainUnavailable, Network, is_address
from assay.chains.networks import Networks
from assay.common.cache import Cache
from assay.common.clock import Clock
from assay.common.costs import Bearer, current_bearer
from assay.common.errors import ServiceError
from assay.db.store_costs import DailyBudgets
from assay.registries.ports import ChainWriter, WriteRefused
from assay.registries.subjects import Subjects

WAITING_MAX = 256
"""Scores that wait for the one writer; when it is full, more are dropped."""

LAMPORTS_MIN = 1_000_000
"""Below this balance a wallet may be unable to pay for a write and keep its rent.
Source: solana-registry.md#writing-scores."""

WRITE_S = 10.0
FAMILY = "solana"


class PublishOutcome(StrEnum):
    """The outcome of a score."""

    SUBMITTED = "submitted"  # A node accepted it, which does not prove its execution.
    REFUSED = "refused"  # Refused by a node or the program, which gave a reason.
    SKIPPED = "skipped"  # The agent belongs to our own wallet.
    FAILED = "failed"  # No node could be reached in time.
    DROPPED = "dropped"  # Too many were waiting, or the service stopped.
    UNPAID = "unpaid"  # The daily budget is used up, or the wallet cannot pay.


@dataclass(frozen=True, slots=True)
class PublishResult:
    """The outcome of one score, for the log. `result` is the signature, or the reason."""

    outcome: PublishOutcome
    agent_id: str
    score: int
    result: str


class WriteFees(Protocol):
    """Charges for writes."""

    async def take(self, network: Network, bearer: Bearer) -> str | None:
        """Count one write for the party that caused it; return why it may not be made, or None.

        Raises `Unavailable` if it cannot be counted.
        """
        ...


@dataclass(frozen=True, slots=True)
class _Score:
    chain: str
    agent_id: str
    score: int
    bearer: Bearer


class FeedbackPublisher:
    """Passes scores to one writer, in order."""

    def __init__(
        self,
        subjects: Subjects,
        networks: Networks,
        writer: ChainWriter,
        note: Callable[[PublishResult], None],
        fees: WriteFees | None = None,
    ) -> None:
        """Create it; without `fees` the number of writes is unbounded."""
        self._subjects = subjects
        self._networks = networks
        self._writer = writer
        self._note = note
        self._fees = fees
        self._waiting: asyncio.Queue[_Score] = asyncio.Queue(WAITING_MAX)
        self._counts: Counter[PublishOutcome] = Counter()

    @property
    def address(self) -> str:
        """Return the address of the writing wallet."""
        return self._writer.address

    @property
    def fee(self) -> int:
        """Return the most that one write costs, in the coin's smallest unit."""
        return self._writer.fee

    async def balance(self, network: Network) -> int:
        """Return the wallet's balance in the coin's smallest unit. Raises `ChainUnavailable`."""
        return await self._writer.balance(network)

    @property
    def counts(self) -> Mapping[str, int]:
        """Return the number of scores by outcome, since the process began."""
        return {outcome.value: self._counts[outcome] for outcome in PublishOutcome}

    def offer(self, chain: str, agent_id: str, score: float) -> None:
        """Queue a score of 0 to 100 if the agent's chain accepts scores."""
        if is_address(agent_id) or self._networks.by_slug(chain).family != FAMILY:
            return
        waiting = _Score(chain, agent_id, _rounded(score), current_bearer())
        try:
            self._waiting.put_nowait(waiting)
        except asyncio.QueueFull:
            self._end(waiting, PublishOutcome.DROPPED, f"{WAITING_MAX} scores are waiting")

    async def run(self) -> None:
        """Write queued scores one after the other, for ever."""
        while True:
            score = await self._waiting.get()
            try:
                await self._write(score)
            except asyncio.CancelledError:
                self._end(score, PublishOutcome.DROPPED, "the service ended; it may have been sent")
                raise
            finally:
                self._waiting.task_done()

    async def close(self, grace_s: float) -> None:
        """Wait up to `grace_s` for the queue; drop and report the rest."""
        try:
            async with asyncio.timeout(grace_s):
                await self._waiting.join()
        except TimeoutError:
            while not self._waiting.empty():
                self._end(self._waiting.get_nowait(), PublishOutcome.DROPPED, "the service ended")

    async def _write(self, score: _Score) -> None:
        try:
            async with asyncio.timeout(WRITE_S):
                outcome, result = await self._given(score)
        except WriteRefused as refusal:
            outcome, result = PublishOutcome.REFUSED, str(refusal)
        except ChainUnavailable as error:
            outcome, result = PublishOutcome.FAILED, error.detail or error.message
        except TimeoutError:
            outcome, result = PublishOutcome.FAILED, f"not done in {WRITE_S:g} s"
        except ServiceError as error:  # The agent no longer exists.
            outcome, result = PublishOutcome.REFUSED, error.message
        except Exception as error:  # noqa: BLE001 - one bad score must not end the worker
            outcome, result = PublishOutcome.FAILED, type(error).__name__
        self._end(score, outcome, result)

    async def _given(self, score: _Score) -> tuple[PublishOutcome, str]:
        network = self._networks.by_slug(score.chain)
        agent = await self._subjects.reader(network).fetch_agent(network, score.agent_id)
        if agent.owner == self._writer.address:
            return PublishOutcome.SKIPPED, "the writing wallet owns this agent"
        unpaid = None if self._fees is None else await self._fees.take(network, score.bearer)
        if unpaid is not None:
            return PublishOutcome.UNPAID, unpaid
        return PublishOutcome.SUBMITTED, await self._writer.give_score(network, agent, score.score)

    def _end(self, score: _Score, outcome: PublishOutcome, result: str) -> None:
        self._counts[outcome] += 1
        self._note(PublishResult(outcome, score.agent_id, score.score, result))


def _rounded(score: float) -> int:
    """Round to the nearest whole point, halves up."""
    return min(100, max(0, int(score + 0.5)))


BALANCE_KNOWN_S: Final = 60.0
ALL: Final = "solana writes"
PART: Final = 10
"""One Free operator or address may cause at most this fraction of all writes."""

_DAY: Final = timedelta(days=1)


class SolanaFees:
    """Implements `reputation.write_back.WriteFees`, exactly across processes and restarts."""

    def __init__(
        self, writer: ChainWriter, budgets: DailyBudgets, per_day: int, clock: Clock
    ) -> None:
        self._writer = writer
        self._budgets = budgets
        self._per_day = per_day
        self._clock = clock
        self._balances: Cache[int] = Cache(clock, BALANCE_KNOWN_S, 4)

    async def take(self, network: Network, bearer: Bearer) -> str | None:
        try:
            balance = await self._balances.get(network.slug, lambda: self._writer.balance(network))
        except ChainUnavailable as error:
            return error.detail or error.message
        if balance < LAMPORTS_MIN:
            return f"the writing wallet holds {balance} lamports"
        day = int(self._clock.now().timestamp() // _DAY.total_seconds())
        limits = [(ALL, self._per_day)]
        if bearer.is_limited:
            limits.append((f"{ALL} of {bearer.name}", max(1, self._per_day // PART)))
        spent = await self._budgets.take_all(limits, day)
        return None if spent is None else f"today's budget is used up: {spent}"


WAIT_S: Final = 2.0
"""Time limit of a reading."""


@dataclass(frozen=True, slots=True)
class WalletReading:
    """The last reading of the wallet."""

    lamports: int | None
    """None while it is unknown."""
    writes: int
    """The number of scores the balance pays for, each at its highest cost."""
    read_at_s: float
    """Monotonic seconds."""


class WalletWatch:
    """Keeps the last reading, so that a metrics scrape makes no chain call."""

    def __init__(self, write_back: FeedbackPublisher, network: Network, clock: Clock) -> None:
        self.network = network
        self.reading: WalletReading | None = None
        self._write_back = write_back
        self._clock = clock

    async def refresh(self) -> None:
        """Read the wallet and keep the result."""
        try:
            async with asyncio.timeout(WAIT_S):
                lamports = await self._write_back.balance(self.network)
        except (ChainUnavailable, TimeoutError):
            self.reading = WalletReading(None, 0, self._clock.monotonic_s())
            return
        spare = lamports - LAMPORTS_MIN
        writes = spare // self._write_back.fee + 1 if spare >= 0 else 0
        self.reading = WalletReading(lamports, writes, self._clock.monotonic_s())


@dataclass(frozen=True, slots=True)
class WriteBackMetricsSource:
    """The sources of the numbers."""

    back: FeedbackPublisher
    wallet: WalletWatch


def writing(source: WriteBackMetricsSource, now_s: float) -> Iterator[Metric]:
    """Yield the metrics; those of the wallet only after its first reading."""
    text = "Scores by what became of writing them back, since the process began."
    scores = CounterMetricFamily("assay_write_back_scores", text, labels=["outcome"])
    for outcome, count in source.back.counts.items():
        scores.add_metric([outcome], count)
    yield scores
    found, network = source.wallet.reading, source.wallet.network.slug
    if found is None:
        return
    name = "assay_write_back_wallet_balance_coins"
    text = "What the wallet that writes scores back holds; absent while nobody can say."
    balance = GaugeMetricFamily(name, text, labels=["network"])
    if found.lamports is not None:
        balance.add_metric([network], float(Decimal(found.lamports).scaleb(-9)))
    yield balance
    name = "assay_write_back_wallet_payable_writes"
    text = "Scores that it can pay for, each at the most that it may cost."
    payable = GaugeMetricFamily(name, text, labels=["network"])
    payable.add_metric([network], found.writes)
    yield payable
    name = "assay_write_back_wallet_read_age_seconds"
    age = GaugeMetricFamily(name, "Age of what is known of it.", labels=["network"])
    age.add_metric([network], now_s - found.read_at_s)
    yield age
