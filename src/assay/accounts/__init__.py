"""Operators, their API keys, plans and monthly allowance.

Source: interface.md#dashboard, #api-keys, #dashboard-tokens, #limits.
"""
