"""The supported chains, and clients that read agents, feedback and wallets from them."""
