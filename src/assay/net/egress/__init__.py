"""Leaving the house safely: the door for addresses others gave us.

Source: interface.md#blocked-addresses.
"""
