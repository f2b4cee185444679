"""Checks whether the services of a Solana agent answer."""
