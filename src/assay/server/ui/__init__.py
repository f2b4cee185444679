"""The dashboard's pages: static files."""
