"""One file per trust signal (spec 2.17); a new signal is a new file here."""
