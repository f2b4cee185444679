"""Wrappers that agents can call: /wrap/{operatorId}/{path} (interface.md#wrappers)."""
