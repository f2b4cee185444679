"""Mail to operators: what it says, and sending it beside the requests that ask for it."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Final

from assay.accounts.credential_ports import Mailer, Message
from assay.kit.clock import iso
from assay.kit.errors import Unavailable

WAITING_MAX: Final = 100
"""Mails that wait; what comes beyond is dropped, and logged."""

AT_ONCE: Final = 4

Job = Callable[[], Awaitable[Message | None]]
"""Finds out whether there is something to send, and makes it."""


class MailOutbox:
    """Sends mails in the background, so that an answer tells nothing by the time it takes.

    How many is bounded before a mail is made, by the code it carries (`code_bounds`).
    """

    def __init__(self, mailer: Mailer, warn: Callable[[str, str | None], None]) -> None:
        """`warn` is told, in a sentence and its detail, of what could not be sent."""
        self._mailer = mailer
        self._warn = warn
        self._jobs: asyncio.Queue[Job] = asyncio.Queue(WAITING_MAX)

    def add(self, job: Job) -> None:
        """Do it soon. A mail is not kept over a restart: its reader asks again."""
        try:
            self._jobs.put_nowait(job)
        except asyncio.QueueFull:
            self._warn("too many mails wait, one is dropped", None)

    async def run(self) -> None:
        """Send what is added; for ever."""
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(self._work())

    async def idle(self) -> None:
        """Wait until everything added so far was sent or given up."""
        await self._jobs.join()

    async def _work(self) -> None:
        while True:
            job = await self._jobs.get()
            try:
                message = await job()
                if message is not None:
                    await self._mailer.send(message)
            except Unavailable as error:
                self._warn("a mail could not be sent", error.detail)
            except Exception as error:  # noqa: BLE001 - one mail's fault is not the next one's
                self._warn("a mail could not be made", repr(error))
            finally:
                self._jobs.task_done()


def reset_mail(to: str, link: str, until: datetime) -> Message:
    """The mail with a reset link. It repeats nothing that anybody could have chosen."""
    text = (
        "Somebody, probably you, asked for a new password for your Assay account.\n\n"
        f"To choose one, open this link before {iso(until)}:\n\n"
        f"{link}\n\n"
        "It works once. If it was not you, do nothing: your password stays as it is.\n"
    )
    return Message(to, "Choose a new Assay password", text)


def verification_mail(to: str, link: str, until: datetime) -> Message:
    """The mail with a verification link."""
    text = (
        "This address was given for an Assay account.\n\n"
        f"If the account is yours, confirm the address before {iso(until)}:\n\n"
        f"{link}\n\n"
        "If it is not yours, do nothing.\n"
    )
    return Message(to, "Confirm your e-mail address for Assay", text)
