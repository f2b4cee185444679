"""The requests of a connection, as our own server reads them."""

from assay.common.errors import InvalidRequest, MethodNotAllowed
from assay.http1.request_parser import RequestParser, UpgradeNotSupported
from tests.fuzz.target import Target, pieces

HEAD_BYTES_MAX = 2048
ROUNDS_MAX = 5000

Told = list[tuple[bytes, bytes, bytes]]
"""Method, target and body of each request."""


class _Reader:
    """Reads packets until they end or are refused; each request is answered at once."""

    def __init__(self) -> None:
        self.told: Told = []
        self.parser = RequestParser(self, HEAD_BYTES_MAX)

    def on_head(self) -> None:
        self.told.append((self.parser.method, self.parser.target, b""))

    def on_body(self, body: bytes) -> None:
        assert body
        method, target, before = self.told[-1]
        self.told[-1] = method, target, before + body

    def on_message_complete(self) -> None:
        assert not self.parser.is_in_body

    def feed(self, data: bytes) -> None:
        rest, rounds = self.parser.feed(data), 0
        while rest or self.parser.is_behind:
            rounds += 1
            assert rounds < ROUNDS_MAX
            rest = self.parser.feed(rest)


def _told(*packets: bytes) -> tuple[Told, Exception | None]:
    reader = _Reader()
    for packet in packets:
        try:
            reader.feed(packet)
        except (InvalidRequest, MethodNotAllowed, UpgradeNotSupported) as error:
            assert reader.parser.is_stopped
            return reader.told, error
    return reader.told, None


def _requests(data: bytes) -> None:
    """How the bytes come in packets changes neither the requests nor whether they are refused."""
    at, data = pieces(data)
    told, error = _told(data)
    cut, cut_error = _told(data[:at], data[at:])
    assert type(error) is type(cut_error)
    if error is None:
        assert told == cut
    else:
        assert [one[:2] for one in told] == [one[:2] for one in cut]
        raise error


TARGETS = (Target("request", _requests, (InvalidRequest, MethodNotAllowed, UpgradeNotSupported)),)
