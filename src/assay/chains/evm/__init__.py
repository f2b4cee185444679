"""Clients of EVM chains: JSON-RPC, contract calls, event logs, signing."""
