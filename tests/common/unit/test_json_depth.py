import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.common.json import is_nested_beyond


@pytest.mark.parametrize(
    ("text", "deep"),
    [
        (b"[[1]]", False),
        (b"[[[1]]]", True),
        (b'{"a": [{"b": 1}]}', True),
        (b"[[],[],[],[]]", False),
        (b'["[[[[", "{{{{"]', False),
        (rb'["\"[[[[[", 1]', False),
        (b'"[[[[[', False),
        (b"[[[[[", True),
        (b"]]]]][[", False),
        (b"", False),
    ],
)
def test_depth_is_counted_outside_strings(text: bytes, deep: bool) -> None:  # noqa: FBT001
    assert is_nested_beyond(text, 2) is deep


def depth_of(value: object) -> int:
    if isinstance(value, list):
        return 1 + max(map(depth_of, value), default=0)
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    return 0


@given(
    st.recursive(
        st.text(alphabet='[]{}"\\a', max_size=6),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.text(alphabet='[{"', max_size=3), inner, max_size=3)
        ),
        max_leaves=20,
    ),
    st.integers(0, 6),
)
def test_the_depth_of_any_value_is_exact(value: object, depth: int) -> None:
    assert is_nested_beyond(json.dumps(value).encode(), depth) is (depth_of(value) > depth)


@pytest.mark.parametrize("end", [b"", b"\\"])
@pytest.mark.parametrize("unit", [b"[", b'"', b'\\"', b'"\\"', b"[]", b'"[', b"{}["])
def test_no_text_takes_long(unit: bytes, end: bytes) -> None:
    """A lone backslash at the end once made every quote before it a new beginning."""
    started = time.thread_time()
    is_nested_beyond(b"[" * 101 + b"]" * 60 + unit * (1_000_000 // len(unit)) + end, 101)
    assert time.thread_time() - started < 2  # of the processor
