"""Views of the whole platform (interface.md#dashboard)."""
