"""Platform-wide views (interface.md#dashboard)."""
