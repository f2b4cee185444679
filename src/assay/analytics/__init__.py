"""The call log and what is counted from it (spec 2.15)."""
