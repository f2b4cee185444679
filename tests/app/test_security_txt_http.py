"""Where to report a weakness (RFC 9116)."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from assay.settings import SettingsError, load
from tests.support.live_service import TestService, start_test_service

PATH = "/.well-known/security.txt"


def fields(text: str) -> list[tuple[str, str]]:
    """Name and value of every line, as RFC 9116 has them."""
    assert text.endswith("\n")
    return [
        (name, value) for name, _, value in (line.partition(": ") for line in text.splitlines())
    ]


@pytest.mark.parametrize("days", range(0, 366, 30))
async def test_it_says_whom_to_tell_and_is_good_for_less_than_a_year(
    service: TestService, days: int
) -> None:
    service.clock.move(days * 86_400)
    answer = await service.http.get(PATH)
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    said = dict(fields(answer.text))
    assert said["Contact"] == "mailto:security@%5B127.0.0.1%5D"
    left = datetime.fromisoformat(said["Expires"]) - service.clock.now()
    assert timedelta(days=90) < left < timedelta(days=300)
    assert said["Canonical"] == service.app.settings.address + PATH


async def test_contacts_are_those_of_the_setting_in_their_order(tmp_path: Path) -> None:
    contacts = "mailto:sec@example.com, https://example.com/report"
    public = "https://assay.example.com"
    async with start_test_service(
        tmp_path, security_contact=contacts, public_url=public
    ) as service:
        said = fields((await service.http.get(PATH)).text)
        found = [value for name, value in said if name == "Contact"]
        assert found == ["mailto:sec@example.com", "https://example.com/report"]
        assert ("Canonical", public + PATH) in said


@pytest.mark.parametrize(
    ("address", "contact"),
    [
        ("https://assay.example.com/x", "mailto:security@assay.example.com"),
        ("http://[::1]:8787", "mailto:security@%5BIPv6:::1%5D"),
        ("http://localhost:1", "mailto:security@localhost"),
    ],
)
def test_without_the_setting_it_is_the_role_mailbox_of_the_host(address: str, contact: str) -> None:
    assert load(public_url=address).security_contacts == (contact,)


@pytest.mark.parametrize("wrong", ["sec@example.com", "mailto:a\nExpires: 1", "http://x.example"])
def test_what_is_no_contact_stops_the_boot(wrong: str) -> None:
    with pytest.raises(SettingsError, match="SECURITY_CONTACT"):
        load(security_contact=wrong)
