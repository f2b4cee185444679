import asyncio
from dataclasses import replace

import pytest

from assay.common.cache import SingleFlight
from assay.common.errors import SourceAway
from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.evaluation.model import Cap, Evidence, EvidenceUnavailable, SignalName, SignalUnavailable
from assay.evaluation.ports import SignalDependencies
from assay.evaluation.scoring import DEFAULT_WEIGHTS, ScoringPolicy, tiers_from
from assay.evaluation.service import Evaluator, EvaluatorDependencies
from assay.probing.function.service import function_rows
from assay.registries.model import Subject
from assay.registries.subjects import Subjects
from tests.support.eventually import never
from tests.support.fakes.clock import FrozenClock
from tests.support.fakes.trust import (
    NETWORK,
    WALLET,
    FakeChain,
    FakeSignal,
    Hears,
    MemoryEvaluations,
    NoBlobs,
    onchain_agent,
)

SUBJECT = Subject(NETWORK, "7", WALLET, onchain_agent())


class EvaluatorSetup:
    """An evaluator over fakes at every port."""

    def __init__(self, *signals: FakeSignal) -> None:
        self.store, self.hears, self.clock = MemoryEvaluations(), Hears(), FrozenClock()
        self.evaluator = Evaluator(
            EvaluatorDependencies(
                subjects=Subjects({"evm": FakeChain()}),  # type: ignore[dict-item]
                signals={s.name: s for s in signals},
                probes={},
                http=None,  # type: ignore[arg-type] - these signals ask nobody
                dialers=None,  # type: ignore[arg-type]
                store=self.store,
                blobs=NoBlobs(),
                rules=ScoringPolicy(DEFAULT_WEIGHTS, tiers_from()),
                listeners=[self.hears.evaluated],
                clock=self.clock,
            ),
            SingleFlight(),
        )


async def test_an_evaluation_is_scored_graded_stored_and_announced() -> None:
    setup = EvaluatorSetup(
        FakeSignal(SignalName.SANDBOX, 90), FakeSignal(SignalName.REGISTRY_8004, 50)
    )
    news = await setup.evaluator.evaluate(SUBJECT, 1)
    assert news.evaluation.score == 77.5
    assert news.evaluation.grade.tier == "BAA"
    assert news.evaluation.evaluated_at == setup.clock.now()
    assert setup.store.rows == [(news.evaluation, news.snapshot)]
    assert setup.hears.news == [news]
    assert news.snapshot.interaction_count == 6


async def test_the_hash_is_of_behaviour_alone_and_the_chain_goes_on() -> None:
    registry = FakeSignal(SignalName.REGISTRY_8004, 50)
    setup = EvaluatorSetup(FakeSignal(SignalName.SANDBOX, 90), registry)
    first = (await setup.evaluator.evaluate(SUBJECT, 1)).snapshot
    registry.says = 60
    setup.clock.move(60)
    second = (await setup.evaluator.evaluate(SUBJECT, 1)).snapshot
    assert first.previous_hash == "0x0"
    assert second.previous_hash == first.snapshot_hash == second.snapshot_hash


async def test_a_signal_that_cannot_be_collected_is_left_out_and_reported() -> None:
    setup = EvaluatorSetup(
        FakeSignal(SignalName.SANDBOX, 90),
        FakeSignal(SignalName.REGISTRY_8004, SignalUnavailable("the chain is down")),
    )
    evaluation = (await setup.evaluator.evaluate(SUBJECT, 1)).evaluation
    assert evaluation.unavailable == {SignalName.REGISTRY_8004: "the chain is down"}
    assert evaluation.score == 77.5


async def test_with_nothing_to_judge_by_nothing_is_stored() -> None:
    setup = EvaluatorSetup(FakeSignal(SignalName.SANDBOX, SignalUnavailable("down")))
    with pytest.raises(EvidenceUnavailable):
        await setup.evaluator.evaluate(SUBJECT, 1)
    assert setup.store.rows == []
    assert setup.hears.news == []


