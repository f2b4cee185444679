"""Signatures, tokens, boxes and hashes: what they accept, and above all what they do not."""

import asyncio
import base64
import hashlib
import json
import secrets
import string
from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from eth_account import Account
from eth_account.messages import encode_defunct
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jws, jwt
from joserfc.jwk import KeySet, OctKey, OKPKey

from assay.accounts.password_proof import AT_ONCE, WAITING_PER_CALLER, Argon2PasswordHasher
from assay.accounts.ports import HashClient
from assay.accounts.second_factor import TotpFactor
from assay.chains.evm.signing import Eip191Signatures, address_of_key, sign_message
from assay.common.errors import TooMany, Unavailable
from assay.common.ids import new_id
from assay.common.keyring import MacKeys, SecretBox
from assay.gate.decision_token import Es256DecisionSigner, ed25519_kids
from assay.identity.tokens import HmacSessionTokens, JwtLoginTokens
from tests.support.fakes.clock import FrozenClock

ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
ADDRESS = "0x" + "a" * 40
SECRET = "s" * 40


def reference(key: bytes, text: str) -> tuple[str, bytes]:
    """Address and signature by the reference implementation."""
    signed = Account.sign_message(encode_defunct(text=text), key)
    return Account.from_key(key).address.lower(), bytes(signed.signature)


def test_two_hundred_signatures_of_the_reference_signer_are_recovered() -> None:
    for number in range(200):
        key = secrets.token_bytes(32)
        text = f"challenge {number} \u00e9\u4e2d" * (number % 7)
        address, signature = reference(key, text)
        assert Eip191Signatures().recover(text, signature) == address
        zero_based = signature[:64] + bytes([signature[64] - 27])
        assert Eip191Signatures().recover(text, zero_based) == address
        assert address_of_key(key.hex()) == address
        assert bytes.fromhex(sign_message("0x" + key.hex(), text)[2:]) == signature


def test_a_mirrored_signature_is_refused() -> None:
    """The high s of EIP-2: the same proof in another spelling must not count as another."""
    address, signature = reference(b"\x07" * 32, "text")
    s = ORDER - int.from_bytes(signature[32:64])
    mirrored = signature[:32] + s.to_bytes(32) + bytes([55 - signature[64]])
    assert (
        Account.recover_message(encode_defunct(text="text"), signature=mirrored).lower() == address
    )
    assert Eip191Signatures().recover("text", mirrored) is None


@pytest.mark.parametrize("v", [2, 3, 26, 29, 31, 255])
def test_other_recovery_ids_are_refused(v: int) -> None:
    _, signature = reference(b"\x07" * 32, "text")
    assert Eip191Signatures().recover("text", signature[:64] + bytes([v])) is None


@given(st.binary(max_size=80))
def test_no_bytes_break_the_recovery(signature: bytes) -> None:
    recovered = Eip191Signatures().recover("text", signature)
    assert recovered is None or len(recovered) == 42


@given(st.binary(min_size=65, max_size=65))
def test_no_signature_of_the_right_length_breaks_it_either(signature: bytes) -> None:
    Eip191Signatures().recover("text", signature[:64] + b"\x1b")


@pytest.mark.parametrize("key", ["", "0x", "zz" * 32, "11" * 31, "00" * 32, "ff" * 32])
def test_what_is_no_private_key_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        sign_message(key, "text")


def test_a_session_token_holds_for_its_address_and_time() -> None:
    clock = FrozenClock()
    tokens, expires = HmacSessionTokens((SECRET,)), clock.now() + timedelta(hours=1)
    token = tokens.issue("id-1", ADDRESS, expires)
    session = tokens.read(token, clock.now())
    assert session is not None
    assert (session.id, session.agent_address, session.expires_at) == ("id-1", ADDRESS, expires)
    assert tokens.read(token, expires) is None
    assert HmacSessionTokens(("t" * 40,)).read(token, clock.now()) is None


def test_a_session_has_one_spelling() -> None:
    """Another one would stay known where the session was revoked."""
    clock = FrozenClock()
    tokens, expires = HmacSessionTokens((SECRET,)), clock.now() + timedelta(hours=1)
    for _ in range(50):
        token = tokens.issue(new_id(), f"0x{secrets.token_hex(20)}", expires)
        others = {token.replace("-", "+"), token.replace("_", "/"), token + "="}
        others |= {token[:-1] + last for last in string.ascii_letters + string.digits + "-_"}
        for other in others - {token}:
            assert tokens.read(other, clock.now()) is None


@given(st.data())
def test_a_changed_session_token_is_none(data: st.DataObject) -> None:
    clock = FrozenClock()
    tokens = HmacSessionTokens((SECRET,))
    raw = base64.urlsafe_b64decode(
        tokens.issue("id-1", ADDRESS, clock.now() + timedelta(hours=1)) + "=="
    )
    at = data.draw(st.integers(0, len(raw) - 1))
    bit = 1 << data.draw(st.integers(0, 7))
    changed = raw[:at] + bytes([raw[at] ^ bit]) + raw[at + 1 :]
    token = base64.urlsafe_b64encode(changed).rstrip(b"=").decode()
    assert tokens.read(token, clock.now()) is None


