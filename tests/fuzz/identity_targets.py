"""Whoever calls: tokens, challenges, signatures, proofs of personhood, addresses, secrets."""

import base64
from datetime import timedelta
from functools import cache
from typing import Any

from assay.accounts.auth import bearer
from assay.accounts.model import InvalidCredentials
from assay.chains.evm.signing import Eip191Signatures, address_of_key, sign_message
from assay.common.addresses import caller_of, parsed_address
from assay.common.errors import InvalidRequest
from assay.identity.challenge import Challenges, _bytes_of
from assay.identity.http_signatures import SignedRequest, read_signature
from assay.identity.model import WebBotAuthRefused, canonical_address
from assay.identity.signatures import SolanaSignatures
from assay.identity.tokens import HmacSessionTokens, JwtLoginTokens
from assay.identity.web_bot_auth import read_directory, thumbprint
from assay.personhood.schemas import ProofRequest
from assay.server.route import read
from assay.webhooks.payload import secret_bytes, signature
from tests.fuzz.target import Target, latin, pieces, text
from tests.support.fakes.clock import FrozenClock

CLOCK = FrozenClock()
SECRET = "s" * 40
KEY = "4c0883a69102937d6231471b5dbb6204fe512961708279f3e8f5cd1f6ab6a9c8"
ADDRESS = address_of_key(KEY)
SOLANA = "4vJ9JU1bJJE96FWSJKvHsmmFADCg4gpZQff4P3bkLKi"
NOTHING: Any = None
SIGNED_AT = 1_800_000_000
SESSIONS = HmacSessionTokens((SECRET,))
SESSION = SESSIONS.issue("id", ADDRESS, CLOCK.now() + timedelta(hours=1))
LOGINS = JwtLoginTokens((SECRET,), "https://assay.example", CLOCK)
CHALLENGES = Challenges(NOTHING, NOTHING, CLOCK, "https://assay.example", (SECRET,))
CHALLENGE = CHALLENGES.issue(ADDRESS).text
HEAD, _, TAIL = CHALLENGE.partition("Issued: ")
TAIL = TAIL[24:]


@cache
def login() -> str:
    return LOGINS.issue("op", "session")


def session_token(data: bytes) -> None:
    """Whatever is sent, only what was signed is a session."""
    found = SESSIONS.read(latin(data), CLOCK.now())
    assert found is None


def session_token_changed(data: bytes) -> None:
    """A genuine token with a few characters changed says the same, or nothing."""
    token = bytearray(SESSION.encode())
    for at, new in zip(data[::2], data[1::2], strict=False):
        token[at % len(token)] = new
    found = SESSIONS.read(latin(bytes(token)), CLOCK.now())
    assert found is None or (found.id, found.agent_address) == ("id", ADDRESS)


def login_token(data: bytes) -> None:
    assert LOGINS.read(latin(data)) is None


def login_token_forged(data: bytes) -> None:
    """A header and claims of the caller's own, with a genuine signature or one of its own."""
    chosen, body = pieces(data)
    head, _, claims = body.partition(b"\0")
    given = login().split(".")
    parts = [base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in (head, claims)]
    forged = [
        [parts[0], given[1], given[2]],
        [given[0], parts[0], given[2]],
        [*parts, given[2]],
        [*parts, ""],
    ][chosen % 4]
    if forged != given:
        found = LOGINS.read(".".join(forged))
        assert found is None or forged[:2] == given[:2]


def challenge(data: bytes) -> None:
    """A text, and a genuine challenge with another time in it."""
    assert CHALLENGES._recognise(ADDRESS, text(data)) is None
    changed = HEAD + "Issued: " + latin(data[:24]) + TAIL
    assert changed == CHALLENGE or CHALLENGES._recognise(ADDRESS, changed) is None


def evm_signature(data: bytes) -> None:
    _bytes_of(text(data))
    found = Eip191Signatures().recover("text", data)
    genuine = bytes.fromhex(sign_message(KEY, "text")[2:])
    # The recovery id is written as 0 and 1 or as 27 and 28.
    assert found != ADDRESS or (data[:64], data[64] % 27) == (genuine[:64], genuine[64] % 27)


def evm_signed_text(data: bytes) -> None:
    """Any text a body can hold is signed and recovered the same."""
    said = text(data).encode("utf-8", "replace").decode()
    signed = bytes.fromhex(sign_message(KEY, said)[2:])
    assert Eip191Signatures().recover(said, signed) == ADDRESS


def solana_signature(data: bytes) -> None:
    assert SolanaSignatures().verify(SOLANA, "text", text(data)) is False
    assert SolanaSignatures().verify(text(data[:44]), "text", text(data[44:])) is False


def personhood_proof(data: bytes) -> None:
    found = read(ProofRequest, data).parsed()
    assert len(found.proof) == 8
    assert all(0 <= number < 2**256 for number in found.proof)


def client_address(data: bytes) -> None:
    """An item of X-Forwarded-For; one caller stays one caller."""
    found = caller_of(latin(data))
    if parsed_address(latin(data)) is not None:
        assert caller_of(found) == found


def agent_address(data: bytes) -> None:
    found = canonical_address(latin(data))
    if found is not None:
        assert canonical_address(found) == found


def authorization(data: bytes) -> None:
    bearer({"authorization": latin(data)})


def webhook_secret(data: bytes) -> None:
    key = secret_bytes(text(data))
    assert signature(key, "id", 1, b"{}").startswith("v1,")


def request_signature(data: bytes) -> None:
    """The fields of a Web Bot Auth signature, one after the other."""
    names = (b"signature-agent", b"x-agent-id", b"signature-input", b"signature")
    headers = tuple(zip(names, data.split(b"\n"), strict=False))
    found = read_signature(SignedRequest(headers, ("api.example",), {}), SIGNED_AT)
    assert not found.is_signed_by(bytes(32))


def key_directory(data: bytes) -> None:
    """A domain's keys; each is known by its own thumbprint."""
    found = read_directory(data)
    assert found.problem is None or not found.keys
    assert all(thumbprint(one.public) == one.thumbprint for one in found.keys)


TARGETS = (
    Target("request_signature", request_signature, (WebBotAuthRefused,), 2048),
    Target("key_directory", key_directory, (), 2048),
    Target("session_token", session_token, (), 512),
    Target("session_token_changed", session_token_changed, (), 16),
    Target("login_token", login_token, (), 1024),
    Target("login_token_forged", login_token_forged, (), 1024),
    Target("challenge", challenge, (), 1200),
    Target("evm_signature", evm_signature, (), 256),
    Target("evm_signed_text", evm_signed_text, (), 256),
    Target("solana_signature", solana_signature, (), 256),
    Target("personhood_proof", personhood_proof, (InvalidRequest,)),
    Target("client_address", client_address, (), 64),
    Target("agent_address", agent_address, (), 64),
    Target("authorization", authorization, (InvalidCredentials,), 512),
    Target("webhook_secret", webhook_secret, (ValueError,), 256),
)
