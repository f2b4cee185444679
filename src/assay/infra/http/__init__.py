"""Leaving by HTTP: to addresses we configured, and to addresses others gave us."""
