"""Which functions of the package a call runs, in their order."""

import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import FrameType

PACKAGE = Path(__file__).parents[2] / "src/assay"


@dataclass(slots=True)
class Trace:
    """The functions of the package that ran, in their order, as (file, name)."""

    calls: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    @property
    def files(self) -> Mapping[str, list[str]]:
        """Each file with its functions, in the order of the first run."""
        found: dict[str, dict[str, None]] = {}
        for file, name in self.calls:
            found.setdefault(file, {})[name] = None
        return {file: list(names) for file, names in found.items()}

    @property
    def switches(self) -> int:
        """How often the next function is of another file."""
        return sum(before != after for (before, _), (after, _) in pairwise(self.calls))

    def within(self, folders: tuple[str, ...]) -> "Trace":
        """What ran in these folders."""
        return Trace([one for one in self.calls if one[0].startswith(folders)])


@contextmanager
def tracing(*, new_threads: bool = False) -> Iterator[Trace]:
    """Note what this thread runs meanwhile; with `new_threads` also those that it starts."""
    trace = Trace()

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(f"{PACKAGE}/"):
            file = code.co_filename.removeprefix(f"{PACKAGE}/")
            trace.calls.append((file, getattr(code, "co_qualname", code.co_name)))

    before = sys.getprofile()
    if new_threads:
        threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield trace
    finally:
        sys.setprofile(before)
        if new_threads:
            threading.setprofile(None)  # type: ignore[arg-type]
