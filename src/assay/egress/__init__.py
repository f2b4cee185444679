"""Leaving the house safely: every address somebody else gave us goes through here (spec 4.2 rule 5)."""
