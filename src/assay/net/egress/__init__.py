"""The egress guard: outbound requests to addresses that other parties gave us.

Source: interface.md#blocked-addresses.
"""
