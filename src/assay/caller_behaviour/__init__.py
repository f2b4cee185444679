"""How an agent behaves as a caller: scenarios it is run through, and observations at wrappers."""
