"""Agents that are known only by an address: registration and profiles."""
