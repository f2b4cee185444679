"""Mails wait by turns: whoever asks for many does not drop those of others."""

import asyncio
from collections.abc import Mapping

from assay.accounts.mail import WAITING_MAX, MailOutbox
from assay.accounts.ports import MailMessage


class Inbox:
    """Notes whom mails are sent to, in order."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    async def send(self, message: MailMessage) -> None:
        self.sent.append(message.to)


async def sent(asked: Mapping[str, int]) -> tuple[list[str], int]:
    """Who gets mail when each asks for so many before any is sent, and how many are dropped."""
    inbox = Inbox()
    dropped: list[str] = []
    outbox = MailOutbox(inbox, lambda said, _: dropped.append(said))

    async def job(to: str) -> MailMessage:
        return MailMessage(to, "s", "t")

    for who, count in asked.items():
        for _ in range(count):
            outbox.add(lambda who=who: job(who), who)
    async with asyncio.TaskGroup() as group:
        working = group.create_task(outbox.run())
        await outbox.idle()
        working.cancel()
    return inbox.sent, len(dropped)


async def test_one_that_asks_for_many_drops_no_mail_but_its_own() -> None:
    mails, dropped = await sent({"flood": 3 * WAITING_MAX, "owner": 1})
    assert mails.count("owner") == 1
    assert (len(mails), dropped) == (WAITING_MAX, 2 * WAITING_MAX + 1)


async def test_whoever_asks_takes_turns_whatever_others_have_waiting() -> None:
    mails, _ = await sent({"flood": WAITING_MAX // 2, "owner": 2})
    assert [at for at, to in enumerate(mails) if to == "owner"] == [1, 3]


async def test_floods_of_many_share_what_waits() -> None:
    mails, _ = await sent({f"flood {n}": 100 for n in range(20)} | {"owner": 1})
    assert mails.count("owner") == 1
    assert len(mails) == WAITING_MAX
