"""What we believe about an agent, and why (interface.md#resources, #trust-evaluation)."""
