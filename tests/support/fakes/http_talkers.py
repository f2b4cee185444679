"""Services that are spoken to in words over plain HTTP, as OpenAI's API is or in their own way."""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from assay.common.json import JsonObject, is_array, is_object

Says = Callable[[str], str]
_random = random.Random(5)
QUESTION = "How many eggs are in 14 boxes?"


def eggs(text: str) -> str:
    """How many eggs are in boxes of twelve."""
    boxes = re.search(r"\d+", text)
    return f"That makes {int(boxes[0]) * 12}." if boxes else "How many boxes?"


HOLLOW: dict[str, Says] = {
    "echo": lambda text: text,
    "template": lambda text: f"Thank you for asking '{text}', our team looks into eggs.",
    "makes up": lambda _: f"That makes {_random.randint(1, 10**6)}.",
    "always": lambda _: "That makes 168 eggs in total.",
}


@dataclass(frozen=True)
class Talker:
    """A service: where it is declared and spoken to, and what it says of itself."""

    declared: str
    path: str
    says: str | JsonObject
    form: str
    """Of what it takes: `chat`, `parts`, `prompt`, or the name of its own member."""
    lists_models: bool = False

    def app(self, reply: Says = eggs) -> Starlette:
        """The service, with an answer of its own or of a twin."""

        async def index(_request: Request) -> Response:
            is_page = isinstance(self.says, str)
            return HTMLResponse(str(self.says)) if is_page else JSONResponse(self.says)

        async def models(_request: Request) -> Response:
            return JSONResponse({"object": "list", "data": [{"id": "eggs-1", "object": "model"}]})

        async def answer(request: Request) -> Response:
            return self._answer(await request.json(), reply)

        routes = [Route("/", index), Route(self.path, answer, methods=["POST"])]
        return Starlette(routes=routes + ([Route("/v1/models", models)] * self.lists_models))

    def _answer(self, given: JsonObject, reply: Says) -> Response:
        if self.form in {"chat", "parts", "prompt"} and given.get("model") != "eggs-1":
            return JSONResponse({"error": {"message": "no such model"}}, 404)
        if self.form == "prompt":
            text = given.get("prompt")
        elif self.form in {"chat", "parts"}:
            said = given.get("messages")
            last = said[-1] if is_array(said) and said else None
            text = last.get("content") if is_object(last) else None
        else:
            text = given.get(self.form)
        if not isinstance(text, str):
            return JSONResponse({"error": "malformed"}, 400)
        return JSONResponse(self._spoken(reply(text)))

    def _spoken(self, said: str) -> JsonObject:
        marks: JsonObject = {"id": f"c-{_random.random()}", "created": _random.randint(1, 10**9)}
        if self.form == "prompt":
            return {**marks, "choices": [{"index": 0, "text": said}]}
        if self.form in {"chat", "parts"}:
            content = said if self.form == "chat" else [{"type": "text", "text": said}]
            message = {"role": "assistant", "content": content}
            return {**marks, "choices": [{"index": 0, "message": message}]}
        return {"said": said}


TALKERS = {
    "a page that names endpoint and model": Talker(
        "/",
        "/v1/chat/completions",
        "<h1>Eggs</h1><p>We speak <code>POST /v1/chat/completions</code>.</p>"
        f"<p>Model: <code>eggs-1</code></p><ul><li>{QUESTION}</li><li>No other</li></ul>",
        "parts",
    ),
    "a base that lists models": Talker(
        "/v1",
        "/v1/chat/completions",
        f"<p>Ask me for eggs, &ldquo;{QUESTION}&rdquo;</p>",
        "chat",
        lists_models=True,
    ),
    "completions of an index": Talker(
        "/v1/completions",
        "/v1/completions",
        {"name": "Eggs", "model": "eggs-1", "ask": [QUESTION]},
        "prompt",
    ),
    "a curl line with messages": Talker(
        "/",
        "/v1/chat/completions",
        "<pre>curl $BASE/v1/chat/completions -H 'Content-Type: application/json' -d '{\n"
        f'"model": "eggs-1", "messages": [{{"role": "user", "content": "{QUESTION}"}}]}}\'</pre>',
        "chat",
    ),
    "a curl line with a question": Talker(
        "/",
        "/v2/ask",
        f'<pre>curl $BASE/v2/ask --json \'{{"wish": "{QUESTION}", "style": "brief"}}\'</pre>',
        "wish",
    ),
}
"""By how each shows where it is spoken to."""
