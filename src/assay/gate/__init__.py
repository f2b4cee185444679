"""The trust gate: allow or deny (spec 2.5, 4.2)."""
