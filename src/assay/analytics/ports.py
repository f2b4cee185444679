"""What the call log and its analytics need of the outside."""

from typing import Literal

AgentOrder = Literal["lastSeen", "calls", "spent", "errors"]
"""Source: interface.md#enumerated-values."""


class CallsRefused(Exception):
    """The store can never take this batch: a row of it holds what cannot be stored."""
