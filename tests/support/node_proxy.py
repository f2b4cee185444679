"""A JSON-RPC proxy that can lose a chain, method by method."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2

from tests.support.quiet_server import QuietHandler, serving


@dataclass
class NodeProxy:
    """`lost` are methods that are answered with 500; `hooks` are called around a method."""

    url: str = ""
    lost: set[str] = field(default_factory=set)
    before: Callable[[str], None] = lambda _method: None
    after: Callable[[str], None] = lambda _method: None
    instead: Callable[[Any], Any] = lambda _asked: None
    """Answers a request or a batch itself; it may also change what it is given."""

    @contextmanager
    def failing(self, *methods: str) -> Iterator[None]:
        self.lost = set(methods)
        try:
            yield
        finally:
            self.lost = set()


@contextmanager
def node_proxy(inner: str) -> Iterator[NodeProxy]:
    proxy = NodeProxy()
    with httpx2.Client(timeout=30, trust_env=False) as forward:

        class Handler(QuietHandler):
            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
                methods = [one["method"] for one in (asked if isinstance(asked, list) else [asked])]
                status, body = 500, b"{}"
                if not proxy.lost.intersection(methods):
                    for method in methods:
                        proxy.before(method)
                    own = proxy.instead(asked)
                    status = 200
                    body = (
                        forward.post(inner, json=asked).content
                        if own is None
                        else json.dumps(own).encode()
                    )
                    for method in methods:
                        proxy.after(method)
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        with serving(Handler) as proxy.url:
            yield proxy
