"""Key-based agents: challenge, signature, session (interface.md#key-agents, #agent-identity)."""
