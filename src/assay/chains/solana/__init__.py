"""Clusters of Solana, one row each."""
