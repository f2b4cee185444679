"""Stores encrypted snapshot data on disk, addressed by content (conventions.md#snapshots)."""

import asyncio
import base64
import hashlib
import heapq
import os
import re
from contextlib import suppress
from pathlib import Path

import httpx2

from assay.common.errors import Unavailable
from assay.common.keyring import SecretBox

IPFS_S = 10.0
"""Time limit of a node for one block."""

CID = re.compile(r"[a-z2-7]{50,70}")
_ASSOCIATED = b"assay.snapshot"
_PUT = {"cid-codec": "raw", "mhtype": "sha2-256", "pin": "true"}


def cid_v1_raw(data: bytes) -> str:
    """Return the CIDv1: raw codec (0x55), sha2-256 (0x12), base32 lower case.

    Source: multiformats CID.
    """
    digest = b"\x01\x55\x12\x20" + hashlib.sha256(data).digest()
    return "b" + base64.b32encode(digest).decode("ascii").lower().rstrip("=")


class LocalSnapshotBlobs:
    """A blockstore on disk: one file per block, named by its content id."""

    def __init__(self, folder: Path, box: SecretBox) -> None:
        self._folder = folder
        self._box = box

    async def store(self, data: bytes) -> str | None:
        block = self._box.seal(data, _ASSOCIATED)
        cid = cid_v1_raw(block)
        try:
            await asyncio.to_thread(self._write, cid, block)
        except OSError as error:
            raise _unavailable(str(error)) from error
        return f"ipfs://{cid}"

    async def load(self, uri: str) -> bytes | None:
        cid = uri.removeprefix("ipfs://")
        try:
            block = await asyncio.to_thread((self._folder / cid).read_bytes)
        except OSError:
            return None
        return _opened(self._box, cid, block)

    async def remove(self, uri: str) -> None:
        cid = uri.removeprefix("ipfs://")
        if CID.fullmatch(cid):
            await asyncio.to_thread(self._remove, self._folder / cid)

    async def trim(self, bytes_max: int, limit: int) -> int:
        return await asyncio.to_thread(self._trim, bytes_max, limit)

    def _trim(self, bytes_max: int, limit: int) -> int:
        """Remove the oldest blocks.

        Several processes may trim at once, and missing files are skipped.
        """
        rows: list[tuple[float, int, str]] = []
        with suppress(FileNotFoundError), os.scandir(self._folder) as found:
            for entry in found:
                with suppress(FileNotFoundError):
                    state = entry.stat(follow_symlinks=False)
                    rows.append((state.st_mtime, state.st_size, entry.name))
        left = sum(size for _, size, _ in rows)
        if left <= bytes_max:
            return 0
        removed = 0
        for _, size, name in heapq.nsmallest(limit, rows):
            if left <= bytes_max:
                break
            self._remove(self._folder / name)
            left -= size
            removed += 1
        return removed

    @staticmethod
    def _remove(block: Path) -> None:
        with suppress(OSError):  # The next round tries again.
            block.unlink(missing_ok=True)

    def _write(self, cid: str, block: bytes) -> None:
        """Write a block atomically: a crash leaves a temporary file, never a partial block."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self._folder.stat().st_mode & 0o077:  # Made by an earlier version.
            self._folder.chmod(0o700)
        temporary = self._folder / f".{cid}.{os.getpid()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        with os.fdopen(os.open(temporary, flags, 0o600), "wb") as out:
            out.write(block)
        temporary.replace(self._folder / cid)


class IpfsSnapshotBlobs:
    """Puts blocks on the operator's IPFS node through its HTTP API.

    Source: Kubo RPC API, `/api/v0/block/put`. The content id is computed here, not taken from the
    node.
    """

    def __init__(self, api: str, box: SecretBox) -> None:
        self._url = f"{api}/api/v0/block/put"
        self._box = box
        self._http: httpx2.AsyncClient | None = None

    async def store(self, data: bytes) -> str | None:
        block = self._box.seal(data, _ASSOCIATED)
        cid = cid_v1_raw(block)
        try:
            answer = await self._opened().post(
                self._url, params=_PUT, files={"data": ("block", block)}
            )
            named = answer.raise_for_status().json()["Key"]
        except (httpx2.HTTPError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise _unavailable(repr(error)) from error
        if named != cid:
            raise _unavailable("the node names the block otherwise")
        return f"ipfs://{cid}"

    async def load(self, uri: str) -> bytes | None:
        cid = uri.removeprefix("ipfs://")
        get = self._url.replace("/block/put", "/block/get")
        try:
            answer = await self._opened().post(get, params={"arg": cid})
        except httpx2.HTTPError:
            return None
        return _opened(self._box, cid, answer.content) if answer.is_success else None

    async def remove(self, uri: str) -> None:
        """Unpin the block; the node's own garbage collection removes it."""
        unpin = self._url.replace("/block/put", "/pin/rm")
        with suppress(httpx2.HTTPError):
            await self._opened().post(unpin, params={"arg": uri.removeprefix("ipfs://")})

    async def trim(self, bytes_max: int, limit: int) -> int:
        """Remove nothing: the node bounds its own store."""
        del bytes_max, limit
        return 0

    async def aclose(self) -> None:
        """Close the connections."""
        if self._http is not None:
            await self._http.aclose()

    def _opened(self) -> httpx2.AsyncClient:
        if self._http is None:
            self._http = httpx2.AsyncClient(timeout=IPFS_S, trust_env=False)
        return self._http


class NoSnapshotBlobs:
    """Stores nothing: storing is switched off."""

    async def store(self, data: bytes) -> str | None:
        del data
        return None

    async def load(self, uri: str) -> bytes | None:
        del uri
        return None

    async def remove(self, uri: str) -> None:
        del uri

    async def trim(self, bytes_max: int, limit: int) -> int:
        del bytes_max, limit
        return 0


def _opened(box: SecretBox, cid: str, block: bytes) -> bytes:
    """Return the data of a block; raises `ValueError` if it was tampered with."""
    if cid_v1_raw(block) != cid:
        raise ValueError("the block does not match its content id")
    return box.open(block, _ASSOCIATED)


def _unavailable(detail: str) -> Unavailable:
    return Unavailable("Snapshots cannot be stored now.", detail=detail, retry_after_s=30)
