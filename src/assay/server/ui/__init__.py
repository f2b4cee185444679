"""The page /docs: its own files, and those of Swagger UI."""
