"""One file per sandbox probe; a new probe is a new file here."""
