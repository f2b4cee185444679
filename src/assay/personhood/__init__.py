"""Proofs that a human stands behind an agent."""
