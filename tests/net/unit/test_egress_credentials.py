"""Our credentials leave with no request; what is the target's own passes unchanged."""

import base64
import json
from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from assay.accounts.model import API_KEY_PREFIX
from assay.common.ids import new_id
from assay.identity.model import ContractProof
from assay.identity.tokens import HmacSessionTokens, JwtLoginTokens
from assay.net.egress.credentials import API_KEY_MARK, CANDIDATES_MAX, OwnCredentials
from tests.support.fakes.clock import FrozenClock

ISSUER = "https://assay.example"


def tokens(issuer: str = ISSUER, secret: str = "s" * 40) -> JwtLoginTokens:
    return JwtLoginTokens((secret,), issuer, FrozenClock())


def foreign(claims: Mapping[str, object]) -> str:
    parts = ({"alg": "HS256", "typ": "JWT"}, claims)
    coded = [base64.urlsafe_b64encode(json.dumps(p).encode()).rstrip(b"=").decode() for p in parts]
    return ".".join((*coded, "c2lnbmF0dXJl"))


OURS = OwnCredentials(tokens().names_us)
KEY = "svc_op_" + "Ab1" * 14 + "x"
JWT = tokens().issue(new_id(), new_id())
OLD_JWT = tokens(secret="another secret that was ours before").issue(new_id(), new_id())
SESSIONS = [
    HmacSessionTokens(("t" * 40,)).issue(new_id(), who, datetime(2026, 11, 22, tzinfo=UTC))
    for who in ("0x" + "ab" * 20, "7xKXtg2CW87d97TXJSDpbD5jBkheTqA83TZRuJosgAsU", "1" * 32)
]
CHAINS = tuple(f"eip155:{84530 + number}" for number in range(20))
CONTRACT_SESSIONS = [
    HmacSessionTokens(("t" * 40,)).issue(
        new_id(), "0x" + "cd" * 20, datetime(2026, 11, 22, tzinfo=UTC), proof
    )
    for proof in (
        ContractProof(("eip155:8453",), is_home=True),
        ContractProof(CHAINS, is_home=False),
    )
]
SECRETS = [KEY, JWT, OLD_JWT, *SESSIONS, *CONTRACT_SESSIONS]
FOREIGN = [
    foreign({"iss": "https://other.example", "aud": "assay-dashboard", "sub": "1"}),
    foreign({"iss": ISSUER, "sub": "a decision token", "jti": "1"}),
    foreign({"iss": ISSUER, "aud": ["x"]}),
    foreign({"aud": "assay-dashboard"}),
    tokens("https://other.example").issue(new_id(), new_id()),
    "eyJ.eyJ.eyJ",
    "a.b.c",
    "sk_live_" + "a" * 60,
    "MDE5" + "a" * 180,
    "MDE5MDE5MDE5" * 30,
    "svc_optional",
    "svc-op-x",
]


def test_the_mark_of_an_api_key_is_that_of_the_accounts() -> None:
    assert API_KEY_PREFIX.encode() == API_KEY_MARK


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize(
    "shape",
    [
        *("{}", "Bearer {}", "bearer  {}", "Token {}", "Bearer\t{}", 'token="{}"', "a {} b"),
        *("https://x.example/?t={}", '{{"t":"{}"}}', "x, {}; q=1", "a.{}", "bearer.{}"),
        *("x{}", "_{}", "-{}", "v1-{}", "session_{}", "{}x", "{}_1", "eyJ{}", "MD{}", "MDE5-{}-a"),
    ],
)
def test_a_header_with_a_credential_of_ours_is_dropped_whatever_its_name(
    secret: str, shape: str
) -> None:
    value = shape.format(secret).encode()
    for name in (b"authorization", b"x-api-key", b"x-auth-token", b"referer", b"x"):
        assert OURS.header(name, value) is None


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("shape", ["{}:", ":{}", "user:{}", "{}:x", "a:b:{}"])
def test_basic_credentials_are_looked_into(secret: str, shape: str) -> None:
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        coded = encode(shape.format(secret).encode())
        for scheme in (b"Basic ", b"basic   "):
            assert OURS.header(b"authorization", scheme + coded) is None
            assert OURS.header(b"authorization", scheme + coded.rstrip(b"=")) is None


@pytest.mark.parametrize("value", [f"Bearer {token}" for token in FOREIGN] + FOREIGN)
def test_what_is_the_targets_own_passes(value: str) -> None:
    for name in (b"authorization", b"x-api-key", b"cookie"):
        assert OURS.header(name, value.encode()) == value.encode()
    assert OURS.query(f"a={value}&b") == f"a={value}&b"


