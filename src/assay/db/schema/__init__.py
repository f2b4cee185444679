"""The tables of both databases, one file a feature; only stores and migrations import them."""
