"""Shared short-lived state."""
