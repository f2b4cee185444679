"""Leaving the house safely: the door for addresses others gave us (spec 4.2 rule 5)."""
