"""The tables of both databases, a file a feature; only stores and migrations import them."""
