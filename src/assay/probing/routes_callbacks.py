"""The handler of agents' task results (A2A push notifications). Beyond the specification."""

from assay.common.errors import NotFound
from assay.probing.result_callbacks import BODY_BYTES_MAX, PREFIX, TOKEN_HEADER, Callbacks
from assay.server.request_context import JSON, AsgiScope, Receive, Send, exchange_of, read_body

_ANSWER = b"{}"


class CallbackHandler:
    """Answers every delivery alike, so that nobody learns whether an address is or was valid.

    The rate limit is that of every caller without a key.
    """

    prefix = PREFIX + "/"
    route = PREFIX + "/{word}"

    def __init__(self, callbacks: Callbacks) -> None:
        self._callbacks = callbacks

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Handle one delivery; refusals are raised."""
        if scope["method"] != "POST":
            raise NotFound("There is nothing at this path.")
        body = await read_body(scope, receive, BODY_BYTES_MAX)
        word, token = (
            scope["path"][len(self.prefix) :],
            exchange_of(scope).headers.get(TOKEN_HEADER),
        )
        await self._callbacks.note(word, token, body)
        length = (b"content-length", b"%d" % len(_ANSWER))
        await send({"type": "http.response.start", "status": 200, "headers": [JSON, length]})
        await send({"type": "http.response.body", "body": _ANSWER})
