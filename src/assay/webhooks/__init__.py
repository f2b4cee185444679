"""Webhooks: events about evaluations (interface.md#webhooks, #events)."""
