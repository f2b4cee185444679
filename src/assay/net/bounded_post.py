"""A request to a configured provider, with a bounded answer."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

import httpx2

from assay.common.json import JsonValue
from assay.net.body import BodyBroken, read_body

_RATIO_MAX = 100
_PLAIN = {"accept-encoding": "identity"}


class AnswerTooLarge(ValueError):
    """The answer exceeds the size limit; the bytes beyond it were not read."""


@dataclass(frozen=True, slots=True)
class PostAnswer:
    """A status and a complete body."""

    status: int
    body: bytes


async def post_json(
    client: httpx2.AsyncClient,
    url: str,
    body: Mapping[str, JsonValue],
    bytes_max: int,
    timeout_s: float,
) -> PostAnswer:
    """Post `body` as JSON and return the answer, within `timeout_s` seconds in all.

    Raises `httpx2.HTTPError`, `TimeoutError`, and `ValueError` for an answer that is larger than
    `bytes_max`, compressed beyond the allowed ratio, or corrupt.
    """
    async with (
        asyncio.timeout(timeout_s),
        client.stream("POST", url, json=body, headers=_PLAIN) as answer,
    ):
        return await _whole(answer, bytes_max)


async def get(client: httpx2.AsyncClient, url: str, bytes_max: int, timeout_s: float) -> PostAnswer:
    """Send a GET and return the answer; bounds and exceptions are those of `post_json`."""
    async with (
        asyncio.timeout(timeout_s),
        client.stream("GET", url, headers=_PLAIN) as answer,
    ):
        return await _whole(answer, bytes_max)


async def _whole(answer: httpx2.Response, bytes_max: int) -> PostAnswer:
    encoding = answer.headers.get("content-encoding", "")
    try:
        read = await read_body(answer.aiter_raw(), encoding, bytes_max, _RATIO_MAX)
    except BodyBroken as error:
        raise ValueError(str(error)) from error
    if read.truncated:
        raise AnswerTooLarge(f"an answer of more than {bytes_max} bytes")
    return PostAnswer(answer.status_code, read.data)
