"""Payment protocols behind paid wrappers (interface.md#wrappers)."""
