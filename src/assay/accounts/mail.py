"""Mail to operators: its texts, and sending it beside the requests that ask for it.

The standard library sends mail over SMTP, in threads of its own, with TLS unless that is off.
"""

import asyncio
import smtplib
import ssl
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import formatdate, make_msgid
from typing import Final
from urllib.parse import unquote, urlsplit

from assay.accounts.ports import Mailer, MailMessage
from assay.common.clock import iso
from assay.common.errors import Unavailable

TIMEOUT_S: Final = 10.0
"""Seconds for connecting, and for each answer of the server."""

THREADS: Final = 4

_PORTS = {"smtps": 465, "smtp": 587, "smtp+plain": 25}


@dataclass(frozen=True, slots=True)
class SmtpServer:
    """The server that takes the mail."""

    security: str
    """`smtps`: TLS from the first byte; `smtp`: STARTTLS, required; `smtp+plain`: no TLS."""
    host: str
    port: int
    user: str | None
    password: str | None


def smtp_server(url: str) -> SmtpServer:
    """Return the server of a URL. Raises `ValueError`, whose text does not contain the URL."""
    try:
        parts, port = urlsplit(url), urlsplit(url).port
    except ValueError:  # its text quotes a password with a slash or a bracket
        raise ValueError("ASSAY_SMTP_URL has a part that cannot be used: encode it") from None
    if parts.scheme not in _PORTS or not parts.hostname or parts.path not in {"", "/"}:
        raise ValueError("ASSAY_SMTP_URL must be smtps://, smtp:// or smtp+plain://host:port")
    if parts.scheme == "smtp+plain" and parts.password:
        raise ValueError("ASSAY_SMTP_URL: a password is not sent without TLS")
    return SmtpServer(
        security=parts.scheme,
        host=parts.hostname,
        port=port or _PORTS[parts.scheme],
        user=unquote(parts.username) if parts.username else None,
        password=unquote(parts.password) if parts.password else None,
    )


class SmtpMailer:
    """Implements `accounts.ports.Mailer`."""

    def __init__(self, server: SmtpServer, sender: str) -> None:
        self._server = server
        self._sender = sender
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="smtp")
        self._tls = ssl.create_default_context()

    async def send(self, message: MailMessage) -> None:
        """Send one message, in a thread."""
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._threads, self._deliver, message)
        except (smtplib.SMTPException, OSError, ValueError) as error:
            # The library's text may contain the recipient, which is personal: keep its kind.
            raise Unavailable(
                "Mail cannot be sent now.", detail=_kind(error), retry_after_s=60
            ) from error

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _deliver(self, message: MailMessage) -> None:
        with self._connect() as smtp:
            if self._server.security == "smtp":
                smtp.starttls(context=self._tls)
            if self._server.user is not None:
                smtp.login(self._server.user, self._server.password or "")
            smtp.send_message(self._made(message))

    def _connect(self) -> smtplib.SMTP:
        server = self._server
        if server.security == "smtps":
            return smtplib.SMTP_SSL(server.host, server.port, timeout=TIMEOUT_S, context=self._tls)
        return smtplib.SMTP(server.host, server.port, timeout=TIMEOUT_S)

    def _made(self, message: MailMessage) -> EmailMessage:
        made = EmailMessage(policy=SMTP)
        made["From"] = self._sender
        made["To"] = message.to
        made["Subject"] = message.subject
        made["Date"] = formatdate()
        made["Message-ID"] = make_msgid(domain=self._sender.rpartition("@")[2].strip("<> "))
        made["Auto-Submitted"] = "auto-generated"
        made.set_content(message.text)
        return made


def _kind(error: Exception) -> str:
    code = getattr(error, "smtp_code", None)
    return f"{type(error).__name__} {code}" if code is not None else type(error).__name__


WAITING_MAX: Final = 1_000
"""Mails that wait; further ones are dropped and logged."""

AT_ONCE: Final = 4

Job = Callable[[], Awaitable[MailMessage | None]]
"""Finds out whether there is something to send, and creates it."""


class MailOutbox:
    """Sends mails in the background, so that the time of a response reveals nothing.

    The number of mails is bounded before a mail is created, by its code (`code_bounds`). Askers
    take turns. Beyond `WAITING_MAX`, the asker with most waiting loses its newest mail.
    """

    def __init__(self, mailer: Mailer, warn: Callable[[str, str | None], None]) -> None:
        """Create it; `warn` receives a sentence and its detail about mail that was not sent."""
        self._mailer = mailer
        self._warn = warn
        self._jobs: OrderedDict[str, deque[Job]] = OrderedDict()
        self._turns: asyncio.Queue[None] = asyncio.Queue(WAITING_MAX)
        """One entry for each waiting job."""

    def add(self, job: Job, asker: str) -> None:
        """Run the job soon. A restart loses it: its reader can ask again.

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
        """Send what is added, for ever."""
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(self._work())

    async def idle(self) -> None:
        """Wait until everything that was added so far has been sent or dropped."""
        await self._turns.join()

    def _displace(self, asker: str) -> bool:
        """Drop the newest job of the asker with most waiting; return whether there is room.

        Nothing is dropped if `asker` would then have most.
        """
        most = max(self._jobs, key=lambda one: len(self._jobs[one]))
        if len(self._jobs[most]) <= len(self._jobs.get(asker, ())) + 1:
            return False
        self._jobs[most].pop()
        return True

    def _next(self) -> Job:
        """Return the oldest job of the asker in turn, and move that asker to the end."""
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
    """Return the mail with a reset link. It contains nothing that a stranger could have chosen."""
    text = (
        "Somebody, probably you, asked for a new password for your Assay account.\n\n"
        f"To choose one, open this link before {iso(until)}:\n\n"
        f"{link}\n\n"
        "It works once. If it was not you, do nothing: your password stays as it is.\n"
    )
    return MailMessage(to, "Choose a new Assay password", text)


def verification_mail(to: str, link: str, until: datetime) -> MailMessage:
    """Return the mail with a verification link."""
    text = (
        "This address was given for an Assay account.\n\n"
        f"If the account is yours, confirm the address before {iso(until)}:\n\n"
        f"{link}\n\n"
        "If it is not yours, do nothing.\n"
    )
    return MailMessage(to, "Confirm your e-mail address for Assay", text)
