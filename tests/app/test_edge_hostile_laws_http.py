"""Whatever stands in a body, a path or a header: a refusal, never a fault of ours."""

import json
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.live_service import OWNER_KEY, PASSWORD, TestService, address

pytestmark = pytest.mark.slow

ONE_HOUSE = settings(
    max_examples=120,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

DEEP: Any = json.loads("[" * 100 + "]" * 100)

HOSTILE = st.one_of(
    st.text(st.characters(), max_size=40),  # lone surrogates and NUL among them
    st.sampled_from(
        ["", "\0", "a\0b", "\ud800", "\udfff\ud800", "\u202e", "' OR 1=1 --", "%", "x" * 100_000]
    ),
    st.sampled_from([10**400, -(10**400), 1e308, -0.0, 5e-324, True, None, [], {}, DEEP]),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
)

FIELDS = [
    ("POST", "/operator/register", {"email": "a@b.cc", "password": PASSWORD, "name": "A"}),
    ("POST", "/operator/login", {"email": "a@b.cc", "password": PASSWORD}),
    ("PATCH", "/operator/me", {"name": "A"}),
    ("POST", "/operator/keys/rotate", {"label": "A"}),
    (
        "POST",
        "/operator/key/verify",
        {"agentAddress": address(OWNER_KEY), "challenge": "x", "signature": "0x" + "11" * 65},
    ),
    ("POST", "/operator/gate/7", {"minScore": 1, "ttlMs": 1, "trustSignals": ["8004"]}),
]
EACH = [
    (method, path, body, field)
    for method, path, body in FIELDS
    for field in body  # type: ignore[attr-defined] - every one is a mapping
]


Headers = dict[str, str]


@pytest.fixture
async def op(service: TestService) -> Headers:
    return await service.operator()


@pytest.fixture
async def both(service: TestService, op: Headers) -> Headers:
    return op | await service.session()


@pytest.fixture
async def token(service: TestService, op: Headers) -> Headers:
    assert op
    return await service.token()


def surrogates(value: object) -> bool:
    return isinstance(value, str) and any("\ud800" <= c <= "\udfff" for c in value)


@pytest.mark.parametrize(("method", "path", "body", "field"), EACH, ids=lambda v: str(v)[:24])
@ONE_HOUSE
@given(value=HOSTILE)
async def test_no_value_of_any_member_is_a_fault_of_ours(
    service: TestService,
    both: Headers,
    token: Headers,
    method: str,
    path: str,
    body: dict[str, Any],
    field: str,
    value: Any,
) -> None:
    logins: Any = service.app.logins
    throttle = logins._proof.throttle
    for counts in (throttle._pairs, throttle._networks, throttle._accounts):
        counts._known.clear()
    headers = both if "gate" in path else token
    content = json.dumps(body | {field: value})
    answer = await service.http.request(method, path, headers=headers, content=content)
    assert answer.status_code < 500, answer.text
    if surrogates(value):
        assert answer.status_code == 400
    if answer.status_code == 400:
        assert len(answer.content) < 5000


PLACES = [
    ("GET", "/operator/agent/{}"),
    ("GET", "/operator/agent/{}/snapshot"),
    ("GET", "/operator/agent/7?chain={}"),
    ("GET", "/operator/wallet/{}"),
    ("GET", "/operator/resolve-wallet/{}"),
    ("POST", "/operator/trigger-sandbox/{}"),
    ("POST", "/operator/trigger-sandbox-key/{}"),
    ("POST", "/operator/gate/{}"),
    ("POST", "/operator/gate/7?chain={}"),
    ("POST", "/operator/key/{}/challenge"),
    ("GET", "/operator/key/{}"),
    ("DELETE", "/operator/keys/{}"),
    ("GET", "/{}"),
]
WORDS = st.one_of(
    st.text(max_size=30).map(lambda text: quote(text, safe="")),
    st.binary(max_size=30).map(lambda raw: quote(raw, safe="")),
    st.integers().map(str),
    st.sampled_from(["0x" + "A" * 40, "0x" + "a" * 64, "9" * 400, "..", "%2e%2e", "%E2%80%AE"]),
)


@ONE_HOUSE
@given(place=st.sampled_from(PLACES), word=WORDS)
async def test_no_word_of_any_path_is_a_fault_of_ours(
    service: TestService, both: Headers, place: tuple[str, str], word: str
) -> None:
    answer = await service.http.request(place[0], place[1].format(word), headers=both)
    assert answer.status_code < 500, answer.text


NAMES = [
    "authorization", "x-agent-address", "x-agent-session", "x-agent-signature", "x-agent-challenge",
    "x-chain", "x-request-id", "x-forwarded-for", "content-type", "accept", "cookie",
]  # fmt: skip
LINES = st.one_of(
    st.text(st.characters(max_codepoint=255, exclude_characters="\r\n\0"), max_size=60),
    st.sampled_from(["Bearer \xff", "bearer svc_op_\xe9", "0x" + "a" * 40, "0x", "x" * 9000]),
).map(lambda text: text.encode("latin-1"))


@ONE_HOUSE
@given(lines=st.lists(st.tuples(st.sampled_from(NAMES), LINES), max_size=5))
async def test_no_header_is_a_fault_of_ours(
    service: TestService, op: Headers, lines: list[tuple[str, bytes]]
) -> None:
    base = [(name.encode(), value.encode()) for name, value in op.items()]
    given_lines = [(name.encode(), value) for name, value in lines]
    for method, path, headers in (
        ("POST", "/operator/gate/7", base + given_lines),
        ("POST", "/operator/gate/7", given_lines),
        ("GET", "/operator/agent/7", base + given_lines),
        ("GET", "/operator/me", given_lines),
        ("DELETE", f"/operator/key/{address(OWNER_KEY)}/session", given_lines),
    ):
        answer = await service.http.request(method, path, headers=headers)
        assert answer.status_code < 500, answer.text
