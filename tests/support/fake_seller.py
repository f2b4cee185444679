"""A stranger's server that sells over x402 or MPP, and answers paid calls as a test wants."""

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from assay_demo.chain import dollars
from tests.support.quiet_server import QuietHandler, serving
from tests.support.shop import SELLER

OFFER = {
    "scheme": "exact",
    "network": "eip155:84532",
    "asset": dollars.BASE_SEPOLIA_USDC,
    "amount": "10000",
    "payTo": SELLER.address,
    "maxTimeoutSeconds": 60,
    "extra": {"name": "USDC", "version": "2"},
}


class FakeSeller:
    """A stranger's server: it asks for `offers`, and answers paid calls with `answers` in turn."""

    def __init__(self, *offers: Any, answers: tuple[int, ...] = (200,)) -> None:
        self.offers, self.answers = offers, list(answers)
        self.payments: list[str] = []
        self.calls = 0
        self.url = ""
        self.unpaid_body = b"{}"
        self.challenge = ""
        """The value of `WWW-Authenticate`, to sell over MPP instead."""


@contextmanager
def selling(seller: FakeSeller) -> Iterator[FakeSeller]:
    required = {"x402Version": 2, "resource": {"url": "https://x"}, "accepts": seller.offers}
    header = base64.b64encode(json.dumps(required).encode()).decode()

    class Handler(QuietHandler):
        def do_GET(self) -> None:
            seller.calls += 1
            self.rfile.read(int(self.headers.get("content-length", 0)))
            paid_in = "authorization" if seller.challenge else "payment-signature"
            payment = self.headers.get(paid_in)
            if seller.challenge and not (payment or "").startswith("Payment "):
                payment = None
            status = 402
            if payment is not None:
                seller.payments.append(payment)
                status = seller.answers.pop(0)
            if status == 0:  # the response is lost
                self.close_connection = True
                return
            self.send_response(status)
            if status == 402:
                name = "www-authenticate" if seller.challenge else "payment-required"
                self.send_header(name, seller.challenge or header)
            if status == 503:
                self.send_header("retry-after", "0")
            body = b"{}" if payment is not None else seller.unpaid_body
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815 - the base class's names

    with serving(Handler) as url:
        seller.url = f"{url}/paid"
        yield seller