@given(st.text(max_size=200))
def test_any_text_is_a_session_token_or_none(text: str) -> None:
    assert HmacSessionTokens((SECRET,)).read(text, FrozenClock().now()) is None


def test_a_login_token_names_the_account_for_twelve_hours() -> None:
    clock = FrozenClock()
    tokens = JwtLoginTokens((SECRET,), "http://assay", clock)
    token = tokens.issue("operator-1", "session-1")
    assert tokens.read(token) == ("operator-1", "session-1")
    payload = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    assert payload.keys() == {"iss", "aud", "sub", "iat", "exp", "jti"}
    clock.move(12 * 3600 + 1)
    assert tokens.read(token) is None


def test_login_tokens_of_others_are_none() -> None:
    clock = FrozenClock()
    tokens = JwtLoginTokens((SECRET,), "http://assay", clock)
    for other in (
        JwtLoginTokens(("t" * 40,), "http://assay", clock),
        JwtLoginTokens((SECRET,), "http://elsewhere", clock),
    ):
        assert tokens.read(other.issue("operator-1", "session-1")) is None
    claims = {"iss": "http://assay", "aud": "assay-dashboard", "sub": "x", "exp": 2**40}
    key = OctKey.import_key(SECRET)
    stranger = jwt.encode({"alg": "HS256"}, claims, key)
    bare = base64.urlsafe_b64encode(b'{"alg":"none"}').rstrip(b"=").decode()
    unsigned = f"{bare}.{stranger.split('.')[1]}."
    for token in (stranger, unsigned, "", "a.b.c", "x" * 5000):
        assert tokens.read(token) is None


@given(st.binary(max_size=200), st.binary(max_size=20))
def test_what_was_sealed_is_opened_in_its_place_only(data: bytes, place: bytes) -> None:
    box = SecretBox.from_secrets(SECRET)
    sealed = box.seal(data, place)
    assert box.open(sealed, place) == data
    assert box.seal(data, place) != sealed
    with pytest.raises(ValueError, match=r"changed|moved"):
        box.open(sealed, place + b"x")


@given(st.integers(0, 60))
def test_a_changed_box_does_not_open(at: int) -> None:
    box = SecretBox.from_secrets(SECRET)
    sealed = bytearray(box.seal(b"x" * 40, b""))
    sealed[at] ^= 1
    with pytest.raises(ValueError, match=r"."):
        box.open(bytes(sealed), b"")


def test_a_ring_opens_what_an_older_key_sealed_and_seals_with_the_newest() -> None:
    old, ring = SecretBox.from_secrets("old" * 20), SecretBox.from_secrets("new" * 20, "old" * 20)
    assert ring.open(old.seal(b"x", b""), b"") == b"x"
    with pytest.raises(ValueError, match="ring"):
        old.open(ring.seal(b"x", b""), b"")
    for keys in ([], [b"short"]):
        with pytest.raises(ValueError, match="32-byte"):
            SecretBox(keys)


def es256(*secrets: str, ed25519_for: timedelta = timedelta(0)) -> Es256DecisionSigner:
    until = FrozenClock().now() + ed25519_for
    return Es256DecisionSigner(secrets, dict.fromkeys(ed25519_kids(secrets), until))


def keys_of(signer: Es256DecisionSigner) -> list[dict[str, str]]:
    return signer.jwks(FrozenClock().now())["keys"]  # type: ignore[return-value]


def test_a_decision_token_is_verified_by_another_library() -> None:
    signer = es256(SECRET)
    head, payload, signature = signer.sign({"allow": True}).split(".")
    (key,) = keys_of(signer)
    x, y = (int.from_bytes(base64.urlsafe_b64decode(key[name] + "=")) for name in "xy")
    public = ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
    raw = base64.urlsafe_b64decode(signature + "==")
    der = encode_dss_signature(int.from_bytes(raw[:32]), int.from_bytes(raw[32:]))
    public.verify(der, f"{head}.{payload}".encode(), ec.ECDSA(hashes.SHA256()))
    header = json.loads(base64.urlsafe_b64decode(head + "=="))
    assert (header["alg"], header["kid"]) == ("ES256", key["kid"])
    assert keys_of(es256(SECRET)) == [key]


def test_every_key_of_the_ring_is_published_and_the_first_one_signs() -> None:
    old, new = es256("o" * 40), es256("n" * 40, "o" * 40)
    assert keys_of(new) == [*keys_of(es256("n" * 40)), *keys_of(old)]
    for signer in (old, new):
        published = KeySet.import_key_set(new.jwks(FrozenClock().now()))  # type: ignore[arg-type]
        assert jws.deserialize_compact(signer.sign({}), published, ["ES256"]).payload == b"{}"


