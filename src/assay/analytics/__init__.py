"""The call log and what is counted from it (interface.md#analytics-records)."""
