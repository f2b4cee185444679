"""Platform-wide views (spec 4.6)."""
