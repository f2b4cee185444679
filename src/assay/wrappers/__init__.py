"""Agent-ready wrappers: /wrap/{operatorId}/{path} (spec 4.7)."""
