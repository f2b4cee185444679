"""Encrypted snapshot data on disk, addressed by content (decisions, section 10)."""

import asyncio
import base64
import hashlib
import os
from pathlib import Path

from assay.infra.crypto.secretbox import SecretBox
from assay.kit.errors import Unavailable

_ASSOCIATED = b"assay.snapshot"


def cid_v1_raw(data: bytes) -> str:
    """CIDv1, raw codec (0x55), sha2-256 (0x12), base32 lower case. Source: multiformats CID."""
    digest = b"\x01\x55\x12\x20" + hashlib.sha256(data).digest()
    return "b" + base64.b32encode(digest).decode("ascii").lower().rstrip("=")


class LocalSnapshotBlobs:
    """A blockstore: one file per block, named by its content id."""

    def __init__(self, folder: Path, box: SecretBox) -> None:
        self._folder = folder
        self._box = box

    async def store(self, data: bytes) -> str | None:
        block = self._box.seal(data, _ASSOCIATED)
        cid = cid_v1_raw(block)
        try:
            await asyncio.to_thread(self._write, cid, block)
        except OSError as error:
            raise Unavailable(
                "Snapshots cannot be stored now.", detail=str(error), retry_after_s=30
            ) from error
        return f"ipfs://{cid}"

    def read(self, uri: str) -> bytes:
        """The data of a stored block; raises `FileNotFoundError`, or `ValueError` if tampered."""
        cid = uri.removeprefix("ipfs://")
        block = (self._folder / cid).read_bytes()
        if cid_v1_raw(block) != cid:
            raise ValueError("the block does not match its content id")
        return self._box.open(block, _ASSOCIATED)

    def _write(self, cid: str, block: bytes) -> None:
        """Whole or not at all: a crash leaves a nameless temporary file, never half a block."""
        self._folder.mkdir(parents=True, exist_ok=True)
        temporary = self._folder / f".{cid}.{os.getpid()}"
        temporary.write_bytes(block)
        temporary.replace(self._folder / cid)


class NoSnapshotBlobs:
    """Storing is switched off."""

    async def store(self, data: bytes) -> str | None:
        del data
        return None
