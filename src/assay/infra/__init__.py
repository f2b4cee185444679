"""Machinery: implements the ports of the features. Only `wiring` names it."""
