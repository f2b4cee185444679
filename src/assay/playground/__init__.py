"""Calls an agent's target for an operator (interface.md#proxy-and-playground)."""
