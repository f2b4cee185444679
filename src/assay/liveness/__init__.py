"""Whether the services of a Solana agent answer."""
