"""Signatures, password hashes, tokens and secrets at rest."""
