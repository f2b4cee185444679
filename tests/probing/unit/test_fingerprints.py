"""What a visit keeps of an agent, for the next one to be compared with."""

import pytest

from assay.probing.fingerprints import acts


@pytest.mark.parametrize(
    ("name", "is_read_only", "does"),
    [
        ("send_mail", False, True),
        ("sendMail", True, True),
        ("HTTPPost", False, True),
        ("list_orders", True, False),
        ("get_order_status", True, False),
        ("search", False, False),
        ("resize_avatar", False, False),
        ("delete", True, True),
        ("", False, False),
    ],
)
def test_a_tool_acts_by_its_name_unless_it_says_otherwise_and_does_not_begin_with_an_act(
    name: str, *, is_read_only: bool, does: bool
) -> None:
    assert acts(name, is_read_only=is_read_only) is does
