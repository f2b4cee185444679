"""Outbound requests: the egress guard, name servers, bounded bodies, shared counters in Valkey."""
