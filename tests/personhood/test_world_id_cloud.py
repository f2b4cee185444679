"""Proofs verified by the provider's HTTP API: a double speaks what personhood-proofs.md#world-id
documents."""

import asyncio
import json
from typing import Any

import pytest

from assay.personhood.model import PersonhoodProof, PersonhoodUnavailable, ProofInvalid
from assay.personhood.verifier import CloudVerifier
from tests.support.raw_server import RawServer, Request, plain, serving

PROOF = PersonhoodProof(1, 2, (3,) * 8, "8453:22", None)
SUCCESS = {"success": True, "uses": 1, "action": "a", "nullifier_hash": "0x2"}


async def verified(
    proof: PersonhoodProof, *answers: tuple[str, object]
) -> tuple[str, list[dict[str, Any]]]:
    """The level found, and what the provider was asked; it gives the answers in turn."""
    left = list(answers)

    async def respond(_: Request, writer: asyncio.StreamWriter) -> None:
        status, told = left.pop(0)
        body = told if isinstance(told, bytes) else json.dumps(told).encode()
        writer.write(plain(body, status, "Connection: close"))
        await writer.drain()
        writer.close()

    async with serving(respond) as server:
        verifier = CloudVerifier(server.url("").rstrip("/"), "app_1", "verify-agent")
        try:
            level = await verifier.verify(proof)
        finally:
            await verifier.aclose()
        return level, _asked(server)


def _asked(server: RawServer) -> list[dict[str, Any]]:
    assert {r.target for r in server.requests} == {"/api/v2/verify/app_1"}
    return [json.loads(r.body) for r in server.requests]


def refusal(code: str) -> tuple[str, object]:
    return "400 Bad Request", {"code": code, "detail": "no", "attribute": None}


async def test_a_proof_that_holds_is_of_the_level_it_says() -> None:
    level, (asked,) = await verified(
        PersonhoodProof(1, 2, (3,) * 8, "8453:22", "device"), ("200 OK", SUCCESS)
    )
    assert level == "device"
    assert asked["verification_level"] == "device"
    assert asked["merkle_root"] == "0x" + "0" * 63 + "1"
    assert len(asked["proof"]) == 2 + 512
    assert asked["action"] == "verify-agent"


async def test_without_a_level_orb_is_tried_and_then_device() -> None:
    level, asked = await verified(PROOF, refusal("invalid_merkle_root"), ("200 OK", SUCCESS))
    assert level == "device"
    assert [one["verification_level"] for one in asked] == ["orb", "device"]


async def test_a_proof_used_before_holds_and_its_owner_is_ours_to_know() -> None:
    assert (await verified(PROOF, refusal("max_verifications_reached")))[0] == "orb"


@pytest.mark.parametrize("code", ["invalid_proof", "invalid_merkle_root", "root_too_old"])
async def test_a_proof_that_does_not_hold_is_refused(code: str) -> None:
    with pytest.raises(ProofInvalid):
        await verified(PROOF, refusal(code), refusal(code))


@pytest.mark.parametrize(
    "answer",
    [
        ("500 Internal Server Error", {"success": True}),
        ("302 Found", {"success": True}),
        ("200 OK", b"not json"),
        ("200 OK", ["success"]),
        ("200 OK", {"success": "yes"}),
        ("400 Bad Request", {"code": 5}),
        ("400 Bad Request", {"code": "invalid_action"}),
        ("404 Not Found", {"code": "not_found"}),
    ],
)
async def test_an_answer_that_says_nothing_of_the_proof_proves_nothing(
    answer: tuple[str, object],
) -> None:
    with pytest.raises(PersonhoodUnavailable):
        await verified(PROOF, answer)


async def test_a_provider_that_is_not_there_proves_nothing() -> None:
    verifier = CloudVerifier("http://127.0.0.1:9", "app_1", "verify-agent")
    with pytest.raises(PersonhoodUnavailable):
        await verifier.verify(PROOF)
    await verifier.aclose()


@pytest.mark.parametrize("head", ["200 OK", "400 Bad Request"])
async def test_an_answer_without_end_is_not_read(head: str) -> None:
    """It was read whole before it was cut: whatever the provider sends was held in memory."""
    sent = 0

    async def respond(_: Request, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(f"HTTP/1.1 {head}\r\nConnection: close\r\n\r\n".encode())
        try:
            while sent < 64 * 1024 * 1024:
                writer.write(b" " * 65_536)
                await writer.drain()
                sent += 65_536
        except ConnectionError:
            return

    async with serving(respond) as server:
        verifier = CloudVerifier(server.url("").rstrip("/"), "app_1", "verify-agent")
        with pytest.raises(PersonhoodUnavailable):
            await verifier.verify(PROOF)
        await verifier.aclose()
    assert sent < 32 * 1024 * 1024
