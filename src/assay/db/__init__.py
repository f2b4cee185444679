"""Stores over SQLite and PostgreSQL, from the same SQL."""
