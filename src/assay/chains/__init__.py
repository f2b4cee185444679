"""Which chains there are, and reading agents, feedback and wallets from them."""
