"""Calls an agent's target for an operator (spec 4.2, 4.6)."""
