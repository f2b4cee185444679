"""The append-only trail of what was done to accounts and their credentials."""
