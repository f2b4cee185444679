"""Proofs that a human backs an agent."""