def test_tokens_of_the_version_before_verify_for_their_lifetime() -> None:
    """They were signed with Ed25519, by a key derived in another way."""
    seed = hashlib.sha256(b"assay.decision|" + SECRET.encode()).digest()
    key = OKPKey.import_key(Ed25519PrivateKey.from_private_bytes(seed))
    header = {"alg": "Ed25519", "kid": key.thumbprint(), "typ": "assay-decision+jwt"}
    token = jws.serialize_compact(header, b"{}", key, algorithms=["Ed25519"])
    signer, now = es256(SECRET, ed25519_for=timedelta(minutes=5)), FrozenClock().now()
    published = KeySet.import_key_set(signer.jwks(now))  # type: ignore[arg-type]
    assert jws.deserialize_compact(token, published, ["Ed25519"]).payload == b"{}"
    later = signer.jwks(now + timedelta(minutes=5))["keys"]
    assert [one["alg"] for one in later] == ["ES256"]  # type: ignore[union-attr,index,call-overload]


def test_tokens_of_an_earlier_secret_are_read_while_it_is_in_the_ring() -> None:
    clock = FrozenClock()
    expires = clock.now() + timedelta(hours=1)
    session = HmacSessionTokens(("o" * 40,)).issue("id-1", ADDRESS, expires)
    login = JwtLoginTokens(("o" * 40,), "http://assay", clock).issue("operator-1", "session-1")
    for ring, is_read in ((("n" * 40, "o" * 40), True), (("n" * 40,), False)):
        assert (HmacSessionTokens(ring).read(session, clock.now()) is not None) is is_read
        read = JwtLoginTokens(ring, "http://assay", clock).read(login)
        assert (read == ("operator-1", "session-1")) is is_read
    new = HmacSessionTokens(("n" * 40, "o" * 40)).issue("id-2", ADDRESS, expires)
    assert HmacSessionTokens(("n" * 40,)).read(new, clock.now()) is not None


@given(st.lists(st.text(min_size=1), min_size=1, max_size=4, unique=True), st.binary())
def test_a_mac_of_any_secret_of_a_ring_is_known_and_of_no_other(
    secrets: list[str], text: bytes
) -> None:
    ring = MacKeys(b"x|", tuple(secrets))
    for secret in secrets:
        made = MacKeys(b"x|", (secret,)).mac(text)
        assert ring.is_mac(text, made)
        assert ring.is_mac(text, made[:8])
        assert not ring.is_mac(text + b"x", made)
        assert not MacKeys(b"y|", tuple(secrets)).is_mac(text, made)
    assert not ring.is_mac(text, b"")
    assert not ring.is_mac(text, ring.mac(text) + b"x")
    with pytest.raises(ValueError, match="ring"):
        MacKeys(b"x|", ())


async def test_passwords_are_argon2id_with_a_salt_of_their_own() -> None:
    hasher = Argon2PasswordHasher()
    first, second = await hasher.hash("correct horse"), await hasher.hash("correct horse")
    assert first != second
    assert first.startswith("$argon2id$v=19$m=19456,t=2,p=1$")
    assert await hasher.verify(first, "correct horse") is True
    assert await hasher.verify(first, "wrong horse") is False
    assert await hasher.verify(None, "correct horse") is False
    with pytest.raises(Unavailable):
        await hasher.verify("no hash at all", "x")
    hasher.close()


async def test_one_callers_flood_of_logins_is_shed_and_nobody_elses() -> None:
    hasher = Argon2PasswordHasher()
    stored = await hasher.hash("x")

    async def attempt(caller: str) -> bool:
        try:
            await hasher.verify(stored, "y", HashClient(caller))
        except TooMany as shed:
            return shed.retry_after_s is None
        return True

    async with asyncio.TaskGroup() as group:
        flood = [group.create_task(attempt("198.51.100.1")) for _ in range(100)]
        others = [group.create_task(attempt(f"192.0.2.{n}")) for n in range(20)]
    assert sum(task.result() for task in flood) == AT_ONCE + WAITING_PER_CALLER
    assert all(task.result() for task in others)
    assert await attempt("198.51.100.1") is True
    hasher.close()


# The vectors of RFC 6238, appendix B, cut to six digits, and their neighbours.
RFC_6238 = [(1111111109, "081804"), (1111111111, "050471"), (1234567890, "005924"),
            (2000000000, "279037"), (20000000000, "353130")]  # fmt: skip


@pytest.mark.parametrize(("at", "code"), RFC_6238)
def test_one_time_codes_are_those_of_the_standard(at: int, code: str) -> None:
    factor, secret = TotpFactor(), b"12345678901234567890"
    for late_s in (-30, 0, 30):
        now = datetime.fromtimestamp(at + late_s, UTC)
        assert factor.step_of(secret, code, now) == at // 30
    for late_s in (-90, 90):
        assert factor.step_of(secret, code, datetime.fromtimestamp(at + late_s, UTC)) is None


@given(st.text(max_size=20))
def test_no_text_breaks_the_check_of_a_code(text: str) -> None:
    found = TotpFactor().step_of(b"1" * 20, text, FrozenClock().now())
    assert found is None or len(text) == 6
