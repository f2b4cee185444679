"""Mail to operators: what it says, and sending it beside the requests that ask for it."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Final

from assay.accounts.credential_ports import Mailer, MailMessage
from assay.common.clock import iso
from assay.common.errors import Unavailable

WAITING_MAX: Final = 1_000
"""Mails that wait; what comes beyond is dropped, and logged."""

AT_ONCE: Final = 4

Job = Callable[[], Awaitable[MailMessage | None]]
"""Finds out whether there is something to send, and makes it."""


class MailOutbox:
    """Sends mails in the background, so that an answer tells nothing by the time it takes.

    How many is bounded before a mail is made, by the code it carries (`code_bounds`). Those who ask
    take turns, and beyond `WAITING_MAX` whoever has most waiting loses its newest.
    """

    def __init__(self, mailer: Mailer, warn: Callable[[str, str | None], None]) -> None:
        """`warn` is told, in a sentence and its detail, of what could not be sent."""
        self._mailer = mailer
        self._warn = warn
        self._jobs: OrderedDict[str, deque[Job]] = OrderedDict()
        self._turns: asyncio.Queue[None] = asyncio.Queue(WAITING_MAX)
        """One for each job that waits."""

    def add(self, job: Job, asker: str) -> None:
        """Do it soon. A mail is not kept over a restart: its reader asks again.

        `asker` is the account or the network that asked.
        """
        if self._turns.full():
            self._warn("too many mails wait, one is dropped", None)
            if not self._displace(asker):
                return
        else:
            self._turns.put_nowait(None)
        self._jobs.setdefault(asker, deque()).append(job)

    async def run(self) -> None:
        """Send what is added; for ever."""
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(self._work())

    async def idle(self) -> None:
        """Wait until everything added so far was sent or given up."""
        await self._turns.join()

    def _displace(self, asker: str) -> bool:
        """Drop the newest job of who has most, if that is more than `asker` would have."""
        most = max(self._jobs, key=lambda one: len(self._jobs[one]))
        if len(self._jobs[most]) <= len(self._jobs.get(asker, ())) + 1:
            return False
        self._jobs[most].pop()
        return True

    def _next(self) -> Job:
        """The oldest job of the asker whose turn it is, who then goes to the end."""
        asker, jobs = self._jobs.popitem(last=False)
        job = jobs.popleft()
        if jobs:
            self._jobs[asker] = jobs
        return job

    async def _work(self) -> None:
        while True:
            await self._turns.get()
            try:
                message = await self._next()()
                if message is not None:
                    await self._mailer.send(message)
            except Unavailable as error:
                self._warn("a mail could not be sent", error.detail)
            except Exception as error:  # noqa: BLE001 - one mail's fault is not the next one's
                self._warn("a mail could not be made", repr(error))
            finally:
                self._turns.task_done()


def reset_mail(to: str, link: str, until: datetime) -> MailMessage:
    """The mail with a reset link. It repeats nothing that anybody could have chosen."""
    text = (
        "Somebody, probably you, asked for a new password for your Assay account.\n\n"
        f"To choose one, open this link before {iso(until)}:\n\n"
        f"{link}\n\n"
        "It works once. If it was not you, do nothing: your password stays as it is.\n"
    )
    return MailMessage(to, "Choose a new Assay password", text)


def verification_mail(to: str, link: str, until: datetime) -> MailMessage:
    """The mail with a verification link."""
    text = (
        "This address was given for an Assay account.\n\n"
        f"If the account is yours, confirm the address before {iso(until)}:\n\n"
        f"{link}\n\n"
        "If it is not yours, do nothing.\n"
    )
    return MailMessage(to, "Confirm your e-mail address for Assay", text)
