"""Mail over SMTP, against a real server."""

import socket
from pathlib import Path

import pytest

from assay.accounts.mail import SmtpMailer, smtp_server
from assay.accounts.ports import MailMessage
from assay.common.errors import Unavailable
from tests.support.certificates import TestAuthority
from tests.support.mail import mail_server

MAIL = MailMessage(
    "you@example.com", "Subject \u00e9", "Text\n\nhttps://x.example/#reset=" + "a" * 90
)


async def test_starttls_is_required_the_name_is_checked_and_the_password_goes_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = TestAuthority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.certificate_file()))
    with mail_server(authority.server_context("127.0.0.1"), ("me", "p@ss")) as (inbox, port):
        mailer = SmtpMailer(smtp_server(f"smtp://me:p%40ss@127.0.0.1:{port}"), "A <a@b.cc>")
        await mailer.send(MAIL)
        mailer.close()
    assert (inbox.were_encrypted, inbox.users) == ([True], ["me"])
    assert inbox.mails[0]["Subject"] == MAIL.subject
    assert inbox.newest().split() == MAIL.text.split()


async def test_a_certificate_nobody_vouches_for_is_refused(tmp_path: Path) -> None:
    tls = TestAuthority(tmp_path).server_context("127.0.0.1")
    with mail_server(tls) as (inbox, port):
        mailer = SmtpMailer(smtp_server(f"smtp://127.0.0.1:{port}"), "a@b.cc")
        with pytest.raises(Unavailable) as refusal:
            await mailer.send(MAIL)
        mailer.close()
    assert inbox.mails == []
    assert "you@example.com" not in str(refusal.value.detail)


async def test_a_server_without_tls_gets_nothing_unless_it_is_switched_off() -> None:
    with mail_server() as (inbox, port):
        for scheme in ("smtp", "smtps"):
            mailer = SmtpMailer(smtp_server(f"{scheme}://127.0.0.1:{port}"), "a@b.cc")
            with pytest.raises(Unavailable):
                await mailer.send(MAIL)
            mailer.close()
        assert inbox.mails == []
        mailer = SmtpMailer(smtp_server(f"smtp+plain://127.0.0.1:{port}"), "a@b.cc")
        await mailer.send(MAIL)
        mailer.close()
    assert len(inbox.mails) == 1


async def test_a_server_that_says_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assay.accounts.mail.TIMEOUT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        mailer = SmtpMailer(smtp_server(f"smtp+plain://127.0.0.1:{port}"), "a@b.cc")
        with pytest.raises(Unavailable):
            await mailer.send(MAIL)
        mailer.close()


@pytest.mark.parametrize("to", ["a@b.cc\r\nBcc: c@d.ee", "a@b.cc\nX: y"])
async def test_no_recipient_adds_a_header(to: str) -> None:
    with mail_server() as (inbox, port):
        mailer = SmtpMailer(smtp_server(f"smtp+plain://127.0.0.1:{port}"), "a@b.cc")
        with pytest.raises(Unavailable):
            await mailer.send(MailMessage(to, "s", "t"))
        mailer.close()
    assert inbox.mails == []


@pytest.mark.parametrize(
    "url", ["", "http://h", "smtp://", "smtp:///x", "smtp+plain://u:hush@h", "smtps://h/hush"]
)
def test_other_urls_are_refused_without_repeating_them(url: str) -> None:
    with pytest.raises(ValueError, match=r"^ASSAY_SMTP_URL") as refusal:
        smtp_server(url)
    assert "hush" not in str(refusal.value)
