"""Proof of function: that a declared service speaks its protocol, and that it works."""
