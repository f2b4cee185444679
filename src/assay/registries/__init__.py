"""Agents as chains register them: ERC-8004, the Solana registry, and registration files."""
