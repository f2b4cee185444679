"""Challenges: texts that only their address can sign, once, within five minutes.

Nothing is stored when a challenge is issued: the text carries a seal over its contents, so a flood
of requests for challenges costs only a hash each. Used challenges are stored durably, by
put-if-absent. Source: interface.md#challenge, #states, #agent-identity.
"""

import re
import secrets
from dataclasses import dataclass
from datetime import datetime

from assay.common.cache import BoundedMap
from assay.common.clock import Clock, from_iso, iso
from assay.common.keyring import MacKeys, SecretRing
from assay.common.shared_state import SharedState
from assay.identity.model import (
    CHALLENGE_TTL,
    Challenge,
    ChallengeRequired,
    ContractProof,
    SignatureInvalid,
    is_evm,
)
from assay.identity.ports import Verifiers

PURPOSE = "agent session"

CHALLENGE_CHARS_MAX = 1000
SIGNATURE_BYTES_MAX = 8192
"""Contract wallets accept signatures longer than 65 bytes; longer ones than this are refused
without a call."""

WRONG_SIGNATURES_MAX = 5
"""After this many wrong signatures a challenge counts as used: each may cost chain calls."""

_TRIED_MAX = 100_000
_NONCE_BYTES = 16
_HOW = {True: "as an EIP-191 personal message", False: "with the key of the address (Ed25519)"}
_TEXT = re.compile(
    r".{1,300} asks (?:0x[0-9a-f]{40}|[1-9A-HJ-NP-Za-km-z]{32,44}) to prove control of this"
    r" address\. Purpose: [a-z ]{1,40}\."
    r" Nonce: (?P<nonce>[0-9a-f]{32})\. Issued: (?P<issued>[0-9TZ:.\-]{24})\."
    r" Expires: [0-9TZ:.\-]{24}\. Seal: [0-9a-f]{64}"
)
"""One line of printable ASCII: it must also fit a header (`x-agent-challenge`,
interface.md#agent-identity)."""


@dataclass(frozen=True, slots=True)
class SignatureProof:
    """Proof that the address signed: by its key, or by its contract."""

    contract: ContractProof | None = None


class Challenges:
    """Issues challenges, and redeems each at most once."""

    def __init__(
        self,
        state: SharedState,
        verifiers: Verifiers,
        clock: Clock,
        origin: str,
        secrets: SecretRing,
    ) -> None:
        self._state = state
        self._verifiers = verifiers
        self._clock = clock
        self._origin = origin
        self._wrong: BoundedMap[str, int] = BoundedMap(_TRIED_MAX)
        self._keys = MacKeys(b"assay.challenge|", secrets)

    def issue(self, address: str) -> Challenge:
        """Return a new challenge for an address in canonical form (`canonical_address`)."""
        return self._challenge(address, secrets.token_hex(_NONCE_BYTES), self._clock.now())

    async def redeem(self, address: str, text: str, signature: str) -> SignatureProof:
        """Accept a signature over the challenge, once; return how the address signed.

        Raises `ChallengeRequired`, with a fresh challenge, if the text is not one of our challenges
        for this address, or is expired or used; `SignatureInvalid` if the signature is not the
        address's. The fifth wrong signature spends the challenge: only a holder of the challenge
        can send it, and each may cost calls to a chain.
        """
        nonce = self._recognise(address, text)
        if nonce is None or (self._wrong.get(nonce) or 0) >= WRONG_SIGNATURES_MAX:
            raise self.required(address)
        proof = await self._proof_of(address, text, signature, nonce)
        if proof is None:
            await self._count_wrong(nonce)
            raise SignatureInvalid("The signature is not this address's over this challenge.")
        if not await self._spend(nonce):
            raise self.required(address)
        self._wrong.pop(nonce)
        return proof

    def required(self, address: str) -> ChallengeRequired:
        """Return the refusal that carries a fresh challenge."""
        fresh = self.issue(address)
        return ChallengeRequired(
            f"Sign the challenge {_HOW[is_evm(address)]} and send it with the signature.",
            challenge=fresh.text,
            agentAddress=address,
            expiresAt=iso(fresh.expires_at),
        )

    def _challenge(self, address: str, nonce: str, issued: datetime) -> Challenge:
        said = self._said(address, nonce, issued)
        seal = self._keys.mac(said.encode()).hex()
        return Challenge(f"{said} Seal: {seal}", address, issued + CHALLENGE_TTL)

    def _said(self, address: str, nonce: str, issued: datetime) -> str:
        """Return the contents of a challenge without its seal."""
        expires = issued + CHALLENGE_TTL
        return (
            f"{self._origin} asks {address} to prove control of this address."
            f" Purpose: {PURPOSE}. Nonce: {nonce}. Issued: {iso(issued)}. Expires: {iso(expires)}."
        )

    def _recognise(self, address: str, text: str) -> str | None:
        """Return the nonce of our unexpired challenge for this address, or None."""
        found = _TEXT.fullmatch(text) if len(text) <= CHALLENGE_CHARS_MAX else None
        if found is None:
            return None
        try:
            issued = from_iso(found["issued"])
            expected = self._said(address, found["nonce"], issued)
        except (ValueError, OverflowError):  # The latter if it expires after year 9999.
            return None
        said, _, seal = text.rpartition(" Seal: ")
        is_ours = said == expected and self._keys.is_mac(said.encode(), bytes.fromhex(seal))
        return found["nonce"] if is_ours and self._clock.now() < issued + CHALLENGE_TTL else None

    async def _count_wrong(self, nonce: str) -> None:
        wrong = (self._wrong.get(nonce) or 0) + 1
        self._wrong.put(nonce, wrong)
        if wrong >= WRONG_SIGNATURES_MAX:
            await self._spend(nonce)  # For the other processes.

    async def _spend(self, nonce: str) -> bool:
        ttl = CHALLENGE_TTL.total_seconds() + 60
        return await self._state.put_if_absent(_used(nonce), "1", ttl)

    async def _proof_of(
        self, address: str, text: str, signature: str, nonce: str
    ) -> SignatureProof | None:
        messages, wallets = self._verifiers.messages, self._verifiers.wallets
        if not is_evm(address):
            signed_by_key = self._verifiers.keys.verify(address, text, signature)
            return SignatureProof() if signed_by_key else None
        signed = _bytes_of(signature)
        if not 0 < len(signed) <= SIGNATURE_BYTES_MAX:
            return None
        if messages.recover(text, signed) == address:
            return SignatureProof()
        if await self._state.get(_used(nonce)) is not None:  # No contract is called for it.
            raise self.required(address)
        contract = await wallets.accept(address, messages.digest(text), signed)
        return None if contract is None else SignatureProof(contract)


def _used(nonce: str) -> str:
    return f"challenge-used:{nonce}"


def _bytes_of(signature: str) -> bytes:
    """Return the bytes of a hex signature; empty if it is invalid."""
    digits = signature.removeprefix("0x")
    if len(digits) > 2 * SIGNATURE_BYTES_MAX:
        return b""
    try:
        return bytes.fromhex(digits)
    except ValueError:
        return b""
