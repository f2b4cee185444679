"""Numbers of strangers are read as they are written, within bounds, or not at all."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.common.numbers import NotANumber, decimal_number, hex_number, whole_number

ODD = [
    *("", "0x", "0X5", "5", "-0x5", "+0x5", "0x-5", "0x_5", "0x5_0", " 0x5", "0x5 ", "0x5\n"),
    *("0x\uff15", "0x5g", "0x5.0", "0x1e+3", "\u0660x5", "0b1", "0o7", "0x" + "f" * 65),
    *("0x" + "0" * 65 + "1", "\ud800", None, True, 5, 5.0, [], {}, b"0x5"),
]
PLAIN_ODD = [
    *(
        "",
        "-5",
        "+5",
        " 5",
        "5 ",
        "5\n",
        "1_000",
        "\u0665",
        "\uff15",
        "\u00b2",
        "0x5",
        "5.0",
        "1e3",
    ),
    *("9" * 5000, "0" * 21, None, True, 5),
]


@pytest.mark.parametrize("value", ODD, ids=ascii)
def test_what_is_no_hexadecimal_number_is_refused(value: object) -> None:
    with pytest.raises(NotANumber):
        hex_number(value, 256)


@pytest.mark.parametrize("value", PLAIN_ODD, ids=ascii)
def test_what_is_no_decimal_number_is_refused(value: object) -> None:
    with pytest.raises(NotANumber):
        decimal_number(value, 2**64)


@pytest.mark.parametrize("value", [True, False, None, "5", 5.0, -1, 11, float("nan"), 10**400])
def test_what_is_no_whole_number_of_the_range_is_refused(value: object) -> None:
    with pytest.raises(NotANumber):
        whole_number(value, 10)


@given(st.integers(0, 2**256 - 1), st.integers(1, 256))
def test_a_number_is_read_within_its_bits_and_refused_beyond(number: int, bits: int) -> None:
    for text in (hex(number), hex(number).upper().replace("X", "x"), f"0x{number:064x}"):
        if number < 2**bits and len(text) - 2 <= -(-bits // 4):
            assert hex_number(text, bits) == number
        else:
            with pytest.raises(NotANumber):
                hex_number(text, bits)


@given(st.integers(0, 10**30), st.integers(0, 10**30))
def test_a_decimal_number_is_read_up_to_the_largest(number: int, largest: int) -> None:
    if number <= largest:
        assert decimal_number(str(number), largest) == number
    else:
        with pytest.raises(NotANumber):
            decimal_number(str(number), largest)


@given(st.text(alphabet="0123456789abcdefxX_+- .\n\u0665\uff11\u00b2g", max_size=80))
def test_whatever_is_read_has_the_plain_form(text: str) -> None:
    try:
        number = hex_number(text, 256)
    except NotANumber:
        assert not re.fullmatch(r"0x[0-9a-fA-F]{1,64}", text)
    else:
        assert re.fullmatch(r"0x[0-9a-fA-F]{1,64}", text)
        assert number == int(text, 0)
    try:
        number = decimal_number(text, 10**20)
    except NotANumber:
        assert not re.fullmatch(r"[0-9]{1,20}", text)
    else:
        assert text.isascii()
        assert text.isdigit()
        assert number == int(text)
