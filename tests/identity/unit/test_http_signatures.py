"""Signatures of HTTP messages: the RFC's own example, what is refused, and hostile fields."""

import base64

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from assay.identity.http_signatures import (
    InnerList,
    RequestSignature,
    SignedRequest,
    _base,
    _dictionary,
    _is_item,
    _shown,
    _shown_list,
    read_signature,
)
from assay.identity.model import WebBotAuthRefused
from assay.identity.web_bot_auth import read_directory, thumbprint

NOW = 1_800_000_000
KEY = Ed25519PrivateKey.from_private_bytes(b"\x07" * 32)
PUBLIC = KEY.public_key().public_bytes_raw()
COVERED = '("@authority" "signature-agent" "x-agent-id")'
AGENT = '"https://agent.example"'


def signed(
    covered: str = COVERED,
    *,
    agent: str = AGENT,
    authority: str = "api.example",
    label: str = "sig1",
    key: Ed25519PrivateKey = KEY,
    lines: tuple[str, ...] | None = None,
    **changes: str | None,
) -> list[tuple[bytes, bytes]]:
    """Headers of a request as a signer of the draft sends them; a change to None leaves it out."""
    parameters: dict[str, str | None] = {
        "created": str(NOW),
        "expires": str(NOW + 60),
        "keyid": f'"{thumbprint(key.public_key().public_bytes_raw())}"',
        "alg": '"ed25519"',
        "nonce": '"n"',
        "tag": '"web-bot-auth"',
        **changes,
    }
    shown = covered + "".join(f";{k}={v}" for k, v in parameters.items() if v is not None)
    said = lines or (
        f'"@authority": {authority}',
        f'"signature-agent": {agent}',
        '"x-agent-id": 7',
    )
    base = "\n".join([*said, f'"@signature-params": {shown}'])
    signature = base64.b64encode(key.sign(base.encode()))
    return [
        (b"signature-agent", agent.encode()),
        (b"x-agent-id", b"7"),
        (b"signature-input", f"{label}={shown}".encode()),
        (b"signature", label.encode() + b"=:" + signature + b":"),
    ]


def read(headers: list[tuple[bytes, bytes]], now_s: float = NOW) -> RequestSignature:
    return read_signature(
        SignedRequest(tuple(headers), ("api.example",), {"@method": "GET"}), now_s
    )


def reason(headers: list[tuple[bytes, bytes]], now_s: float = NOW) -> str:
    with pytest.raises(WebBotAuthRefused) as refusal:
        read(headers, now_s)
    return str(refusal.value.extras["reason"]).removeprefix("web_bot_auth_")


def test_the_rfcs_ed25519_example_is_verified() -> None:
    """Source: RFC 9421, appendix B.2.6."""
    covered = (
        '("date" "@method" "@path" "@authority" "content-type" "content-length")'
        ';created=1618884473;keyid="test-key-ed25519"'
    )
    made = _dictionary(f"sig-b26={covered}")["sig-b26"]
    assert isinstance(made, InnerList)
    headers = (
        (b"host", b"example.com"),
        (b"date", b"Tue, 20 Apr 2021 02:07:55 GMT"),
        (b"content-type", b"application/json"),
        (b"content-length", b"18"),
    )
    request = SignedRequest(headers, (), {"@method": "POST", "@path": "/foo"})
    signature = base64.b64decode(
        "wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw=="
    )
    key = base64.urlsafe_b64decode("JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs=")
    for authority, verifies in (("example.com", True), ("other.example", False)):
        base = _base(made, request, authority)
        found = RequestSignature("", "", "", 0, (base,), signature)
        assert found.is_signed_by(key) is verifies


def test_a_keys_id_is_its_jwk_thumbprint() -> None:
    """Source: RFC 9421, appendix B.1.4."""
    key = base64.urlsafe_b64decode("JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs=")
    assert thumbprint(key) == "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U"


def test_a_signature_of_the_draft_is_read_and_verified() -> None:
    found = read(signed())
    assert (found.agent, found.nonce, found.expires) == ("https://agent.example", "n", NOW + 60)
    assert found.is_signed_by(PUBLIC)
    assert not found.is_signed_by(bytes(32))
    assert not found.is_signed_by(b"short")


@pytest.mark.parametrize(
    ("covered", "line"),
    [
        (
            '("@authority" "x-agent-id" "signature-agent")',
            '"signature-agent": sig1="https://agent.example"',
        ),
        (
            '("@authority" "x-agent-id" "signature-agent";key="sig1")',
            '"signature-agent";key="sig1": "https://agent.example"',
        ),
    ],
)
def test_the_dictionary_of_later_drafts_is_read_by_the_signatures_label(
    covered: str, line: str
) -> None:
    agent = 'sig1="https://agent.example"'
    headers = signed(
        covered, agent=agent, lines=('"@authority": api.example', '"x-agent-id": 7', line)
    )
    found = read(headers)
    assert found.agent == "https://agent.example"
    assert found.is_signed_by(PUBLIC)
    other = [(b"signature-agent", b'sig2="https://agent.example"'), *headers[1:]]
    assert reason(other) == "malformed"


