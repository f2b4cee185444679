"""One file per family of chains; a new family is a new file here."""
