import asyncio
from dataclasses import dataclass

from assay.common.tasks import WriteCoalescer


@dataclass
class Sender:
    """Notes its name when it sends; may ask for another turn first, or fail."""

    name: str
    sent: list[str]
    outbox: WriteCoalescer | None = None
    fails: bool = False

    def send(self) -> None:
        if self.fails:
            raise ValueError(self.name)
        if self.outbox is not None:
            self.outbox.add(Sender(self.name + "'", self.sent))
        self.sent.append(self.name)


async def test_everybody_sends_after_the_turn_in_the_order_of_asking() -> None:
    outbox, sent = WriteCoalescer(), list[str]()
    for name in "abc":
        outbox.add(Sender(name, sent))
    assert sent == []
    await asyncio.sleep(0)
    assert sent == ["a", "b", "c"]


async def test_who_asks_while_others_send_is_of_the_next_turn() -> None:
    outbox, sent = WriteCoalescer(), list[str]()
    outbox.add(Sender("a", sent, outbox))
    outbox.add(Sender("b", sent))
    await asyncio.sleep(0)
    assert sent == ["a", "b"]
    await asyncio.sleep(0)
    assert sent == ["a", "b", "a'"]


async def test_one_that_fails_does_not_keep_the_others() -> None:
    outbox, sent = WriteCoalescer(), list[str]()
    failures: list[object] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda _loop, of: failures.append(of["exception"])
    )
    for sender in (Sender("a", sent), Sender("b", sent, fails=True), Sender("c", sent)):
        outbox.add(sender)
    outbox.add(Sender("d", sent, fails=True))
    outbox.add(Sender("e", sent))
    for _ in range(4):
        await asyncio.sleep(0)
    assert sent == ["a", "c", "e"]
    assert [str(one) for one in failures] == ["b", "d"]
