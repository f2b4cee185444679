"""A transport that goes nowhere, for parsers that are fed by hand."""

import asyncio
from typing import Any

from typing_extensions import override


class SilentTransport(asyncio.Transport):
    """A connection that only notes whether it was given up."""

    def __init__(self) -> None:
        super().__init__()
        self.is_over = False

    @override
    def write(self, data: Any) -> None:
        del data

    @override
    def is_closing(self) -> bool:
        return self.is_over

    @override
    def abort(self) -> None:
        self.is_over = True

    @override
    def pause_reading(self) -> None:
        return

    @override
    def resume_reading(self) -> None:
        return
