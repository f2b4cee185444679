"""Texts that probes use, as data: instructions by language, and stems of signs."""
