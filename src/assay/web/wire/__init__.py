"""Request and response shapes, camelCase, one file per resource (interface.md#resources)."""
