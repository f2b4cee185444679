"""Stores over SQLite and PostgreSQL, from one text."""