def test_a_signature_for_another_host_is_of_no_use() -> None:
    assert not read(signed(authority="other.example")).is_signed_by(PUBLIC)


def test_a_signature_over_the_method_is_of_no_use_for_another() -> None:
    covered = '("@authority" "@method" "signature-agent" "x-agent-id")'
    said = ['"@authority": api.example', '"@method": GET', f'"signature-agent": {AGENT}']
    said.append('"x-agent-id": 7')
    assert read(signed(covered, lines=tuple(said))).is_signed_by(PUBLIC)
    said[1] = '"@method": POST'
    assert not read(signed(covered, lines=tuple(said))).is_signed_by(PUBLIC)


def test_a_signed_header_field_may_not_be_changed_or_left_out() -> None:
    headers = signed()
    assert read(headers).is_signed_by(PUBLIC)
    for other in (b"8", b"7, 8"):
        changed = [(k, other if k == b"x-agent-id" else v) for k, v in headers]
        assert not read(changed).is_signed_by(PUBLIC)
    without = [pair for pair in headers if pair[0] != b"x-agent-id"]
    assert reason(without) == "malformed"
    broken = [(k, b"7\n8" if k == b"x-agent-id" else v) for k, v in headers]
    assert reason(broken) == "malformed"


def test_a_signature_says_which_agent_of_which_chain_it_is_of() -> None:
    """A platform that signs what its tenants send must not make one tenant pass for another."""
    assert reason(signed('("@authority" "signature-agent")')) == "components"
    assert reason([*signed(), (b"x-chain", b"base")]) == "components"
    covered = '("@authority" "signature-agent" "x-agent-id" "x-chain")'
    said = ['"@authority": api.example', f'"signature-agent": {AGENT}', '"x-agent-id": 7']
    headers = signed(covered, lines=(*said, '"x-chain": base'))
    assert read([*headers, (b"x-chain", b"base")]).is_signed_by(PUBLIC)
    assert not read([*headers, (b"x-chain", b"ethereum")]).is_signed_by(PUBLIC)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"created": None}, "malformed"),
        ({"expires": None}, "malformed"),
        ({"expires": "?1"}, "malformed"),
        ({"created": str(NOW + 61), "expires": str(NOW + 100)}, "not_yet_valid"),
        ({"created": str(NOW - 100), "expires": str(NOW)}, "expired"),
        ({"expires": str(NOW + 301)}, "lifetime"),
        ({"expires": str(NOW - 1)}, "lifetime"),
        ({"alg": '"hmac-sha256"'}, "algorithm"),
        ({"keyid": None}, "malformed"),
        ({"keyid": '"short"'}, "malformed"),
        ({"nonce": None}, "nonce"),
        ({"nonce": '""'}, "nonce"),
        ({"nonce": f'"{"n" * 257}"'}, "nonce"),
        ({"tag": '"other"'}, "malformed"),
        ({"tag": "web-bot-auth"}, "malformed"),
    ],
)
def test_parameters_that_prove_nothing_are_refused(
    changes: dict[str, str | None], expected: str
) -> None:
    assert reason(signed(**changes)) == expected


@pytest.mark.parametrize(
    ("covered", "expected"),
    [
        ("()", "malformed"),
        ('("@authority" "x-agent-id")', "malformed"),
        ('("signature-agent" "x-agent-id")', "components"),
        ('("@authority" "@authority" "signature-agent" "x-agent-id")', "malformed"),
        ('("@authority" "signature-agent" "x-agent-id" "@status")', "components"),
        ('("@authority" "signature-agent" "x-agent-id" "@path")', "components"),
        ('("@authority" "signature-agent" "x-agent-id" "date";bs)', "components"),
        ('("@authority" "signature-agent";sf "x-agent-id")', "malformed"),
        ('("@authority" "signature-agent" "x-agent-id" "signature-agent";key="x")', "malformed"),
        ('("@authority" "signature-agent" "x-agent-id" "Date")', "malformed"),
        ('("@authority" "signature-agent" "x-agent-id" token)', "malformed"),
    ],
)
def test_components_that_are_not_enough_or_not_known_are_refused(
    covered: str, expected: str
) -> None:
    assert reason(signed(covered)) == expected


def test_a_member_of_another_field_is_refused() -> None:
    agent = 'sig1="https://agent.example", b=(1)'
    covered = '("@authority" "signature-agent" "x-agent-id" "signature-agent";key="b")'
    assert reason(signed(covered, agent=agent)) == "malformed"


@pytest.mark.parametrize("agent", ["https://agent.example", "7", '"https://a" x', '"a'])
def test_an_agent_that_is_no_quoted_url_is_refused(agent: str) -> None:
    assert reason(signed(agent=agent)) == "malformed"


