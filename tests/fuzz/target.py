"""What a fuzz target is: a parser, what it may raise, and how much work it may do."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

SOURCES = str(Path(__file__).parents[2] / "src")

LINES = 20_000
LINES_PER_BYTE = 60
"""The most lines of ours that parsing runs, at all and for each byte. Bounded loops fit; what grows
with the square of the input does not."""


@dataclass(frozen=True, slots=True)
class Target:
    """A parser of bytes that strangers send.

    `run` takes the bytes, asserts the parser's laws, and raises nothing but `allowed`.
    """

    name: str
    run: Callable[[bytes], object]
    allowed: tuple[type[Exception], ...] = ()
    bytes_max: int = 4096
    accepts: bool = True
    """Whether some kept input passes; False where that takes a neighbour that is not there."""

    def __call__(self, data: bytes) -> bool:
        """Run it; whether the bytes were accepted. Anything that escapes is a finding."""
        try:
            self.run(data)
        except self.allowed:
            return False
        return True


def lines_run(target: Target, data: bytes) -> int:
    """How many lines of the package a target runs for these bytes: the same on every machine."""
    count = 0

    def trace(frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal count
        if not frame.f_code.co_filename.startswith(SOURCES):
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        target(data)
    finally:
        sys.settrace(before)
    return count


def lines_max(data: bytes) -> int:
    """The bound of `lines_run`."""
    return LINES + LINES_PER_BYTE * len(data)


def pieces(data: bytes) -> tuple[int, bytes]:
    """A number to choose by, and the rest."""
    return (data[0], data[1:]) if data else (0, b"")


def text(data: bytes) -> str:
    """Bytes as a text a JSON body can bring: any code point, half surrogates too."""
    return data.decode("utf-8", "surrogateescape")


def latin(data: bytes) -> str:
    """Bytes as a header's value, as the server hands it on."""
    return data.decode("latin-1")
