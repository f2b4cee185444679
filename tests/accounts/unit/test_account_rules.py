"""What may stand in an account, and what a suspended one may do."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from assay.accounts.model import (
    AccountSuspended,
    Operator,
    Plan,
    Role,
    email_address,
    password,
    require_active,
    short_text,
)
from assay.common.errors import InvalidRequest

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def operator(suspended_at: datetime | None = None) -> Operator:
    fee = Decimal(0)
    return Operator("op", "a@b.example", "A", Role.OPERATOR, Plan.FREE, fee, NOW, NOW, suspended_at)


def test_a_suspended_account_is_refused_and_any_other_passes() -> None:
    assert require_active(operator()) == operator()
    with pytest.raises(AccountSuspended):
        require_active(operator(NOW))


def test_an_email_address_loses_the_blanks_around_it_and_nothing_else() -> None:
    assert email_address("  You@Example.com ") == "You@Example.com"


@pytest.mark.parametrize(
    "text", ["", "a", "a@b", "a b@c.example", "a@b.example\u200b", f"{'a' * 65}@b.example"]
)
def test_what_is_no_email_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        email_address(text)


@pytest.mark.parametrize(
    ("count", "is_allowed"), [(11, False), (12, True), (256, True), (257, False)]
)
def test_a_password_has_12_to_256_characters(count: int, *, is_allowed: bool) -> None:
    if is_allowed:
        assert password("p" * count) == "p" * count
        return
    with pytest.raises(InvalidRequest):
        password("p" * count)


def test_a_name_has_characters_that_can_be_seen_and_100_at_most() -> None:
    assert short_text("name", " A team ") == "A team"
    for text in ("", "   ", "a\x00b", "a" * 101):
        with pytest.raises(InvalidRequest, match=r"^label must have 1 to 100 characters"):
            short_text("label", text)
