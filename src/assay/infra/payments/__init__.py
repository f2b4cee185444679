"""Where payments meet chains and facilitators."""
