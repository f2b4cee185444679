"""A service that dies before, in or after an attempt: nothing is lost before it, nothing twice."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from assay.app import App, assemble
from assay.audit.service import TERMINAL
from assay.settings import Settings, load
from assay.webhooks.delivery import Deliverer
from assay.webhooks.model import Delivery, DeliveryState
from assay.webhooks.service import NewWebhook
from tests.support.eventually import never
from tests.support.fakes.clock import FrozenClock
from tests.support.fakes.trust import NETWORK, FakeChain
from tests.support.live_service import PASSWORD, agent
from tests.support.raw_server import RawServer, keeps_open, plain, serving


def settings_of(folder: Path) -> Settings:
    local = {
        "chain_id": NETWORK.chain_id,
        "identity_registry": NETWORK.identity_registry,
        "reputation_registry": NETWORK.reputation_registry,
        "rpc_urls": list(NETWORK.rpc_urls),
    }
    return load(
        data_dir=folder,
        chains={"local": local},
        default_chain="local",
        allow_private_upstreams=True,
        log_level="error",
    )


@asynccontextmanager
async def process(folder: Path, clock: FrozenClock, *, serving: bool) -> AsyncGenerator[App]:
    """One life of the service; without `serving` it dies before it delivers anything."""
    readers = {"evm": FakeChain(agent("7"))}
    async with assemble(settings_of(folder), clock, readers, serving=serving) as app:  # type: ignore[arg-type]
        yield app


async def prepared(app: App, receiver: RawServer) -> str:
    """An operator that wants to hear, and one evaluation it should hear of."""
    operator, _ = await app.operators.register("a@b.cc", PASSWORD, "A")
    asked = NewWebhook("evaluation_complete", receiver.url("/hook"))
    await app.webhooks.register(operator.id, asked, TERMINAL)
    subject = await app.subjects.find(app.networks.default, "7")
    await app.evaluator.evaluate(subject, 5.0)
    return operator.id


async def until(app: App, operator_id: str, state: DeliveryState) -> Delivery:
    """The first delivery there was, once it has that state."""
    async with asyncio.timeout(10):
        while True:
            *_, found = await app.webhooks.deliveries(operator_id, None, None, 10)
            if found.state is state:
                return found
            await asyncio.sleep(0.02)


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


async def test_what_died_before_the_attempt_is_delivered_by_the_next_life(
    tmp_path: Path, clock: FrozenClock
) -> None:
    async with serving(keeps_open(plain(b"ok"))) as receiver:
        async with process(tmp_path, clock, serving=False) as app:
            operator_id = await prepared(app, receiver)
            assert (await until(app, operator_id, DeliveryState.PENDING)).ended_at is None
        assert receiver.requests == []
        clock.move(3 * 86_400)
        async with process(tmp_path, clock, serving=True) as app:
            sent = await until(app, operator_id, DeliveryState.SENT)
        async with process(tmp_path, clock, serving=True) as app:
            await asyncio.sleep(0.3)
        # A visit that is due after three days is news of its own.
        assert sum(sent.payload.encode() == one.body for one in receiver.requests) == 1


async def test_what_died_in_the_attempt_is_never_attempted_again(
    tmp_path: Path, clock: FrozenClock
) -> None:
    reached = asyncio.Event()

    async def hang(*_: object) -> None:
        reached.set()
        await never()

    async with serving(hang) as receiver:
        async with process(tmp_path, clock, serving=True) as app:
            operator_id = await prepared(app, receiver)
            await asyncio.wait_for(reached.wait(), 10)
        async with process(tmp_path, clock, serving=True) as app:
            await asyncio.sleep(0.3)
            await until(app, operator_id, DeliveryState.SENDING)
        clock.move(61)
        async with process(tmp_path, clock, serving=True) as app:
            found = await until(app, operator_id, DeliveryState.FAILED)
            assert found.reason == "the attempt was cut off"
        assert len(receiver.requests) == 1


async def test_a_store_that_fails_after_the_attempt_does_not_make_a_second_one(
    tmp_path: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(keeps_open(plain(b"ok"))) as receiver:
        async with process(tmp_path, clock, serving=False) as app:
            operator_id = await prepared(app, receiver)
            failed: list[str] = []

            async def broken(*_: object) -> None:
                failed.append("complete")
                raise OSError("the disk is full")

            monkeypatch.setattr(app.webhook_store, "complete", broken)
            running: list[asyncio.Task[object]] = []
            spawn: Callable[[str, Awaitable[object]], object] = lambda _, work: running.append(  # noqa: E731
                asyncio.ensure_future(work)
            )
            monkeypatch.setattr(app.deliverer, "_spawn", spawn)
            one: Deliverer = app.deliverer
            for _ in range(3):
                await one.run()
            await asyncio.wait(running)
            assert failed == ["complete"]
            assert isinstance(running[0].exception(), OSError)
        assert len(receiver.requests) == 1
        async with process(tmp_path, clock, serving=True) as app:
            await asyncio.sleep(0.3)
            await until(app, operator_id, DeliveryState.SENDING)
        assert len(receiver.requests) == 1
