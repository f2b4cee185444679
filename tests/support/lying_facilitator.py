"""A facilitator on loopback that can settle, and lies as it is told."""

import json
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support.quiet_server import QuietHandler, serving

Settle = Callable[[Any], str]
"""Submits a payload; the transaction's hash."""

HASH = "0x" + "77" * 32
DEEP = b'{"success":' + b"[" * 20_000 + b"]" * 20_000 + b"}"


@dataclass(frozen=True)
class Reply:
    """What goes over the wire: JSON unless it is bytes."""

    body: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass
class LyingFacilitator:
    """Honest until `lie` is set; then `LIES` answer `/settle`, or `VERIFY_LIES` `/verify`."""

    submit: Settle
    elsewhere: Mapping[str, str] = field(default_factory=dict[str, str])
    """Real transactions that pay for something else, by what they are."""
    url: str = ""
    lie: str = ""
    answers: "Answers | None" = None
    """A lie of a test's own."""
    asked: list[str] = field(default_factory=list)
    late: threading.Event = field(default_factory=threading.Event)
    """Set: whoever waits goes on."""
    _settled: dict[str, str] = field(default_factory=dict[str, str])

    def settle(self, payload: Any) -> str:
        """At most once, as a facilitator that remembers."""
        nonce = payload["authorization"]["nonce"]
        if nonce not in self._settled:
            self._settled[nonce] = self.submit(payload)
        return self._settled[nonce]

    def reply(self, path: str, body: Any) -> Reply:
        self.asked.append(path)
        payload = body["paymentPayload"]["payload"]
        payer = payload["authorization"]["from"]
        if path == "/verify":
            if self.lie in SUBMITS:
                self.settle(payload)
                return SUBMITS[self.lie](payer)
            said = VERIFY_LIES.get(self.lie)
            return said(payer) if said else Reply({"isValid": True, "payer": payer})
        told = self.answers or LIES.get(self.lie)
        return told(self, payload) if told else Reply(success(self.settle(payload), payer))


Answers = Callable[[LyingFacilitator, Any], Reply]


def success(transaction: Any, payer: str = "", **fields: Any) -> dict[str, Any]:
    said = {"success": True, "transaction": transaction, "network": "eip155:84532"}
    return {**said, "payer": payer, **fields}


def _settled_but(**fields: Any) -> Answers:
    """It settles, and says something else."""

    def told(one: LyingFacilitator, payload: Any) -> Reply:
        payer = payload["authorization"]["from"]
        return Reply(success(one.settle(payload), payer, **fields))

    return told


def _claims(transaction: Any) -> Answers:
    """It does not settle, and says so all the same."""
    return lambda _one, _payload: Reply(success(transaction))


def _names(what: str) -> Answers:
    return lambda one, _payload: Reply(success(one.elsewhere[what]))


def _plain(reply: Reply) -> Answers:
    return lambda _one, _payload: reply


def _settles_and(reply: Reply) -> Answers:
    def told(one: LyingFacilitator, payload: Any) -> Reply:
        one.settle(payload)
        return reply

    return told


def _hangs(one: LyingFacilitator, _payload: Any) -> Reply:
    one.late.wait(30)
    return Reply(success(HASH))


def _late(one: LyingFacilitator, payload: Any) -> Reply:
    """It is asked to go on only after it has answered."""

    def later() -> None:
        one.late.wait(30)
        one.settle(payload)

    threading.Thread(target=later, daemon=True).start()
    return Reply(success(HASH))


_REFUSED = {"success": False, "transaction": "", "network": "eip155:84532"}

UNPAID: Mapping[str, Answers] = {
    "success without a transaction": _claims(""),
    "success, the transaction null": _claims(None),
    "success, the transaction a list": _claims([HASH]),
    "success, the transaction junk": _claims("<b>not a hash</b>\r\nset-cookie: a=b"),
    "success, the transaction of no chain": _claims(HASH),
    "success, a transaction of another chain": lambda _one, _payload: Reply(
        success("0x" + secrets.token_hex(32))
    ),
    "success, another payment's transaction": _names("another payment"),
    "success, a reverted transaction": _names("reverted"),
    "success, a transfer to another payee": _names("another payee"),
    "success, a transfer of another amount": _names("another amount"),
    "success, a gift to the payee": _names("a gift"),
    "success as a text": _plain(Reply({"success": "true", "transaction": HASH})),
    "success as a number": _plain(Reply({"success": 1, "transaction": HASH})),
    "a redirect": _plain(Reply({"success": True}, 302, {"location": "/verify"})),
    "a page": _plain(Reply(b"<html>success</html>")),
    "a huge answer": _plain(Reply(b'{"success":true,"transaction":"' + b"a" * 200_000 + b'"}')),
    "a deep answer": _plain(Reply(DEEP)),
    "nothing but a status": _plain(Reply(b"", 204)),
    "an answer that does not come": _hangs,
    "a list of successes": _plain(Reply([success(HASH)])),
}
"""Nothing has moved, whatever they say."""

PAID: Mapping[str, Answers] = {
    "refuses after settling": _settles_and(
        Reply({**_REFUSED, "errorReason": "transaction_failed"})
    ),
    "settles, and names junk": _settled_but(transaction="<script>"),
    "settles, and names another transaction": _settled_but(transaction=HASH),
    "settles, and names another payer": _settled_but(payer="0x" + "11" * 20),
    "settles, and names another network": _settled_but(network="eip155:1"),
}
"""The money has moved, whatever they say; and is found at once."""

PAID_UNTOLD: Mapping[str, Answers] = {
    "settles, and fails": _settles_and(Reply({"error": "no"}, 500)),
    "settles, and says it as a text": _settled_but(success="true"),
    "settles, and is not sure": _settles_and(
        Reply({**_REFUSED, "errorReason": "settlement_pending"})
    ),
    "settles, and refuses with a transaction": _settles_and(
        Reply({**_REFUSED, "errorReason": "transaction_failed", "transaction": HASH})
    ),
}
"""The money has moved, and they leave that open: the caller comes again."""

LIES = {**UNPAID, **PAID, **PAID_UNTOLD, "settles late": _late}

VERIFY_LIES: Mapping[str, Callable[[str], Reply]] = {
    "valid as a text": lambda payer: Reply({"isValid": "true", "payer": payer}),
    "valid as a number": lambda payer: Reply({"isValid": 1, "payer": payer}),
    "valid for another": lambda _payer: Reply({"isValid": True, "payer": "0x" + "22" * 20}),
    "no word of it": lambda payer: Reply({"success": True, "payer": payer}),
}

SUBMITS: Mapping[str, Callable[[str], Reply]] = {
    "submits, and calls it valid": lambda payer: Reply({"isValid": True, "payer": payer}),
    "submits, and calls it invalid": lambda payer: Reply(
        {"isValid": False, "invalidReason": "invalid_transaction_state", "payer": payer}
    ),
    "submits, and breaks": lambda _payer: Reply({"error": "no"}, 500),
}
"""It takes the money when it is asked to verify."""


@contextmanager
def lying(submit: Settle, elsewhere: Mapping[str, str] | None = None) -> Iterator[LyingFacilitator]:
    state = LyingFacilitator(submit, elsewhere or {})

    class Handler(QuietHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            reply = state.reply(self.path, asked)
            given = reply.body
            body = given if isinstance(given, bytes) else json.dumps(given).encode()
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with serving(Handler) as state.url:
        try:
            yield state
        finally:
            state.late.set()
