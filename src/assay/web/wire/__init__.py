"""Request and response shapes, camelCase, one file per resource (spec 2)."""
