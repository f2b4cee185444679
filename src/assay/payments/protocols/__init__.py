"""One file per payment protocol."""
