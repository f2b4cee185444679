"""Challenges: a text only its address can answer, once, for five minutes (spec 2.4, 3, 5.3).

Nothing is stored when a challenge is issued: the text carries a seal over everything it says, so
asking for challenges costs a stranger's flood nothing but a hash here. What is stored, durably and
by put-if-absent, is that a challenge was used.
"""

import hashlib
import hmac
import re
import secrets
from datetime import datetime

from assay.identity.model import (
    CHALLENGE_TTL,
    Challenge,
    ChallengeRequired,
    SignatureInvalid,
    is_evm,
)
from assay.identity.ports import Verifiers
from assay.kit.clock import Clock, from_iso, iso
from assay.kit.state import SharedState

PURPOSE = "agent session"

CHALLENGE_CHARS_MAX = 1000
SIGNATURE_BYTES_MAX = 8192
"""Contract wallets take longer signatures than 65 bytes; beyond this nobody is asked."""

_NONCE_BYTES = 16
_HOW = {True: "as an EIP-191 personal message", False: "with the key of the address (Ed25519)"}
_TEXT = re.compile(
    r".{1,300} asks (?:0x[0-9a-f]{40}|[1-9A-HJ-NP-Za-km-z]{32,44}) to prove control of this"
    r" address\. Purpose: [a-z ]{1,40}\."
    r" Nonce: (?P<nonce>[0-9a-f]{32})\. Issued: (?P<issued>[0-9TZ:.\-]{24})\."
    r" Expires: [0-9TZ:.\-]{24}\. Seal: [0-9a-f]{64}"
)
"""One line of printable ASCII: it must also fit a header (`x-agent-challenge`, spec 5.3)."""


class Challenges:
    """Issues challenges, and redeems each at most once."""

    def __init__(
        self,
        state: SharedState,
        verifiers: Verifiers,
        clock: Clock,
        origin: str,
        secret: str,
    ) -> None:
        self._state = state
        self._verifiers = verifiers
        self._clock = clock
        self._origin = origin
        self._secret = hashlib.sha256(b"assay.challenge|" + secret.encode()).digest()

    def issue(self, address: str) -> Challenge:
        """A fresh challenge for an address in canonical form (`canonical_address`)."""
        return self._challenge(address, secrets.token_hex(_NONCE_BYTES), self._clock.now())

    async def redeem(self, address: str, text: str, signature: str) -> None:
        """Accept the signature over the challenge, once.

        Raises `ChallengeRequired`, carrying a fresh challenge, for a text that is not one of
        ours for this address, or one that is expired or used; `SignatureInvalid` when the
        signature is not the address's. A wrong signature uses nothing up: only who can sign can
        spend a challenge.
        """
        nonce = self._recognise(address, text)
        if nonce is None:
            raise self.required(address)
        if not await self._signed_by(address, text, signature):
            raise SignatureInvalid("The signature is not this address's over this challenge.")
        ttl = CHALLENGE_TTL.total_seconds() + 60
        if not await self._state.put_if_absent(f"challenge-used:{nonce}", "1", ttl):
            raise self.required(address)

    def required(self, address: str) -> ChallengeRequired:
        """The refusal that hands out a fresh challenge."""
        fresh = self.issue(address)
        return ChallengeRequired(
            f"Sign the challenge {_HOW[is_evm(address)]} and send it with the signature.",
            challenge=fresh.text,
            agentAddress=address,
            expiresAt=iso(fresh.expires_at),
        )

    def _challenge(self, address: str, nonce: str, issued: datetime) -> Challenge:
        expires = issued + CHALLENGE_TTL
        said = (
            f"{self._origin} asks {address} to prove control of this address."
            f" Purpose: {PURPOSE}. Nonce: {nonce}. Issued: {iso(issued)}. Expires: {iso(expires)}."
        )
        seal = hmac.new(self._secret, said.encode(), hashlib.sha256).hexdigest()
        return Challenge(f"{said} Seal: {seal}", address, expires)

    def _recognise(self, address: str, text: str) -> str | None:
        """The nonce of an unexpired challenge of ours for this address, or None."""
        found = _TEXT.fullmatch(text) if len(text) <= CHALLENGE_CHARS_MAX else None
        if found is None:
            return None
        try:
            ours = self._challenge(address, found["nonce"], from_iso(found["issued"]))
        except (ValueError, OverflowError):  # the second where its expiry is after the year 9999
            return None
        same = hmac.compare_digest(ours.text.encode(), text.encode("utf-8", "replace"))
        return found["nonce"] if same and self._clock.now() < ours.expires_at else None

    async def _signed_by(self, address: str, text: str, signature: str) -> bool:
        messages, wallets = self._verifiers.messages, self._verifiers.wallets
        if not is_evm(address):
            return self._verifiers.keys.verify(address, text, signature)
        signed = _bytes_of(signature)
        if not 0 < len(signed) <= SIGNATURE_BYTES_MAX:
            return False
        if messages.recover(text, signed) == address:
            return True
        return await wallets.accept(address, messages.digest(text), signed)


def _bytes_of(signature: str) -> bytes:
    """The bytes of a hex signature; empty for what is none."""
    digits = signature.removeprefix("0x")
    if len(digits) > 2 * SIGNATURE_BYTES_MAX:
        return b""
    try:
        return bytes.fromhex(digits)
    except ValueError:
        return b""
