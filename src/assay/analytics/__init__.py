"""The call log, and sums of calls and payments (interface.md#analytics-records)."""
