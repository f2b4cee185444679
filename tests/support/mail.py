"""A real SMTP server of this process."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any, cast

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword


class Inbox:
    """Every mail the server took, in order."""

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        self.were_encrypted: list[bool] = []
        self.users: list[object] = []

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        del server
        self.mails.append(
            cast("EmailMessage", message_from_bytes(envelope.content, policy=default))
        )
        self.were_encrypted.append(session.ssl is not None)
        self.users.append(session.auth_data)
        return "250 OK"

    def newest(self) -> str:
        """The text of the newest mail."""
        return str(self.mails[-1].get_content())


class _Server(Controller):
    """On a free port of its own choice."""

    def _trigger_server(self) -> None:
        self.port = self.server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
        super()._trigger_server()


@contextmanager
def mail_server(
    tls: ssl.SSLContext | None = None, user: tuple[str, str] | None = None
) -> Iterator[tuple[Inbox, int]]:
    """An inbox, and the port of its server; with `tls`, it takes mail after STARTTLS alone."""
    inbox = Inbox()

    def authenticate(*given: Any) -> AuthResult:
        said = given[-1]
        right = isinstance(said, LoginPassword) and user is not None
        right = right and (said.login.decode(), said.password.decode()) == user
        return AuthResult(success=right, auth_data=said.login.decode())

    options: dict[str, Any] = {}
    if tls is not None:
        options = {"tls_context": tls, "require_starttls": True}
    if user is not None:
        options |= {"auth_required": True, "authenticator": authenticate}
    controller = _Server(inbox, hostname="127.0.0.1", port=0, **options)
    controller.start()
    try:
        yield inbox, controller.port
    finally:
        controller.stop()
