"""The operator's model behind an OpenAI-compatible endpoint; implements `ChatModel`.

The address is the operator's, so it is dialled without egress checks. Its answers are not trusted:
bounded in time and bytes, without redirects, and parsed strictly. At most `AT_ONCE` questions of
all visits run at once; a visit that gets no slot continues without a verdict.
Source: OpenAI API reference, "Create chat completion".
"""

import asyncio
import json
from typing import cast

import httpx2

from assay.common.json import JsonObject, is_array, is_object
from assay.net.body import post_json
from assay.probing.judge import JudgeUnavailable

ANSWER_BYTES_MAX = 65_536
TOKENS_MAX = 200
AT_ONCE = 4
_OK = 200


class OpenAiModel:
    """A model at an endpoint, whose address ends before `/chat/completions`."""

    def __init__(self, url: str, name: str, key: str | None, timeout_s: float) -> None:
        self.name = name
        self._url = url.removesuffix("/chat/completions").rstrip("/") + "/chat/completions"
        self._headers = {} if key is None else {"authorization": f"Bearer {key}"}
        self._timeout_s = timeout_s
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def complete(self, system: str, user: str) -> str:
        if self._turns.locked():
            raise JudgeUnavailable("every turn is taken")
        body: JsonObject = {
            "model": self.name,
            "temperature": 0,
            "max_tokens": TOKENS_MAX,
            "messages": [
                {"role": "system", "content": system},
                {"role": "user", "content": user},
            ],
        }
        async with self._turns:
            return _content(await self._post(body))

    async def _post(self, body: JsonObject) -> bytes:
        try:
            async with httpx2.AsyncClient(headers=self._headers, trust_env=False) as client:
                answer = await post_json(client, self._url, body, ANSWER_BYTES_MAX, self._timeout_s)
        except (httpx2.HTTPError, TimeoutError, ValueError) as error:
            raise JudgeUnavailable(type(error).__name__) from error
        if answer.status != _OK:
            raise JudgeUnavailable(f"status {answer.status}")
        return answer.body


def _content(body: bytes) -> str:
    """Return the text of the first choice."""
    try:
        value = cast("object", json.loads(body))
    except (ValueError, RecursionError) as error:
        raise JudgeUnavailable("no JSON") from error
    choices = value.get("choices") if is_object(value) else None
    first = choices[0] if is_array(choices) and choices else None
    message = first.get("message") if is_object(first) else None
    content = message.get("content") if is_object(message) else None
    if not isinstance(content, str):
        raise JudgeUnavailable("no message")
    return content
