"""One file per obstacle of the course; a new one is a new file here."""
