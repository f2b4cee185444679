"""Texts that are shown to people hold no secrets, and names that look alike are found."""

from base64 import b64encode

import pytest

from assay.common.sliced_work import whole
from assay.probing.poisoning import find_alike
from assay.probing.secret_formats import (
    environment_lines,
    find_secrets,
    find_settings,
    leaked_internals,
    without_secrets,
)

CYRILLIC_A = "\N{CYRILLIC SMALL LETTER A}"


def test_a_secret_in_a_shown_text_is_replaced_by_its_kind() -> None:
    key = "AKIA" + "Q7ZR2YK4XW4TB3NC"
    shown = without_secrets(f"the key is {key}.")
    assert key not in shown
    assert shown.startswith("the key is [")


def test_an_environment_file_shows_the_names_that_it_sets() -> None:
    text = "# settings\nDB_HOST=localhost\nexport TOKEN=x\nno assignment\n"
    assert [*environment_lines(text)][:1] == ["DB_HOST"]


def test_one_name_of_look_alikes_among_many_is_found() -> None:
    plain = [f"tool_{number}" for number in range(3_000)]
    assert not whole(find_alike(plain[:900]))
    assert whole(find_alike([*plain[:500], f"p{CYRILLIC_A}yment"]))


@pytest.mark.parametrize(
    ("text", "is_leak"),
    [
        ("connect to 10.1.2.3 failed", True),
        ("connect to 127.0.0.1 failed", False),
        ("connect to 8.8.8.8 failed", False),
        ("connect to 999.1.1.1 failed", False),
        ("db.prod.svc.cluster.local refused", True),
    ],
)
def test_addresses_inside_a_network_are_leaks_and_others_are_none(
    text: str, *, is_leak: bool
) -> None:
    assert ("internal address" in leaked_internals(text, ())) == is_leak


SETTINGS = "DB_HOST=db\nDB_PASSWORD=hunter2hunter2\nAPI_KEY='q9w8e7r6t5'\n"


@pytest.mark.parametrize(
    ("text", "page", "is_found"),
    [
        (SETTINGS, "", True),
        (SETTINGS, "export DB_PASSWORD=hunter2hunter2 and API_KEY=q9w8e7r6t5", False),
        ("DB_PASSWORD=hunter2hunter2\nDB_HOST=db\n", "", False),
        ("A_B=1\nDB_HOST=db\nDB_PASSWORD=********\nAPI_KEY=<your-key-here>\n", "", False),
        (b64encode(SETTINGS.encode()).decode(), "", True),
        ("x" * 100_000, "", False),
    ],
)
def test_settings_are_three_names_one_of_them_a_secret_that_no_public_page_has(
    text: str, page: str, *, is_found: bool
) -> None:
    assert whole(find_settings(text, [page])) is is_found


def test_secrets_are_given_whole_only_to_be_compared() -> None:
    key = "AKIA" + "Q7ZR2YK4XW4TB3NC"
    compared = set[str]()
    shown = whole(find_secrets([f"the key is {key}."] * 2, (), compared))
    assert compared == {key}
    assert not any(key in one for one in shown.values())
