"""The evaluation_complete event, delivered (spec 4.5, 6)."""
