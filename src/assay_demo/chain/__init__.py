"""A real EVM on loopback with ERC-8004 registries of our own on it."""