async def test_a_signal_that_hangs_is_left_out_at_the_deadline() -> None:
    class Hangs(FakeSignal):
        async def collect(
            self, subject: Subject, needs: SignalDependencies
        ) -> Evidence | SignalUnavailable:
            del subject, needs
            await never()

    setup = EvaluatorSetup(Hangs(SignalName.SANDBOX, 90), FakeSignal(SignalName.REGISTRY_8004, 80))
    evaluation = (await asyncio.wait_for(setup.evaluator.evaluate(SUBJECT, 0.05), 5)).evaluation
    assert "in time" in evaluation.unavailable[SignalName.SANDBOX]


@pytest.mark.parametrize("depth", [0, 1, 2])
async def test_a_database_that_does_not_answer_makes_a_signal_unavailable(depth: int) -> None:
    class Asks(FakeSignal):
        async def collect(
            self, subject: Subject, needs: SignalDependencies
        ) -> Evidence | SignalUnavailable:
            del subject, needs
            error: Exception = SourceAway("The database cannot be used now.")
            for _ in range(depth):
                error = ExceptionGroup("tasks", [error])
            raise error

    setup = EvaluatorSetup(Asks(SignalName.SANDBOX, 90), FakeSignal(SignalName.REGISTRY_8004, 80))
    evaluation = (await setup.evaluator.evaluate(SUBJECT, 1)).evaluation
    assert set(evaluation.unavailable) == {SignalName.SANDBOX}


async def test_a_fault_of_our_own_is_not_taken_for_a_database_that_does_not_answer() -> None:
    class Fails(FakeSignal):
        async def collect(
            self, subject: Subject, needs: SignalDependencies
        ) -> Evidence | SignalUnavailable:
            del subject, needs
            raise ExceptionGroup("tasks", [SourceAway("away"), KeyError("a fault")])

    with pytest.raises(ExceptionGroup):
        await EvaluatorSetup(Fails(SignalName.SANDBOX, 90)).evaluator.evaluate(SUBJECT, 1)


async def test_a_cap_reaches_the_grade() -> None:
    setup = EvaluatorSetup(FakeSignal(SignalName.SANDBOX, 95, cap=Cap(34.99, "it leaks keys")))
    evaluation = (await setup.evaluator.evaluate(SUBJECT, 1)).evaluation
    assert (evaluation.score, evaluation.grade.tier) == (34.99, "CA")


async def test_evaluations_asked_for_at_once_are_one() -> None:
    signal = FakeSignal(SignalName.SANDBOX, 90)
    setup = EvaluatorSetup(signal)
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(setup.evaluator.evaluate(SUBJECT, 1)) for _ in range(20)]
    assert signal.asked == 1
    assert len({task.result().evaluation.id for task in asked}) == 1


async def test_what_the_chain_says_was_paid_joins_what_the_visit_saw_of_a_seller() -> None:
    sold: JsonObject = {
        "service": "https://stall.example/deep", "kind": "x402", "asked": [], "valid": True,
        "known_asset": True, "sane": True, "payee": True, "wallet": True,
    }  # fmt: skip

    class Told(FakeSignal):
        """Sees a number, and more beside it."""

        def __init__(self, name: SignalName, **more: JsonValue) -> None:
            super().__init__(name, 90)
            self.proves: JsonObject = more

        async def collect(
            self, subject: Subject, needs: SignalDependencies
        ) -> Evidence | SignalUnavailable:
            found = await super().collect(subject, needs)
            assert isinstance(found, Evidence)
            return replace(found, transcript={"function": [sold]})

    async def state(*signals: FakeSignal) -> str:
        made = (await EvaluatorSetup(*signals).evaluator.evaluate(SUBJECT, 1)).evaluation
        seen = next(c.evidence for c in made.collected if c.signal is SignalName.SANDBOX)
        rows, kept = seen.data["function"], seen.transcript["function"]
        assert is_array(rows)
        assert is_array(kept)
        assert rows == function_rows([one for one in kept if is_object(one)])
        return str(rows[0]["state"]) if is_object(rows[0]) else ""

    shop = Told(SignalName.SANDBOX, function=[*function_rows([sold])])
    chain, paid = SignalName.REGISTRY_8004, {"clusters": 3, "days": 2, "usdNet": "1.000000"}
    assert await state(shop, Told(chain, settlements=paid)) == "functional"
    assert (
        await state(shop, FakeSignal(chain, SignalUnavailable("the chain is down"))) == "unfinished"
    )
    assert await state(shop, FakeSignal(chain, 50)) == "closed"
