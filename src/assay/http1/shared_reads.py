"""Memory that many connections read into, one after the other."""

from typing import Final

READ_BYTES: Final = 256 * 1024
"""As much as is read at once."""


class SharedReads:
    """One piece of memory for all connections of a loop.

    What was read stands in it until the next read of whichever connection. Who has handed it to
    somebody that still needs it then takes it out of use.
    """

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Read into new memory from now on; the old belongs to whoever still needs it."""
        self.memory = memoryview(bytearray(READ_BYTES))
