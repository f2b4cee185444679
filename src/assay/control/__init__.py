"""Who controls the addresses that an agent declares, and who only copies another.

Source: evidence.md#control.
"""
