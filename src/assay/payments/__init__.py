"""Payment protocols behind paid wrappers (spec 4.7)."""
