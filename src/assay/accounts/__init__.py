"""Operators, their API keys, plans and monthly allowance (spec 4.6, 5.1, 5.2, 8)."""
