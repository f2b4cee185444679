"""The demo's API to be sold: quotes of an invented exchange. It knows nothing of payments."""

import json
from collections.abc import Mapping
from types import MappingProxyType

from assay_demo.agents.service import App, Receive, Scope, Self, Send, run

QUOTES: Mapping[str, float] = MappingProxyType({"GOLD": 2650.4, "SILVER": 31.25, "TIN": 14.8})
SECRET = "the upstream's own key"


def build(_me: Self) -> App:
    """`/quote` for callers that know the key, `/status` for everybody."""

    async def app(scope: Scope, _receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = dict(scope["headers"])
        status, said = 404, {"error": "nothing here"}
        if scope["path"] == "/status":
            status, said = 200, {"open": True}
        elif scope["path"] == "/quote" and headers.get(b"x-key") != SECRET.encode():
            status, said = 401, {"error": "who are you?"}
        elif scope["path"] == "/quote":
            grade = headers.get(b"x-assay-tier", b"").decode()
            status, said = 200, {"quotes": dict(QUOTES), "servedToTier": grade}
        body = json.dumps(said).encode()
        kind = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": status, "headers": kind})
        await send({"type": "http.response.body", "body": body})

    return app


if __name__ == "__main__":
    run(build)
