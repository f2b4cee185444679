"""Reputation that is paid for: votes count by money that did not return."""
