"""The demo's world: a local chain with ERC-8004 registries, and sample agents that really run."""
