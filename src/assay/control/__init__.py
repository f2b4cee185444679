"""Who controls the addresses that an agent declares, and which agents copy another.

Source: evidence.md#control.
"""
