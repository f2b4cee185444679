"""Sample agents: real services on the official SDKs, one well-behaved, others not."""
