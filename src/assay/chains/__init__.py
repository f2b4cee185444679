"""On-chain agents: which chains there are, and reading an agent, its feedback and its wallets from them."""
