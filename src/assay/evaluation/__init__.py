"""Turns visits into a verdict: checks, history, drift, the ladder and its policy."""
