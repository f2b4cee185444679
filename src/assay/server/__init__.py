"""The only package that imports the web framework."""
