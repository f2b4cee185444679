"""The trust gate: allow or deny (interface.md#gate-decision, #trust-evaluation)."""
