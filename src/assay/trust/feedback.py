"""Scores written back to the registry on Solana, beside the answer (spec 4.2 rule 4).

Fire and forget: a write never delays or fails what it follows from, is never tried again, and may
be lost. One write per evaluation that really ran: the registry's own engine holds many writes by
one wallet against the agent (decisions, section 6).
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from assay.chains.model import ChainUnavailable, Network, is_address
from assay.chains.networks import Networks
from assay.chains.ports import ChainWriter, WriteRefused
from assay.kit.errors import ServiceError
from assay.trust.model import EvaluationCompleted
from assay.trust.subjects import Subjects

WAITING_MAX = 256
"""Scores that wait for the one writer; what comes when it is full is dropped."""

WRITE_S = 10.0
FAMILY = "solana"


class Outcome(StrEnum):
    """What became of a score."""

    SUBMITTED = "submitted"  # a node took it: no proof that it was executed
    REFUSED = "refused"  # by a node or the program, which said why
    SKIPPED = "skipped"  # the agent is our own wallet's
    FAILED = "failed"  # no node could be asked in time
    DROPPED = "dropped"  # too many were waiting, or the service ended


@dataclass(frozen=True, slots=True)
class Written:
    """One score's end, for the log. `told` is the signature, or the reason."""

    outcome: Outcome
    agent_id: str
    score: int
    told: str


@dataclass(frozen=True, slots=True)
class _Score:
    chain: str
    agent_id: str
    score: int


class WriteBack:
    """A listener that hands scores to one writer, in order."""

    def __init__(
        self,
        subjects: Subjects,
        networks: Networks,
        writer: ChainWriter,
        note: Callable[[Written], None],
    ) -> None:
        self._subjects = subjects
        self._networks = networks
        self._writer = writer
        self._note = note
        self._waiting: asyncio.Queue[_Score] = asyncio.Queue(WAITING_MAX)
        self._counts: Counter[Outcome] = Counter()

    @property
    def address(self) -> str:
        """The wallet that writes."""
        return self._writer.address

    async def balance(self, network: Network) -> int:
        """What the wallet holds, in the coin's smallest unit. Raises `ChainUnavailable`."""
        return await self._writer.balance(network)

    @property
    def counts(self) -> Mapping[str, int]:
        """How many scores ended how, since the process began."""
        return {outcome.value: self._counts[outcome] for outcome in Outcome}

    def evaluated(self, news: EvaluationCompleted) -> None:
        """Offer the score of an evaluation that really ran."""
        evaluation = news.evaluation
        self.offer(evaluation.chain, evaluation.agent_id, evaluation.score)

    def offer(self, chain: str, agent_id: str, score: float) -> None:
        """Queue a score of 0 to 100, where the agent is one of a chain that takes them."""
        if is_address(agent_id) or self._networks.by_slug(chain).family != FAMILY:
            return
        waiting = _Score(chain, agent_id, _rounded(score))
        try:
            self._waiting.put_nowait(waiting)
        except asyncio.QueueFull:
            self._end(waiting, Outcome.DROPPED, f"{WAITING_MAX} scores are waiting")

    async def run(self) -> None:
        """Write what is offered, one after the other, for ever."""
        while True:
            score = await self._waiting.get()
            try:
                await self._write(score)
            except asyncio.CancelledError:
                self._end(score, Outcome.DROPPED, "the service ended; it may have been sent")
                raise
            finally:
                self._waiting.task_done()

    async def close(self, grace_s: float) -> None:
        """Wait a little for what is waiting; the rest is dropped, and said to be."""
        try:
            async with asyncio.timeout(grace_s):
                await self._waiting.join()
        except TimeoutError:
            while not self._waiting.empty():
                self._end(self._waiting.get_nowait(), Outcome.DROPPED, "the service ended")

    async def _write(self, score: _Score) -> None:
        network = self._networks.by_slug(score.chain)
        try:
            async with asyncio.timeout(WRITE_S):
                agent = await self._subjects.reader(network).fetch_agent(network, score.agent_id)
                if agent.owner == self._writer.address:
                    self._end(score, Outcome.SKIPPED, "the writing wallet owns this agent")
                    return
                signature = await self._writer.give_score(network, agent, score.score)
        except WriteRefused as refusal:
            self._end(score, Outcome.REFUSED, str(refusal))
        except ChainUnavailable as error:
            self._end(score, Outcome.FAILED, error.detail or error.message)
        except TimeoutError:
            self._end(score, Outcome.FAILED, f"not done in {WRITE_S:g} s")
        except ServiceError as error:  # the agent is gone
            self._end(score, Outcome.REFUSED, error.message)
        except Exception as error:  # noqa: BLE001 - one bad score must not end the worker
            self._end(score, Outcome.FAILED, type(error).__name__)
        else:
            self._end(score, Outcome.SUBMITTED, signature)

    def _end(self, score: _Score, outcome: Outcome, told: str) -> None:
        self._counts[outcome] += 1
        self._note(Written(outcome, score.agent_id, score.score, told))


def _rounded(score: float) -> int:
    """To the nearest whole point, halves up."""
    return min(100, max(0, int(score + 0.5)))
