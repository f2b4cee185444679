"""In no place and no spelling does a credential of ours survive; nothing else is changed."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.net.egress.credentials import CREDENTIAL_FIELDS, REQUEST_FIELDS
from tests.net.unit.test_egress_credentials import FOREIGN, OURS, SECRETS

PLAIN = st.text(st.sampled_from("abcXYZ09-_."), max_size=12)
GLUE = st.sampled_from(["", " ", "=", ":", '"', ",", ";x=", "/", "[", "{'a':'"])


@st.composite
def encoded(draw: st.DrawFn, text: str) -> str:
    """Any of its characters percent-encoded, up to three times over."""
    for _ in range(draw(st.integers(0, 3))):
        picked = draw(st.sets(st.integers(0, len(text) - 1), max_size=5))
        text = "".join(f"%{ord(c):02X}" if n in picked else c for n, c in enumerate(text))
    return text


@pytest.mark.parametrize("secret", SECRETS)
@given(data=st.data())
def test_no_credential_survives_in_any_value(secret: str, data: st.DataObject) -> None:
    before, after = data.draw(PLAIN), data.draw(PLAIN)
    left, right = data.draw(st.sampled_from([" ", "=", ":", '"', ",", "/"])), data.draw(GLUE)
    shown = data.draw(encoded(secret))
    value = f"{before}{left}{shown}{right or ' '}{after}"
    assert OURS.header(b"x-" + before.lower().encode(), value.encode()) is None
    assert shown not in (OURS.query(f"a=b&{value.replace('&', '')}&c") or "")
    assert shown.encode() not in (OURS.cookie(f"a=b; t={value}".encode()) or b"")
    basic = base64.b64encode(f"{before.replace(':', '')}:{secret}".encode())
    assert OURS.header(b"authorization", b"Basic " + basic) is None


@given(st.sampled_from(sorted(CREDENTIAL_FIELDS)), st.data())
def test_no_name_of_a_credential_survives_in_any_spelling(name: bytes, data: st.DataObject) -> None:
    text = "".join(
        data.draw(st.sampled_from(["-", "_", "."]))
        if c == "-"
        else data.draw(st.sampled_from([c, c.upper()]))
        for c in name.decode()
    )
    assert not REQUEST_FIELDS.passes(text.lower().encode())
    assert OURS.cookie(f"a=b; {text}=x".encode()) == b"a=b"
    assert OURS.query(f"a=b&{data.draw(encoded(text))}=x") == "a=b"


@given(
    st.lists(
        st.tuples(st.text("abc-_%.", max_size=8), st.one_of(PLAIN, st.sampled_from(FOREIGN))),
        max_size=6,
    )
)
def test_everything_else_passes_byte_for_byte(pairs: list[tuple[str, str]]) -> None:
    query = "&".join(f"{name}={value}" for name, value in pairs)
    cookie = "; ".join(f"{name}={value}" for name, value in pairs).encode()
    assert OURS.query(query) == query
    assert OURS.cookie(cookie) == cookie


@given(
    st.lists(
        st.tuples(
            st.sampled_from([b"authorization", b"cookie", b"x-api-key", b"x"]),
            st.one_of(
                PLAIN.map(str.encode),
                st.sampled_from([s.encode() for s in (*SECRETS, *FOREIGN)]),
                st.sampled_from(
                    [b"Payment x", b"a=b; assay_session=c", b"Basic YTpi", b"MD", b"%"]
                ),
            ),
        ),
        max_size=6,
    )
)
def test_all_headers_at_once_are_judged_as_each_by_itself(
    headers: list[tuple[bytes, bytes]],
) -> None:
    each = [(name, OURS.header(name, value)) for name, value in headers]
    assert OURS.headers(headers) == [one for one in each if one[1] is not None]
