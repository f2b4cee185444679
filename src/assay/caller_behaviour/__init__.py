"""How an agent behaves as a caller: scenarios it runs, and observations at wrappers."""
