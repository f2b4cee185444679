"""Reputation weighted by payments: votes count by money that was not returned."""
