"""Mail over SMTP, by the standard library in threads of its own; TLS unless it is switched off."""

import asyncio
import smtplib
import ssl
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import formatdate, make_msgid
from typing import Final
from urllib.parse import unquote, urlsplit

from assay.accounts.credential_ports import MailMessage
from assay.common.errors import Unavailable

TIMEOUT_S: Final = 10.0
"""For connecting, and for each answer of the server."""

THREADS: Final = 4

_PORTS = {"smtps": 465, "smtp": 587, "smtp+plain": 25}


@dataclass(frozen=True, slots=True)
class SmtpServer:
    """Where mail is handed in."""

    security: str
    """`smtps`: TLS from the first byte; `smtp`: STARTTLS, required; `smtp+plain`: none."""
    host: str
    port: int
    user: str | None
    password: str | None


def smtp_server(url: str) -> SmtpServer:
    """The server of a URL. Raises `ValueError`, which does not repeat it."""
    try:
        parts, port = urlsplit(url), urlsplit(url).port
    except ValueError:  # its text quotes the password where that holds a slash or a bracket
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
    """Implements `accounts.credential_ports.Mailer`."""

    def __init__(self, server: SmtpServer, sender: str) -> None:
        self._server = server
        self._sender = sender
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="smtp")
        self._tls = ssl.create_default_context()

    async def send(self, message: MailMessage) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._threads, self._deliver, message)
        except (smtplib.SMTPException, OSError, ValueError) as error:
            # The library's text may repeat the recipient, which is personal: only its kind is kept.
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
