"""Assay: tests AI agents and stamps a grade on them, AAA to C."""

__version__ = "0.1.0"