@pytest.mark.parametrize(
    "value", [b"Basic YTpi", b"Basic !!", b"Basic ", b'Digest username="x"', b"100%", b"%zz", b""]
)
def test_odd_values_pass_as_they_are(value: bytes) -> None:
    assert OURS.header(b"authorization", value) == value


@pytest.mark.parametrize(
    "value", [b"Payment x", b"payment   x", b"PAYMENT\tx", b"Bearer a, Payment x"]
)
def test_a_payment_is_ours(value: bytes) -> None:
    assert OURS.header(b"authorization", value) is None


@pytest.mark.parametrize("value", [b"Payments x", b"PaymentToken x", b"Bearer payment"])
def test_a_scheme_that_only_begins_alike_is_not(value: bytes) -> None:
    assert OURS.header(b"authorization", value) == value


@pytest.mark.parametrize(
    ("sent", "passed"),
    [
        (b"a=b; c=d", b"a=b; c=d"),
        (b"a=b; assay_session=x; c=d", b"a=b; c=d"),
        (b"ASSAY_SESSION=x", None),
        (b"assay-session=x; a=b", b"a=b"),
        (b"a=b;__Host-assay_session=x;c", b"a=b;c"),
        (b"__Secure-assay_session=x; a=b", b"a=b"),
        (b"x-agent-session=x; a=b; x_payment=y", b"a=b"),
        (b"t=%b; a=b" % KEY.encode(), b"a=b"),
        (b'a=b; t="%b"' % JWT.encode(), b"a=b"),
        (b"my_assay_session=x", b"my_assay_session=x"),
        (b"", b""),
    ],
)
def test_of_cookies_only_ours_are_taken_out(sent: bytes, passed: bytes | None) -> None:
    assert OURS.header(b"cookie", sent) == passed


@pytest.mark.parametrize(
    ("sent", "passed"),
    [
        ("a=1&b=2", "a=1&b=2"),
        ("&&a&=&", "&&a&=&"),
        (f"a=1&key={KEY}&b=%20", "a=1&b=%20"),
        (f"key={KEY}&b", "b"),
        (f"b&key={KEY}", "b"),
        (f"key={KEY}", None),
        (f"{KEY}", None),
        ("key=%73vc%5Fop%5fabc&c=d", "c=d"),
        ("key=%2573vc_op_abc&c=d", "c=d"),
        (f"t={JWT}&a", "a"),
        (f"t={JWT.replace('.', '%2E')}&a", "a"),
        (f"a=1;t={SESSIONS[0]};b=2&c", "a=1;b=2&c"),
        ("x-agent-signature=0xab&X_Agent_Challenge=c&q", "q"),
        ("x%2Dpayment=e30=&payment-signature=e30=&q", "q"),
        ("x-agent-session[]=1&q", "q"),
        ("x-agent-id=7", "x-agent-id=7"),
        ("", ""),
    ],
)
def test_of_a_query_only_our_parameters_are_taken_out(sent: str, passed: str | None) -> None:
    assert OURS.query(sent) == passed


@pytest.mark.parametrize(
    "value",
    [b"eyJ" * 21_000, b"eyJa." * 13_000, b"MDE5" * 16_000, b"%25" * 21_000, b"Basic " * 10_000],
)
def test_a_header_made_to_be_slow_is_read_a_few_times_and_not_from_every_byte(value: bytes) -> None:
    """64 KiB that a quadratic search would need minutes for."""
    assert OURS.header(b"x", value) in {value, None}


@pytest.mark.parametrize(
    "value", [b"eyJa.eyJb.c " * 5_000, b"MD" + b"a" * 150 + b" ", b"Basic YTpi, " * 5_000]
)
def test_of_texts_that_look_like_ours_only_a_few_are_looked_at(value: bytes) -> None:
    """Thousands of them would take the processor from everybody else; they are not sent on."""
    seen: list[str] = []

    def judge(token: str) -> bool:
        seen.append(token)
        return False

    kept = OwnCredentials(judge).header(b"x", value)
    assert len(seen) <= CANDIDATES_MAX
    assert (kept is None) is (len(value) > 1000)


def test_of_very_many_pairs_with_one_of_ours_none_is_sent() -> None:
    many = "a=b&" * 2000
    assert OURS.query(many) == many
    assert OURS.query(f"{many}k={KEY}") is None
    cookies = b"a=b;" * 2000
    assert OURS.cookie(cookies) == cookies
    assert OURS.cookie(cookies + b"assay_session=x") is None