def test_the_signature_is_the_bytes_of_its_label() -> None:
    agent, named, given_input, _ = signed()
    for signature in (b"sig1=x", b"sig2=:AAAA:", b"sig1=:AAAA:", b"sig1=:A:", b"sig1=()"):
        assert reason([agent, named, given_input, (b"signature", signature)]) == "malformed"


def test_a_second_header_line_is_part_of_the_field() -> None:
    """Else two readers of one request could take different signatures for the one."""
    headers = signed()
    assert reason([*headers, headers[2]]) == "malformed"
    other = signed(label="sig2")[2]
    assert reason([*headers, other]) == "malformed"
    cdn = (b"signature-input", b'cdn=("@method");created=1;tag="cdn"')
    assert read([*headers, cdn]).is_signed_by(PUBLIC)


@pytest.mark.parametrize(
    "field",
    [
        "", " ", "a", "a=", "a=(", "a=(1", "a=()x", "a=(1 2)(", "A=1", "a=1,", "a=1,,b=2", "a=1;",
        "a=1;A", "a=1;b;b", "a=1, a=2", 'a="\\x"', "a=1.5", "a=1234567890123456", "a=?2", "a=:=:",
        'a=("x""y")', "a=\x00", "a=ü", "a=(" + "1 " * 21 + ")", "x" * 4097,
        ", ".join(f"k{n}=1" for n in range(9)), "a=1" + "".join(f";p{n}" for n in range(21)),
    ],
)  # fmt: skip
def test_a_field_that_is_not_structured_is_refused(field: str) -> None:
    agent, named, _, signature = signed()
    assert reason([agent, named, (b"signature-input", field.encode()), signature]) == "malformed"


def test_values_are_written_in_their_one_spelling() -> None:
    text = 'a=( "q\\"\\\\"  t/x :AAE=: ?0  ?1 -7 );p;q=?0;r=*t'
    found = _dictionary(text)["a"]
    assert isinstance(found, InnerList)
    assert _shown_list(found) == '("q\\"\\\\" t/x :AAE=: ?0 ?1 -7);p;q=?0;r=*t'


@given(st.text(st.sampled_from('ab=;,"\\():?1* \t-.~'), max_size=40) | st.text(max_size=40))
def test_what_is_read_is_read_the_same_again(text: str) -> None:
    try:
        members = _dictionary(text)
    except WebBotAuthRefused:
        return
    shown = {k: _shown(v) if _is_item(v) else _shown_list(v) for k, v in members.items()}  # type: ignore[arg-type]
    again = _dictionary(", ".join(f"{key}={value}" for key, value in shown.items()))
    assert again == members


@given(st.binary(max_size=80), st.binary(max_size=80), st.binary(max_size=80))
def test_hostile_fields_are_refused(one: bytes, two: bytes, three: bytes) -> None:
    headers = [(b"signature-agent", one), (b"signature-input", two), (b"signature", three)]
    assert reason(headers)


X = base64.urlsafe_b64encode(PUBLIC).rstrip(b"=").decode()
JWK = f'{{"kty":"OKP","crv":"Ed25519","x":"{X}"'


@pytest.mark.parametrize(
    "more", ["", ',"use":"sig"', f',"nbf":{NOW},"exp":{NOW + 1}', f',"nbf":{NOW}000']
)
def test_a_directory_gives_the_ed25519_keys_that_are_valid_now(more: str) -> None:
    rsa = '{"kty":"RSA","n":"AQAB","e":"AQAB"}'
    found = read_directory(f'{{"keys":[{rsa},{JWK}{more}}},3]}}'.encode())
    assert (found.valid_at(NOW), found.problem) == ({thumbprint(PUBLIC): PUBLIC}, None)


@pytest.mark.parametrize(
    "row",
    [
        JWK + ',"use":"enc"}',
        JWK + f',"exp":{NOW}}}',
        JWK + f',"nbf":{NOW + 1}}}',
        JWK + ',"nbf":"soon"}',
        JWK + ',"exp":true}',
        '{"kty":"OKP","crv":"Ed25519"}',
        '{"kty":"OKP","crv":"X25519","x":"' + X + '"}',
        '{"kty":"OKP","crv":"Ed25519","x":"' + "A" * 42 + '="}',
        '{"kty":"OKP","crv":"Ed25519","x":"' + "A" * 42 + 'B"}',
        '{"kty":"OKP","crv":"Ed25519","x":"' + "!" * 43 + '"}',
    ],
)
def test_a_key_that_is_not_certain_is_not_used(row: str) -> None:
    assert read_directory(f'{{"keys":[{row}]}}'.encode()).valid_at(NOW) == {}


@pytest.mark.parametrize(
    "body",
    [
        b"", b"[]", b"{", b'{"keys":1}', b"\xff", b"[" * 50_000, b'{"keys":[' + b"1," * 30_000,
        b'{"keys":[' + b",".join([b"{}"] * 21) + b"]}",
    ],
)  # fmt: skip
def test_a_directory_that_is_no_bounded_set_of_keys_has_a_problem(body: bytes) -> None:
    assert read_directory(body).problem
