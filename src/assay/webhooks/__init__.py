"""The evaluation_complete event, delivered (interface.md#webhooks, #events)."""
