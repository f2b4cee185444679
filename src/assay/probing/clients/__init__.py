"""Talks to agents through the official A2A and MCP client libraries."""
