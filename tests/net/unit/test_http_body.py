import gzip
import zlib
from collections.abc import AsyncIterator, Callable

import pytest

from assay.net.body import BodyBroken, DecodedBody, read_body

MIB = 1024 * 1024


async def pieces(data: bytes, size: int = 1000) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


def raw_deflate(data: bytes) -> bytes:
    deflate = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return deflate.compress(data) + deflate.flush()


TEXT = b"".join(f"{n} bottles; ".encode() for n in range(2000))


@pytest.mark.parametrize(
    ("encoding", "encode"),
    [
        ("", bytes),
        ("identity", bytes),
        ("gzip", gzip.compress),
        ("GZIP", gzip.compress),
        ("x-gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("deflate", raw_deflate),
        ("identity, gzip", gzip.compress),
    ],
)
@pytest.mark.parametrize("size", [1, 7, 4096, MIB])
async def test_a_body_is_decoded_whole(
    encoding: str, encode: Callable[[bytes], bytes], size: int
) -> None:
    body = await read_body(pieces(encode(TEXT), size), encoding, MIB, 100)
    assert body == DecodedBody(TEXT, truncated=False)


@pytest.mark.parametrize("encoding", ["", "gzip", "deflate", "br"])
async def test_an_empty_body_is_empty_in_any_encoding(encoding: str) -> None:
    assert await read_body(pieces(b""), encoding, 10, 100) == DecodedBody(b"", truncated=False)


async def test_an_encoding_nobody_asked_for_is_left_as_it_came() -> None:
    assert await read_body(pieces(b"\x8b\x00"), "br", 10, 100) == DecodedBody(
        b"\x8b\x00", truncated=False
    )


@pytest.mark.parametrize(("length", "truncated"), [(99, False), (100, False), (101, True)])
@pytest.mark.parametrize("encoding", ["", "gzip"])
async def test_a_body_is_cut_exactly_at_its_bound(
    length: int,
    truncated: bool,  # noqa: FBT001 - a column of the table
    encoding: str,
) -> None:
    data = TEXT[:length]
    sent = gzip.compress(data) if encoding else data
    body = await read_body(pieces(sent), encoding, 100, 100)
    assert body == DecodedBody(data[:100], truncated=truncated)


async def test_an_endless_body_is_left_after_its_bound() -> None:
    given = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal given
        while True:
            given += 1
            yield b"x" * 1000

    body = await read_body(endless(), "", 5000, 100)
    assert (len(body.data), body.truncated) == (5000, True)
    assert given <= 6


async def test_a_bomb_is_cut_at_the_ratio() -> None:
    bomb = gzip.compress(b"\0" * (50 * MIB))
    body = await read_body(pieces(bomb), "gzip", 100 * MIB, 100)
    assert body.truncated
    assert len(body.data) <= 100 * len(bomb)


async def test_a_bomb_is_cut_at_the_size_before_it_is_inflated() -> None:
    bomb = gzip.compress(b"\0" * (50 * MIB))
    body = await read_body(pieces(bomb, len(bomb)), "gzip", MIB, 10_000)
    assert (len(body.data), body.truncated) == (MIB, True)


async def test_a_compressed_body_that_ends_in_the_middle_is_broken() -> None:
    with pytest.raises(BodyBroken, match="middle"):
        await read_body(pieces(gzip.compress(TEXT)[:-20]), "gzip", MIB, 100)


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
async def test_a_corrupt_body_is_broken(encoding: str) -> None:
    with pytest.raises(BodyBroken, match="corrupt"):
        await read_body(pieces(b"\xff\xff this was never compressed"), encoding, MIB, 100)


async def test_a_body_that_turns_corrupt_later_is_broken() -> None:
    sent = bytearray(zlib.compress(TEXT))
    sent[-3] ^= 0xFF
    with pytest.raises(BodyBroken, match="corrupt"):
        await read_body(pieces(bytes(sent), 100), "deflate", MIB, 100)


async def test_a_body_encoded_twice_is_broken() -> None:
    twice = gzip.compress(gzip.compress(TEXT))
    with pytest.raises(BodyBroken, match="more than once"):
        await read_body(pieces(twice), "gzip, gzip", MIB, 100)
