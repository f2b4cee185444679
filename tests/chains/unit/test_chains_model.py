import pytest

from assay.chains.model import is_address, parse_address
from assay.common.errors import InvalidRequest
from assay.registries.model import parse_token_id


@pytest.mark.parametrize(
    ("text", "canonical"),
    [("0", "0"), ("22", "22"), ("007", "7"), (str(2**256 - 1), str(2**256 - 1))],
)
def test_a_token_id_is_brought_to_its_canonical_form(text: str, canonical: str) -> None:
    assert parse_token_id(text) == canonical


@pytest.mark.parametrize(
    "text", ["", "-1", "1e3", "0x1", " 1", "1\n", "\u0661", "1.0", str(2**256), "0" * 79]
)
def test_what_is_no_token_id_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse_token_id(text)
    assert refused.value.extras["details"] == [
        {"loc": ["path", "agentId"], "message": refused.value.message}
    ]


def test_addresses_are_read_in_any_case() -> None:
    assert parse_address("0x" + "aB" * 20, "wallet") == "0x" + "ab" * 20


@pytest.mark.parametrize("text", ["", "0x", "0x" + "a" * 39, "0X" + "a" * 40, "0x" + "g" * 40])
def test_what_is_no_address_is_refused_by_the_name_of_its_field(text: str) -> None:
    assert not is_address(text)
    with pytest.raises(InvalidRequest, match="wallet must be 0x"):
        parse_address(text, "wallet")
