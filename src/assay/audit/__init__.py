"""The append-only trail of changes to accounts and their credentials."""
