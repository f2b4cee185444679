"""Methods of JSON-RPC services: which may be called, and what texts show of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.common.json import JsonValue
from assay.probing.function.calling import (
    SHOWN_MAX,
    endpoint_in,
    may_call,
    method_signed,
    methods_described,
    methods_shown,
)

PIECES = (
    *(
        '{"jsonrpc": "2.0", ',
        '"method": "get.rate", ',
        '"params": [3, "EUR"]}',
        '"params": {}',
        "}",
    ),
    *("find_tide(day, port)", "getRate(", ")", "/v1/rpc", "(a: int", ", ", "{", "\n", '"jsonrpc"'),
)
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=6), max_size=40).map("".join)


@pytest.mark.parametrize(
    ("name", "about"),
    [
        ("getRate", ""),
        ("order.get", ""),
        ("text.reverse", ""),
        ("gcd", "The greatest common divisor"),
        ("tides/find", ""),
    ],
)
def test_a_method_that_asks_may_be_called(name: str, about: str) -> None:
    assert may_call(name, about)


@pytest.mark.parametrize(
    ("name", "about"),
    [
        ("place_order", "Returns its number"),
        ("list.update", ""),
        ("frobnicate", ""),
        ("getRate", "Books a rate and returns it"),
        ("notify", "Tells somebody"),
    ],
)
def test_a_method_that_may_act_is_not_called(name: str, about: str) -> None:
    assert not may_call(name, about)


def test_what_a_text_shows_of_methods_is_read() -> None:
    text = 'Try {"jsonrpc": "2.0", "id": 1, "method": "get.rate", "params": [3, "EUR"]} at /v1/rpc.'
    [one] = methods_shown(text + " Or find_tide(day: str, port: int) finds it; send_mail(to).")[:1]
    assert one.name == "get.rate"
    assert endpoint_in(text) == "/v1/rpc"
    names = [m.name for m in methods_shown(text + "\nfind_tide(day: str, port: int) - finds it")]
    assert names == ["get.rate", "find_tide"]


@given(TEXTS)
def test_any_text_is_read(text: str) -> None:
    assert len(methods_shown(text)) <= SHOWN_MAX
    assert endpoint_in(text) in text


@pytest.mark.parametrize("value", [None, [], {}, {"methods": 3}, {"methods": [{"params": 3}, 4]}])
def test_what_is_no_description_has_no_methods(value: JsonValue) -> None:
    assert methods_described(value) == []
    assert method_signed("getRate", value, "") is None
