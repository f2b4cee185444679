"""Verifies World ID proofs: at the router on chain, or by the provider's HTTP API.

Hashes World ID proofs, version 3, and encodes the router's call. Pure.

Source: worldcoin/world-id-contracts (`WorldIDRouter`, `ByteHasher`); personhood-proofs.md#world-id.
A real proof is the vector `tests/vectors/world_id.json`.
"""

import json
import re
from collections.abc import Mapping

import httpx2

from assay.chains.evm.abi import word
from assay.chains.model import ChainUnavailable, Network
from assay.chains.rpc import ContractCall, Returned, Rpc
from assay.common.addresses import keccak256
from assay.common.json import JsonObject, is_object
from assay.net.body import post_json
from assay.personhood.model import PersonhoodProof, PersonhoodUnavailable, ProofInvalid

FIELD = 21888242871839275222246405745257275088548364400416034343698204186575808495617
"""Order of the scalar field of BN254: every public input is below it. Source: EIP-196."""

ORB_GROUP = 1
"""The only group on chain. Source: personhood-proofs.md#world-id."""

ROOT_REVERTS = frozenset({bytes.fromhex("ddae3b71"), bytes.fromhex("3ae7359e")})
"""`NonExistentRoot`, `ExpiredRoot`."""

PROOF_WORDS = 8
_HEX = re.compile(r"0x(?:[0-9a-fA-F]{2})*")


def _hash_to_field(content: bytes) -> int:
    """Return keccak-256, shifted to fit the field."""
    return int.from_bytes(keccak256(content)) >> 8


def signal_hash(signal: str) -> int:
    """Hash what the proof was made for: hex as the bytes it spells, other text as text."""
    content = bytes.fromhex(signal[2:]) if _HEX.fullmatch(signal) else signal.encode()
    return _hash_to_field(content)


def _external_nullifier(app_id: str, action: str) -> int:
    """Return the scope of nullifiers: a human has one nullifier for each."""
    return _hash_to_field(word(_hash_to_field(app_id.encode())) + action.encode())


def _verify_proof(
    router: str, root: int, signal: int, nullifier: int, external: int, proof: tuple[int, ...]
) -> ContractCall:
    """Call `verifyProof(root, groupId, signalHash, nullifierHash, externalNullifierHash, proof)`.

    It returns nothing for a valid proof, and reverts for any other.
    """
    words = (root, ORB_GROUP, signal, nullifier, external, *proof)
    return ContractCall(
        router, bytes.fromhex("3bc778e3") + b"".join(word(number) for number in words)
    )


TIMEOUT_S = 8.0
ANSWER_BYTES_MAX = 64 * 1024
_TRIED = ("orb", "device")
"""Levels tried if the caller names none. Source: personhood-proofs.md#world-id."""

_OK, _REDIRECT, _BAD_REQUEST, _SERVER_ERROR = 200, 300, 400, 500
_NOT_THE_PROOFS_FAULT = frozenset({"invalid_action", "action_inactive", "not_found"})


class RouterVerifier:
    """Verifies by `eth_call`, without transaction or key; implements `PersonhoodVerifier`."""

    def __init__(self, rpc: Rpc, network: Network, router: str, app_id: str, action: str) -> None:
        self.scope = f"{app_id}/{action}"
        self._rpc = rpc
        self._network = network
        self._router = router
        self._external = _external_nullifier(app_id, action)
        self._is_there = False

    async def verify(self, proof: PersonhoodProof) -> str:
        if proof.level not in {None, "orb"}:
            raise ProofInvalid("Only proofs of the level orb can be verified on chain.")
        call = _verify_proof(
            self._router,
            proof.merkle_root,
            signal_hash(proof.signal),
            proof.nullifier_hash,
            self._external,
            proof.proof,
        )
        try:
            await self._check_router()
            (answer,) = await self._rpc.call(self._network, [call])
        except ChainUnavailable as error:
            raise _unavailable(error.detail or error.message) from error
        if isinstance(answer, Returned):
            return "orb"
        if answer.data[:4] in ROOT_REVERTS:
            raise ProofInvalid("The proof's Merkle root is unknown or too old: make a new proof.")
        raise ProofInvalid("The proof does not hold for this agent.")

    async def _check_router(self) -> None:
        """Check that the router is a contract.

        A call to an address without code always succeeds.
        """
        if self._is_there:
            return
        code = await self._rpc.request(self._network, "eth_getCode", [self._router, "latest"])
        if not isinstance(code, str) or len(code) <= len("0x"):
            raise _unavailable("there is no router at the configured address")
        self._is_there = True


class CloudVerifier:
    """Verifies by the developer portal's API, version 2; implements `PersonhoodVerifier`."""

    def __init__(self, url: str, app_id: str, action: str) -> None:
        self.scope = f"{app_id}/{action}"
        self._url = f"{url}/api/v2/verify/{app_id}"
        self._action = action
        self._client: httpx2.AsyncClient | None = None

    async def verify(self, proof: PersonhoodProof) -> str:
        refusal = ProofInvalid("The proof does not hold for this agent.")
        for level in (proof.level,) if proof.level else _TRIED:
            answer = await self._ask(proof, level)
            if answer.get("success") is True:
                return level
            code = answer.get("code")
            if not isinstance(code, str) or code in _NOT_THE_PROOFS_FAULT:
                raise _unavailable(f"the provider says {code!r}")
            if code == "max_verifications_reached":
                return level  # It is valid and was used before: our own store knows by whom.
        raise refusal

    async def aclose(self) -> None:
        """Close every connection."""
        if self._client is not None:
            await self._client.aclose()

    async def _ask(self, proof: PersonhoodProof, level: str) -> JsonObject:
        body = {
            "action": self._action,
            "proof": "0x" + b"".join(n.to_bytes(32, "big") for n in proof.proof).hex(),
            "nullifier_hash": f"0x{proof.nullifier_hash:064x}",
            "merkle_root": f"0x{proof.merkle_root:064x}",
            "verification_level": level,
            "signal_hash": f"0x{signal_hash(proof.signal):064x}",
        }
        return await self._post(body)

    async def _post(self, body: Mapping[str, str]) -> JsonObject:
        if self._client is None:
            self._client = httpx2.AsyncClient(
                trust_env=False, follow_redirects=False, timeout=TIMEOUT_S
            )
        try:
            answer = await post_json(self._client, self._url, body, ANSWER_BYTES_MAX, TIMEOUT_S)
            value: object = json.loads(answer.body)
        except (httpx2.HTTPError, TimeoutError, ValueError, RecursionError) as error:
            raise _unavailable(repr(error)) from error
        refused = _BAD_REQUEST <= answer.status < _SERVER_ERROR
        if not is_object(value) or not (_OK <= answer.status < _REDIRECT or refused):
            raise _unavailable(f"status {answer.status}")
        return value


def _unavailable(detail: str) -> PersonhoodUnavailable:
    return PersonhoodUnavailable(
        "Proofs of personhood cannot be checked now.", detail=detail, retry_after_s=10
    )
