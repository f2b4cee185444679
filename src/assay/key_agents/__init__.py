"""Agents that are known by an address alone: registration and profiles."""
