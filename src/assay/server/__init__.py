"""The only room that knows the web framework."""
