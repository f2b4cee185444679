"""Key-based agents: challenge, signature, session (spec 4.3, 5.3)."""
