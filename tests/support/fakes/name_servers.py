"""What the system asks for addresses: some names answer at once, others when a test says so."""

import socket
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

ANSWER = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.7", 80))]


class NameServers:
    """Names that begin with `slow` wait for `answer`; `localhost` is the system's own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: Counter[str] = Counter()
        self.answer = threading.Event()
        self._lock = threading.Lock()
        self._system: Callable[..., Any] = socket.getaddrinfo
        monkeypatch.setattr(socket, "getaddrinfo", self._look_up)

    def _look_up(self, host: str, *rest: Any, **named: Any) -> Any:
        with self._lock:
            self.asked[host] += 1
        if host.startswith("slow"):
            self.answer.wait(60)
            raise OSError("no such name")
        return ANSWER if host.endswith(".example") else self._system(host, *rest, **named)
