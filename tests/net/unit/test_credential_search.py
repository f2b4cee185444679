"""What looking for credentials costs: bytes decoded and texts judged, and never a clock."""

from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.net.egress import credentials
from assay.net.egress.credentials import STEPS_MAX, OwnCredentials, percent_decoded
from tests.net.unit.test_egress_credentials import JWT, KEY, OURS, SESSIONS, foreign

HEAD_BYTES = 57_000
UNITS = (
    b"%25",
    b"%25252541",
    b"%2525252541",
    b"%%",
    b"%7%33",
    b"a%253D",
    b"%70ayment-",
    b"MD",
    b"eyJ ",
)
ENCODED = st.lists(
    st.sampled_from(
        [b"%", b"%%", b"25", b"7", b"3", b"%73", b"%3D", b"=", b"%0a", b"%00", b"\r", b"x"]
    )
    | st.binary(max_size=3),
    max_size=20,
).map(b"".join)


class Counted:
    """Every decoding, by its bytes."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def __call__(self, value: bytes) -> bytes:
        self.sizes.append(len(value))
        return percent_decoded(value)


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> Counted:
    counted = Counted()
    monkeypatch.setattr(credentials, "percent_decoded", counted)
    return counted


def filled(unit: bytes, size: int) -> bytes:
    return (unit * (size // len(unit) + 1))[:size]


@given(ENCODED)
def test_decoding_at_once_is_what_a_server_does_by_parts(value: bytes) -> None:
    ends = bytes.maketrans(b"\r\n\0", b"   ")
    assert percent_decoded(value + b"x") == unquote_to_bytes(value + b"x").translate(ends)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("marked", [b"a", b"x-payment=1", KEY.encode()])
@pytest.mark.parametrize("lines", [1, 7, 200])
def test_no_head_has_more_decoded_than_it_could_be_encoded_and_a_little(
    decoded: Counted, unit: bytes, marked: bytes, lines: int
) -> None:
    """It was 24 times its size, and 23 ms of everybody's processor for 57 kB."""
    value = filled(unit, HEAD_BYTES // lines)
    OURS.headers([(b"cookie", marked), *((b"x-%d" % n, value) for n in range(lines))])
    assert sum(decoded.sizes) <= 6 * HEAD_BYTES
    assert len(decoded.sizes) < STEPS_MAX / 4
    decoded.sizes.clear()
    OURS.query((value + b"&" + marked).decode("ascii"))
    assert sum(decoded.sizes) <= 6 * HEAD_BYTES


@pytest.mark.parametrize("count", [190, 5000])
def test_nor_have_many_pairs(decoded: Counted, count: int) -> None:
    pairs = [filled(b"%2525", HEAD_BYTES // count)] * count
    OURS.headers([(b"cookie", b";".join([*pairs, b"x-payment=1"]))])
    OURS.query(b"&".join([*pairs, b"x-payment=1"]).decode("ascii"))
    assert sum(decoded.sizes) <= 12 * HEAD_BYTES
    assert len(decoded.sizes) < STEPS_MAX / 2


@pytest.mark.parametrize("lines", [1, 30, 200])
def test_over_a_whole_request_only_so_many_tokens_are_read(lines: int) -> None:
    seen: list[str] = []

    def judge(token: str) -> bool:
        seen.append(token)
        return False

    value = filled(b"eyJhIjoxfQ.eyJh.x ", HEAD_BYTES // lines)
    OwnCredentials(judge).headers([(b"x-%d" % n, value) for n in range(lines)])
    assert len(seen) <= STEPS_MAX / 8


def encoded(text: str, times: int) -> str:
    for _ in range(times):
        text = "".join(f"%{ord(char):02x}" for char in text)
    return text


@pytest.mark.parametrize("secret", [KEY, JWT, SESSIONS[0]])
@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("unit", [b"%20a", b"%25", b"%25252541", b"%%", b"MD"])
def test_a_credential_behind_much_that_is_encoded_never_passes(
    secret: str, times: int, unit: bytes
) -> None:
    """What is beyond the bound is dropped, and not passed unread."""
    shown = encoded(secret, times)
    for size in (0, 8_000, 20_000, 50_000):
        much = filled(unit, size)
        passed = OURS.headers([(b"x", much), (b"y", b"%b %b" % (much, shown.encode()))])
        assert b"y" not in dict(passed)
        assert shown not in (OURS.query(f"a={much.decode('ascii')}&b={shown}") or "")


ORDINARY = (
    b"%7B%22query%22%3A%22payments%22%2C%22n%22%3A1%7D",
    b"caf%C3%A9%20100%25",
    b"a=%2520b; consent=%7B%22x%22%3A%22y%22%7D",
    foreign({"iss": "https://other.example"}).encode() + b"%20",
    b"Assay%20x-agent%20auth%20MD%20",
)


@pytest.mark.parametrize("unit", ORDINARY)
def test_the_callers_own_values_pass_however_long_and_encoded(unit: bytes) -> None:
    for size in (400, 9_000, 60_000):
        value = filled(unit + b" ", size) if b"eyJ" not in unit else filled(b"a%20", size) + unit
        headers = [(b"cookie", value), (b"authorization", b"Bearer " + unit)]
        assert OURS.headers(headers) == headers
        assert OURS.query(value.decode("ascii")) == value.decode("ascii")
