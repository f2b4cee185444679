"""Agent-ready wrappers: /wrap/{operatorId}/{path} (interface.md#wrappers)."""
